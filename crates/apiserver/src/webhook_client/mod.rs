//! Calling the webhooks of others, for admission and for conversion: where they are, and what a call that fails is called.

mod answer;
mod config;
mod distrust;
mod endpoints;
mod failure;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Limited};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};
use watchkeeper_connection::{Config, Connection};
use watchkeeper_storage::Storage;

use crate::registry::Registrar;
pub(crate) use answer::{decode_answer, wrong_type};
pub(crate) use config::ClientConfig;
use config::Place;
use endpoints::ParsedServices;
use failure::{body_in_words_of_go, in_words_of_go};

/// How many servers connections are kept to.
const MOST_CALLERS: usize = 200;
/// How many bundles of authorities connections to one server are kept for: while a bundle is replaced, some configurations have the old one
/// and some the new one.
const MOST_BUNDLES: usize = 2;

/// Calls webhooks: finds their Services, and keeps connections.
pub(crate) struct WebhookClient {
    storage: Arc<dyn Storage>,
    registrar: Arc<Registrar>,
    /// Where Services are, as `namespace/name`, that are not looked up.
    service_addresses: BTreeMap<String, SocketAddr>,
    /// What Services and EndpointSlices say, as far as somebody has asked.
    services: ParsedServices,
    callers: Callers,
}

/// What a call may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallLimits {
    /// How long, from the first byte sent to the last one received.
    pub(crate) timeout: Duration,
    /// Whether the webhook is told how long it has.
    pub(crate) tells_timeout: bool,
    /// How many bytes its answer may have.
    pub(crate) answer_bytes: usize,
}

/// Connections to the servers of webhooks, by address, name and authorities. Those that were not used for longest make room.
#[derive(Default)]
struct Callers(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// Each with the number of its last use.
    connections: HashMap<Caller, (Connection, u64)>,
    uses: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Caller {
    base: String,
    /// The name that the certificate has to have, if it is not that of the host.
    server_name: Option<String>,
    authorities: Vec<u8>,
}

impl WebhookClient {
    /// A client that finds these Services at these addresses.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        registrar: Arc<Registrar>,
        service_addresses: BTreeMap<String, SocketAddr>,
    ) -> Self {
        let (services, callers) = <_>::default();
        Self { storage, registrar, service_addresses, services, callers }
    }

    /// Sends a review to a webhook, and gives its answer. The error is what there is to say about a call that failed, in upstream's
    /// words.
    pub(crate) async fn post(
        &self,
        config: &ClientConfig,
        limits: CallLimits,
        body: Bytes,
    ) -> Result<Bytes, String> {
        let url = config.url(limits.tells_timeout.then_some(limits.timeout));
        self.sent(config, &url, limits, body).await.map_err(|failed| match failed {
            Failed::Refused(why) => why,
            Failed::Request(why) => format!("Post {url:?}: {why}"),
        })
    }

    async fn sent(
        &self,
        config: &ClientConfig,
        url: &str,
        limits: CallLimits,
        body: Bytes,
    ) -> Result<Bytes, Failed> {
        let failed = |why: String| Failed::Request(why);
        let deadline = Instant::now() + limits.timeout;
        let too_late = || "context deadline exceeded".to_owned();
        let url: Uri = url.parse().map_err(|error: http::uri::InvalidUri| failed(error.to_string()))?;
        let caller = match &config.place {
            Place::Url(_) => {
                let (scheme, authority) = (url.scheme_str().unwrap_or("https"), url.authority());
                let base = format!("{scheme}://{}", authority.map_or("", |authority| authority.as_str()));
                Caller { base, server_name: None, authorities: config.authorities.clone() }
            }
            Place::Service { namespace, name, port, .. } => {
                let endpoint = timeout_at(deadline, self.endpoint(namespace, name, *port)).await;
                let (host, port) = endpoint.map_err(|_| failed(too_late()))?.map_err(failed)?;
                let host = if host.contains(':') { format!("[{host}]") } else { host };
                Caller {
                    base: format!("https://{host}:{port}"),
                    server_name: Some(format!("{name}.{namespace}.svc")),
                    authorities: config.authorities.clone(),
                }
            }
        };
        let connection = self.callers.connection(&caller).map_err(failed)?;
        let request = Request::post(url.path_and_query().map_or("/", |path| path.as_str()))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, "kube-apiserver-admission")
            .body(body)
            .map_err(|error| failed(error.to_string()))?;
        let response = timeout_at(deadline, connection.send(request)).await;
        let response = response.map_err(|_| failed(too_late()))?;
        let response = response.map_err(|error| failed(in_words_of_go(&error, &caller)))?;
        let code = response.status().as_u16();
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_text = kind.is_empty() || kind.starts_with("text/");
        let read = Limited::new(response.into_body(), limits.answer_bytes).collect();
        let unread = |why: String| {
            let why =
                format!("unexpected error when reading response body. Please retry. Original error: {why}");
            Failed::Refused(why)
        };
        let read = timeout_at(deadline, read).await.map_err(|_| unread(too_late()))?;
        let answer = read.map_err(|error| match error.is::<http_body_util::LengthLimitError>() {
            true => failed(format!("the answer has more than {} bytes", limits.answer_bytes)),
            false => unread(body_in_words_of_go(&*error)),
        })?;
        let answer = answer.to_bytes();
        if (200..=206).contains(&code) {
            Ok(answer)
        } else {
            Err(Failed::Refused(refused(code, if is_text { &answer } else { b"unknown" })))
        }
    }
}

