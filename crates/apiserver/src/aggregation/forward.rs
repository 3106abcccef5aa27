//! A request on its way to another server, and the answer on its way back.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use tokio::time::Instant;
use watchkeeper_connection::Body as Answer;

use super::{Aggregator, Failed, Target, headers};
use crate::authentication::Identity;
use crate::front::Body;
use crate::remote::Remote;

/// How many bytes an answer may have that is no watch.
const MOST_ANSWERED: usize = 256 << 20;

/// The answer of another server, on its way.
pub(crate) struct Forwarded {
    pub(crate) code: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

impl Aggregator {
    /// Hands a request on. The answer has to end within `limit`, unless it is a watch.
    pub(crate) async fn forward(
        &self,
        remote: &Remote,
        target: Target,
        sent: (&HeaderMap, Bytes),
        identity: &Identity,
        limit: Duration,
    ) -> Result<Forwarded, Failed> {
        let deadline = Instant::now() + limit;
        let unavailable = |why: String| Failed::Unavailable(format!("error trying to reach service: {why}"));
        let Target { method, path, is_watch } = target;
        let connection = self.connection(&remote.backend).await.map_err(|why| {
            tracing::debug!(service = %remote.backend.name, why, "no endpoint to hand a request on to");
            Failed::Unavailable("service unavailable".to_owned())
        })?;
        let mut request = Request::new(sent.1);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| unavailable("the path is no URL".to_owned()))?;
        *request.headers_mut() = headers::of_request(sent.0, identity);
        let answer = tokio::time::timeout_at(deadline, connection.send(request)).await;
        let answer = answer.map_err(|_| unavailable("context deadline exceeded".to_owned()))?;
        let (head, body) = answer.map_err(|error| unavailable(error.to_string()))?.into_parts();
        if head.status.is_redirection() && head.status != StatusCode::NOT_MODIFIED {
            return Err(Failed::Redirected);
        }
        // An upgrade was not asked for.
        if head.status.is_informational() {
            return Err(unavailable(format!("unexpected answer {}", head.status.as_u16())));
        }
        let bounds = (!is_watch).then_some((deadline, MOST_ANSWERED));
        Ok(Forwarded {
            code: head.status,
            headers: headers::of_answer(&head.headers),
            body: streamed(body, bounds),
        })
    }
}

/// A body that is handed on as it comes. What breaks off, lasts too long or becomes too long is broken off here, too, so that the client
/// sees that it is not complete.
fn streamed(body: Answer, bounds: Option<(Instant, usize)>) -> Body {
    let pieces = stream::unfold(Some((body, 0_usize)), move |state| async move {
        let (mut body, sent) = state?;
        let next = async {
            loop {
                match body.frame().await? {
                    Ok(frame) => match frame.into_data() {
                        Ok(data) => return Some(Ok(data)),
                        Err(_) => continue,
                    },
                    Err(error) => return Some(Err(error.to_string())),
                }
            }
        };
        let next = match bounds {
            None => next.await,
            Some((deadline, most)) => match tokio::time::timeout_at(deadline, next).await {
                Ok(Some(Ok(data))) if sent.saturating_add(data.len()) > most => {
                    Some(Err("the answer is too long".to_owned()))
                }
                Ok(next) => next,
                Err(_) => Some(Err("the answer took too long".to_owned())),
            },
        };
        match next? {
            Ok(data) => {
                let sent = sent.saturating_add(data.len());
                Some((Ok(http_body::Frame::data(data)), Some((body, sent))))
            }
            Err(why) => Some((Err(why), None)),
        }
    });
    Body::wrap(http_body_util::StreamBody::new(pieces))
}
