use std::future::pending;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::authentication::{Identity, Service};
use watchkeeper_apiserver::front::{Body, Request, Response};

use crate::Call;
use crate::faults::Faults;
use crate::outcome::{End, Outcome, status};
use crate::server::Server;
use crate::timeline::{Fate, Timeline};
use crate::watches::Watches;

/// The reason why a request got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Nobody is there.
    #[error("connection refused")]
    Refused,
    /// The connection broke after the request was sent.
    #[error("connection reset before the answer came")]
    Reset,
}

/// The one way in: faults, the timeline, and the server behind them, if there is one just now.
pub(crate) struct Entrance {
    server: RwLock<Option<Server>>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) watches: Watches,
    /// Ends what is still on its way when the environment ends.
    ended: CancellationToken,
}

impl Entrance {
    pub(crate) fn new(server: Server) -> Self {
        Self {
            server: RwLock::new(Some(server)),
            faults: Arc::default(),
            timeline: Arc::new(Timeline::new()),
            watches: Watches::new(),
            ended: CancellationToken::new(),
        }
    }

    pub(crate) fn server(&self) -> Option<Server> {
        self.server.read().clone()
    }

    /// Puts another server, or none, in the place of the present one, which is returned.
    pub(crate) fn replace(&self, server: Option<Server>) -> Option<Server> {
        std::mem::replace(&mut *self.server.write(), server)
    }

    /// Lets nothing more happen.
    pub(crate) fn close(&self) {
        self.ended.cancel();
        self.replace(None);
    }

    /// Takes a request to the server, as far as the faults let it.
    pub(crate) async fn send(
        self: Arc<Self>,
        request: Request,
        identity: Identity,
    ) -> Result<Response, Broken> {
        let mut call = Call::read(&request, &identity.user, 0);
        let ticket = self.timeline.begin(&mut call);
        let outcome = self.faults.judge(&call);
        let answer = Arc::clone(&self).carry(request, identity, call, outcome).await;
        ticket.end(answer.as_ref().map_or(Fate::Broken, |answer| Fate::Answered(answer.status().as_u16())));
        answer
    }

    async fn carry(
        self: Arc<Self>,
        request: Request,
        identity: Identity,
        call: Call,
        outcome: Outcome,
    ) -> Result<Response, Broken> {
        let detached = outcome.is_detached();
        let Outcome { before, end, after } = outcome;
        let arrives = matches!(end, End::Pass | End::Lose | End::Swallow);
        let watches = call.verb == "watch";
        let entrance = Arc::clone(&self);
        let trip = async move {
            if !before.is_zero() {
                sleep(before).await;
            }
            match end {
                End::Hang => pending().await,
                End::Refuse => Err(Broken::Refused),
                End::Reject { code, reason, message } => {
                    Ok(rejection(code, &status(code, &reason, message.as_deref(), &call)))
                }
                End::Pass => entrance.ask(request, identity, watches).await,
                End::Lose => entrance.ask(request, identity, watches).await.and(Err(Broken::Reset)),
                End::Swallow => match entrance.ask(request, identity, watches).await {
                    Ok(_) => pending().await,
                    Err(broken) => Err(broken),
                },
            }
        };
        let answer = if detached && arrives { self.detach(trip).await } else { trip.await };
        if !after.is_zero() {
            sleep(after).await;
        }
        answer
    }

    /// Has a request reach the server though its sender may give up.
    async fn detach(
        &self,
        trip: impl Future<Output = Result<Response, Broken>> + Send + 'static,
    ) -> Result<Response, Broken> {
        let ended = self.ended.clone();
        let task = tokio::spawn(async move { ended.run_until_cancelled(trip).await });
        task.await.ok().flatten().unwrap_or(Err(Broken::Reset))
    }

    async fn ask(&self, request: Request, identity: Identity, watches: bool) -> Result<Response, Broken> {
        let server = self.server().ok_or(Broken::Refused)?;
        let answer = server.call(request, identity).await?;
        Ok(if watches { answer.map(|body| self.watches.guard(body)) } else { answer })
    }
}

/// For sockets: a request that gets no answer breaks its connection.
pub(crate) struct Listening(pub(crate) Arc<Entrance>);

impl Service for Listening {
    fn call(&self, request: Request, identity: Identity) -> BoxFuture<'static, Response> {
        let answer = Arc::clone(&self.0).send(request, identity);
        Box::pin(async move { answer.await.unwrap_or_else(broken) })
    }
}

fn broken(why: Broken) -> Response {
    use futures_util::stream;
    let pieces = stream::iter([Err::<http_body::Frame<_>, _>(why)]);
    Response::new(Body::wrap(http_body_util::StreamBody::new(pieces)))
}

fn rejection(code: u16, status: &serde_json::Value) -> Response {
    let mut response = Response::new(Body::whole(status.to_string()));
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}