/// Why there is no answer.
enum Failed {
    /// The request itself failed.
    Request(String),
    /// The webhook answered with a code that says so.
    Refused(String),
}

impl Callers {
    fn connection(&self, caller: &Caller) -> Result<Connection, String> {
        let mut kept = self.0.lock();
        kept.uses = kept.uses.saturating_add(1);
        let now = kept.uses;
        if let Some((connection, used)) = kept.connections.get_mut(caller) {
            *used = now;
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
        kept.make_room(|other| other.is_of_same_server(caller), MOST_BUNDLES);
        kept.make_room(|_| true, MOST_CALLERS);
        kept.connections.insert(caller.clone(), (connection.clone(), now));
        Ok(connection)
    }
}

impl Caller {
    /// The host that is connected to, without the brackets of an IPv6 address.
    fn host(&self) -> &str {
        let authority = self.base.split_once("://").map_or(&*self.base, |(_, authority)| authority);
        match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, _)) => host,
            None => authority.split_once(':').map_or(authority, |(host, _)| host),
        }
    }

    fn is_of_same_server(&self, other: &Self) -> bool {
        self.base == other.base && self.server_name == other.server_name
    }
}

impl Kept {
    /// Drops the one of these that was not used for longest, if there is no room for one more.
    fn make_room(&mut self, of: impl Fn(&Caller) -> bool, most: usize) {
        let these = self.connections.iter().filter(|(caller, _)| of(caller));
        let (mut count, mut oldest) = (0_usize, None);
        for (caller, (_, used)) in these {
            count = count.saturating_add(1);
            if oldest.is_none_or(|(_, before)| *used < before) {
                oldest = Some((caller, *used));
            }
        }
        if count >= most
            && let Some(oldest) = oldest.map(|(caller, _)| caller.clone())
        {
            self.connections.remove(&oldest);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(port: usize, authorities: &str) -> Caller {
        let base = format!("http://127.0.0.1:{port}");
        Caller { base, server_name: None, authorities: authorities.as_bytes().to_vec() }
    }

    /// Whether connections are kept for a caller.
    fn keeps(callers: &Callers, caller: &Caller) -> bool {
        callers.0.lock().connections.contains_key(caller)
    }

    #[test]
    fn connections_for_a_bundle_that_was_replaced_go_and_others_stay() {
        let callers = Callers::default();
        let [old, both, new] = ["old", "old and new", "new"].map(|authorities| caller(1, authorities));
        let other = caller(2, "old");
        for caller in [&other, &old, &both, &new] {
            callers.connection(caller).unwrap();
        }
        assert!(!keeps(&callers, &old) && keeps(&callers, &both) && keeps(&callers, &new));
        assert!(keeps(&callers, &other));
    }

    #[test]
    fn servers_that_were_not_asked_for_longest_make_room_for_others() {
        let callers = Callers::default();
        let pod = |number: usize| caller(1000 + number, "");
        for number in 0..MOST_CALLERS {
            callers.connection(&pod(number)).unwrap();
        }
        callers.connection(&pod(0)).unwrap();
        callers.connection(&pod(MOST_CALLERS)).unwrap();
        assert!(keeps(&callers, &pod(0)) && !keeps(&callers, &pod(1)) && keeps(&callers, &pod(2)));
        assert_eq!(callers.0.lock().connections.len(), MOST_CALLERS);
    }
}
