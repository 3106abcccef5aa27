//! Asking a hook.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Limited};
use parking_lot::Mutex;
use watchkeeper_connection::{Config, Connection, Error};

use super::hook::{Client, Hook, Place};
use super::review::{self, Question, Verdict};
use super::{Phase, Webhooks};

/// How large an answer may be: a patch is text in text, and may replace a whole object.
const MOST_BYTES: usize = 8 << 20;
/// How many servers connections are kept to.
const MOST_CALLERS: usize = 200;

/// Connections to the servers of hooks, by address, name and authorities.
#[derive(Default)]
pub(super) struct Callers(Mutex<HashMap<Caller, Connection>>);

#[derive(Clone, PartialEq, Eq, Hash)]
struct Caller {
    base: String,
    /// The name that the certificate has to have, if it is not that of the host.
    server_name: Option<String>,
    authorities: Vec<u8>,
}

impl Webhooks {
    /// Asks a hook. The error is what there is to say about a hook that could not be asked, without its name.
    pub(super) async fn ask(
        &self,
        hook: &Hook,
        phase: Phase,
        question: &Question<'_>,
    ) -> Result<Verdict, String> {
        let Some(version) = hook.review else {
            return Err("webhook does not accept known AdmissionReview versions (v1, v1beta1)".to_owned());
        };
        let uid = crate::object::random::uid();
        let body = Bytes::from(question.review(version, phase, &uid).to_string());
        let answer = tokio::time::timeout(hook.timeout, self.post(&hook.client, hook.timeout, body)).await;
        let answer =
            answer.unwrap_or_else(|_| Err(posting(&hook.client, hook.timeout, "context deadline exceeded")));
        let answer = answer.map_err(|why| format!("failed to call webhook: {why}"))?;
        review::read(&answer, version, &uid, phase)
    }

    async fn post(&self, client: &Client, timeout: Duration, body: Bytes) -> Result<Bytes, String> {
        let failed = |why: &str| posting(client, timeout, why);
        let url: Uri =
            client.url(timeout).parse().map_err(|error: http::uri::InvalidUri| failed(&error.to_string()))?;
        let caller = match &client.place {
            Place::Url(_) => {
                let (scheme, authority) = (url.scheme_str().unwrap_or("https"), url.authority());
                let base = format!("{scheme}://{}", authority.map_or("", |authority| authority.as_str()));
                Caller { base, server_name: None, authorities: client.authorities.clone() }
            }
            Place::Service { namespace, name, port, .. } => {
                let (host, port) = self.endpoint(namespace, name, *port).await.map_err(|why| failed(&why))?;
                let host = if host.contains(':') { format!("[{host}]") } else { host };
                Caller {
                    base: format!("https://{host}:{port}"),
                    server_name: Some(format!("{name}.{namespace}.svc")),
                    authorities: client.authorities.clone(),
                }
            }
        };
        let connection = self.callers.connection(&caller).map_err(|why| failed(&why))?;
        let request = Request::post(url.path_and_query().map_or("/", |path| path.as_str()))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, "kube-apiserver-admission")
            .body(body)
            .map_err(|error| failed(&error.to_string()))?;
        let response = connection.send(request).await.map_err(|error| failed(&in_words_of_go(&error)))?;
        let code = response.status().as_u16();
        let read = Limited::new(response.into_body(), MOST_BYTES).collect().await;
        let answer = read.map_err(|error| failed(&error.to_string()))?.to_bytes();
        if (200..=206).contains(&code) { Ok(answer) } else { Err(refused(code, &answer)) }
    }
}

impl Callers {
    fn connection(&self, caller: &Caller) -> Result<Connection, String> {
        let mut callers = self.0.lock();
        if let Some(connection) = callers.get(caller) {
            return Ok(connection.clone());
        }
        let mut config = Config::new(&caller.base).map_err(|error| error.to_string())?;
        if !caller.authorities.is_empty() {
            config = config.trusting(caller.authorities.clone());
        }
        if let Some(name) = &caller.server_name {
            config = config.server_name(name);
        }
        let connection = Connection::new(config).map_err(|error| error.to_string())?;
        if callers.len() >= MOST_CALLERS {
            callers.clear();
        }
        callers.insert(caller.clone(), connection.clone());
        Ok(connection)
    }
}

/// A failure of the request itself, as Go's client words it.
fn posting(client: &Client, timeout: Duration, why: &str) -> String {
    format!("Post {:?}: {why}", client.url(timeout))
}

fn in_words_of_go(error: &Error) -> String {
    match error {
        Error::Connect { server, reason } => {
            let verify = "tls: failed to verify certificate: x509:";
            if reason.contains("Connection refused") {
                format!("dial tcp {server}: connect: connection refused")
            } else if ["UnknownIssuer", "BadSignature", "CaUsedAsEndEntity"]
                .iter()
                .any(|why| reason.contains(why))
            {
                format!("{verify} certificate signed by unknown authority")
            } else if reason.contains("Expired") {
                format!("{verify} certificate has expired or is not yet valid")
            } else if reason.contains("NotValidForName") {
                format!("{verify} certificate is not valid for {server}")
            } else if reason.contains("no connection within") {
                "context deadline exceeded".to_owned()
            } else {
                format!("dial tcp {server}: {reason}")
            }
        }
        Error::Broken(_) => "EOF".to_owned(),
        error => error.to_string(),
    }
}

/// An answer that is none, as client-go words it.
fn refused(code: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..2048).unwrap_or(body));
    let text = text.trim();
    match code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 406 | 415 => text.to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request"
            .to_owned(),
        500.. => format!("an error on the server ({text:?}) has prevented the request from succeeding"),
        code => format!("the server responded with the status code {code} but did not return more information"),
    }
}
