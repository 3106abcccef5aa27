//! The connection and the login that all calls and streams of a client share.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::cluster::{Authenticate, Status, Token};
use crate::connection::{Connection, Metadata, Outgoing, reason};
use crate::endpoint::Endpoint;
use crate::error::{Code, Error};
use crate::grpc::{self, Frames};
use crate::message::{Decode as _, Nothing};
use crate::settings::{ClientBuilder, Password};

/// How long an endpoint may take to be connected to and to say whether its member leads.
const LOOK_TIMEOUT: Duration = Duration::from_secs(1);

/// What the handles of a client share.
#[derive(Clone)]
pub(crate) struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    settings: ClientBuilder,
    endpoints: Vec<Endpoint>,
    connection: Mutex<Option<Arc<Connection>>>,
    login: Mutex<Login>,
}

/// Whether there is a token.
enum Login {
    NotYet,
    /// etcd asks nobody who he is.
    NotNeeded,
    Token(HeaderValue),
}

/// Whether a call changes anything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// Until when an answer has to begin, and to be complete.
#[derive(Clone, Copy)]
struct Times {
    first: Instant,
    all: Instant,
}

impl Session {
    pub(crate) fn new(settings: ClientBuilder, endpoints: Vec<Endpoint>) -> Self {
        let (connection, login) = (Mutex::new(None), Mutex::new(Login::NotYet));
        Self { shared: Arc::new(Shared { settings, endpoints, connection, login }) }
    }

    pub(crate) fn settings(&self) -> &ClientBuilder {
        &self.shared.settings
    }

    /// Sends one message and gives the answer, from whichever endpoint has one. A member that is silent costs a read no more than its share
    /// of the time, so that all endpoints are asked; a write is asked of nobody else, and waits.
    pub(crate) async fn ask(&self, path: &'static str, frame: Bytes, kind: Kind) -> Result<Bytes, Error> {
        let deadline = Instant::now() + self.shared.settings.timeout;
        let mut renewed = false;
        let mut tried = 0;
        loop {
            let connection = self.connection(deadline).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            let silence = match (kind, self.shared.endpoints.len().saturating_sub(tried)) {
                (Kind::Read, endpoints @ 2..) => left / u32::try_from(endpoints).unwrap_or(u32::MAX),
                _ => left,
            };
            let times = Times { first: Instant::now() + silence, all: deadline };
            let (token, failed) = match self.token(&connection, times).await {
                Ok(token) => {
                    let frame = frame.clone();
                    match self.exchange(&connection, path, frame, token.clone(), times).await {
                        Ok(message) => return Ok(message),
                        Err(error) => (token, error),
                    }
                }
                Err(error) => (None, error),
            };
            if failed.needs_token() && self.shared.settings.user.is_some() && !renewed {
                renewed = true;
                self.forget_token(token.as_ref()).await;
                continue;
            }
            let again = match failed {
                Error::Unavailable(_) => true,
                Error::Unknown(_) => kind == Kind::Read,
                _ => return Err(failed),
            };
            self.forget(&connection).await;
            tried += 1;
            if !again || tried > self.shared.endpoints.len() || Instant::now() >= deadline {
                return Err(failed);
            }
        }
    }

    /// Sends one message and reads one.
    async fn exchange(
        &self,
        connection: &Connection,
        path: &'static str,
        frame: Bytes,
        token: Option<HeaderValue>,
        times: Times,
    ) -> Result<Bytes, Error> {
        let settings = &self.shared.settings;
        let begin = Instant::now();
        let left = times.all.saturating_duration_since(begin);
        let metadata =
            Metadata { token, require_leader: settings.require_leader, timeout: Some(left.as_millis()) };
        let silent = |_| {
            let waited = begin.elapsed();
            Error::Unknown(format!("{}: no answer after {waited:?}", connection.endpoint))
        };
        let sent = connection.send(path, Outgoing::One(Some(frame)), metadata);
        let head = timeout_at(times.first, sent).await.map_err(silent)??;
        timeout_at(times.all, only_message(head, settings.max_message_bytes)).await.map_err(silent)?
    }

    /// The connection there is, or another one.
    async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, Error> {
        match timeout_at(deadline, self.connect()).await {
            Ok(connected) => connected,
            Err(_) => Err(Error::Unavailable("no endpoint takes a connection in time".into())),
        }
    }

    async fn connect(&self) -> Result<Arc<Connection>, Error> {
        let mut current = self.shared.connection.lock().await;
        if let Some(connection) = current.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        let Shared { settings, endpoints, .. } = &*self.shared;
        let first = settings.preferred.load(Ordering::Relaxed);
        let mut failures = Vec::new();
        for at in (0..endpoints.len()).map(|step| first.wrapping_add(step) % endpoints.len()) {
            match Connection::open(settings, &endpoints[at]).await {
                Ok(connection) => {
                    settings.preferred.store(at, Ordering::Relaxed);
                    return Ok(Arc::clone(current.insert(Arc::new(connection))));
                }
                Err(why) => failures.push(why),
            }
        }
        Err(Error::Unavailable(failures.join("; ")))
    }

    /// The next call goes to the next endpoint.
    pub(crate) async fn forget(&self, connection: &Arc<Connection>) {
        let mut current = self.shared.connection.lock().await;
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            *current = None;
            self.shared.settings.preferred.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Has further calls go to the endpoint whose member leads. Calls and streams that have begun stay where they are. Gives whether there is
    /// one that says so in time; if not, everything stays as it is.
    pub(crate) async fn find_leader(&self) -> Result<bool, Error> {
        let Shared { settings, endpoints, connection, .. } = &*self.shared;
        let current = self.connection(Instant::now() + settings.timeout).await?;
        if matches!(self.leads(&current).await, Ok(true)) {
            return Ok(true);
        }
        let others = endpoints.iter().enumerate().filter(|(_, endpoint)| **endpoint != current.endpoint);
        let mut looks: FuturesUnordered<_> = others
            .map(async |(at, endpoint)| {
                let opened = Connection::open(settings, endpoint).await.ok()?;
                self.leads(&opened).await.ok()?.then_some((at, opened))
            })
            .map(|look| tokio::time::timeout(LOOK_TIMEOUT, look))
            .collect();
        while let Some(looked) = looks.next().await {
            if let Ok(Some((at, leader))) = looked {
                *connection.lock().await = Some(Arc::new(leader));
                settings.preferred.store(at, Ordering::Relaxed);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the member at the other end leads.
    async fn leads(&self, connection: &Connection) -> Result<bool, Error> {
        let deadline = Instant::now() + LOOK_TIMEOUT;
        let times = Times { first: deadline, all: deadline };
        let token = self.token(connection, times).await?;
        let frame = grpc::frame(&Nothing)?;
        let answer =
            self.exchange(connection, "/etcdserverpb.Maintenance/Status", frame, token, times).await?;
        let status = Status::decode(&answer)?;
        Ok(status.leader != 0 && status.leader == status.header.member)
    }

    /// The token to call with; nothing, if nobody has to log in.
    async fn token(&self, connection: &Connection, times: Times) -> Result<Option<HeaderValue>, Error> {
        let Some((name, password)) = &self.shared.settings.user else { return Ok(None) };
        let mut login = self.shared.login.lock().await;
        match &*login {
            Login::Token(token) => return Ok(Some(token.clone())),
            Login::NotNeeded => return Ok(None),
            Login::NotYet => {}
        }
        let password = match password {
            Password::Text(password) => password.clone(),
            Password::File(path) => {
                let read = tokio::fs::read_to_string(path).await;
                let read = read.map_err(|error| {
                    Error::Unavailable(format!("the password in {} cannot be read: {error}", path.display()))
                })?;
                read.trim_end_matches(['\r', '\n']).to_owned()
            }
        };
        let frame = grpc::frame(&Authenticate { name, password: &password })?;
        let path = "/etcdserverpb.Auth/Authenticate";
        match self.exchange(connection, path, frame, None, times).await {
            Ok(message) => {
                let mut token = HeaderValue::try_from(Token::decode(&message)?.0)
                    .map_err(|_| Error::Protocol("a token that cannot be sent".into()))?;
                token.set_sensitive(true);
                *login = Login::Token(token.clone());
                Ok(Some(token))
            }
            Err(Error::Refused { code: Code::FAILED_PRECONDITION, message })
                if message.contains("not enabled") =>
            {
                *login = Login::NotNeeded;
                Ok(None)
            }
            // Nothing but the login was sent.
            Err(Error::Unknown(why)) => Err(Error::Unavailable(why)),
            Err(error) => Err(error),
        }
    }

    /// This token is not valid any more.
    pub(crate) async fn forget_token(&self, used: Option<&HeaderValue>) {
        let mut login = self.shared.login.lock().await;
        let known = match &*login {
            Login::Token(token) => Some(token),
            Login::NotYet | Login::NotNeeded => None,
        };
        if known == used {
            *login = Login::NotYet;
        }
    }

    /// What a stream is opened with: a connection, and what goes with the call.
    pub(crate) async fn begin(&self) -> Result<(Arc<Connection>, Metadata), Error> {
        let settings = &self.shared.settings;
        let deadline = Instant::now() + settings.timeout;
        let connection = self.connection(deadline).await?;
        let token = self.token(&connection, Times { first: deadline, all: deadline }).await?;
        Ok((connection, Metadata { token, require_leader: settings.require_leader, timeout: None }))
    }
}

/// The only message of an answer, if the call went well.
async fn only_message(answer: Response<Incoming>, limit: usize) -> Result<Bytes, Error> {
    let (head, mut body) = answer.into_parts();
    accept(&head)?;
    let mut frames = Frames::new(limit);
    let mut message = None;
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Error::Unknown(format!("the answer is cut off: {}", reason(&error))))?;
        match frame.into_data() {
            Ok(data) => {
                frames.push(&data);
                if let Some(next) = frames.next()? {
                    message = Some(next);
                }
            }
            Err(frame) => {
                if let Some(status) = frame.trailers_ref().and_then(grpc::status) {
                    status?;
                    return message.ok_or_else(|| Error::Protocol("an answer without a message".into()));
                }
            }
        }
    }
    Err(Error::Unknown("the answer is cut off".into()))
}

/// Whether the head of an answer is one of gRPC, and does not say that the call failed.
pub(crate) fn accept(head: &http::response::Parts) -> Result<(), Error> {
    match grpc::status(&head.headers) {
        Some(Err(error)) => Err(error),
        _ if head.status != StatusCode::OK => {
            Err(Error::Unknown(format!("HTTP status {}: is this etcd?", head.status.as_u16())))
        }
        _ => Ok(()),
    }
}
