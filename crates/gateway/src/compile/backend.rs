use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use rustls_pki_types::ServerName;
use watchkeeper_core::Key;

use super::fields::Problems;
use crate::kinds::{BackendProtocol, BalancePolicy, GatewayBackendSpec};
use crate::object::{Input, Problem};
use crate::upstream::{
    ActiveCheck, Backend, BackendState, BalanceBy, Endpoint, EndpointState, HashBy, Passive, Transport,
    client_config, system_roots,
};

/// How many servers that a backend does not name any more are remembered.
const MOST_FORMER: usize = 16;

/// What is learned of a backend and its servers, whatever becomes of the object.
#[derive(Debug, Default)]
pub(super) struct Learned {
    pub(super) state: Arc<BackendState>,
    pub(super) endpoints: HashMap<Arc<str>, Arc<EndpointState>>,
    /// Servers that were there before, the last to leave at the end. Who goes back and forth between servers, as a rollout that is
    /// undone does, finds their connections open: each that is closed instead blocks a port for a minute.
    former: Vec<Arc<EndpointState>>,
}

impl Learned {
    /// The states of servers at these addresses, from now on those of the backend.
    fn adopt<'a>(&mut self, addresses: impl Iterator<Item = &'a str>) -> Vec<Arc<EndpointState>> {
        let mut before = std::mem::take(&mut self.endpoints);
        let mut states = Vec::new();
        for address in addresses {
            let state = before.remove(address).or_else(|| {
                // One address may be named twice.
                let named = self.endpoints.get(address).cloned();
                named.or_else(|| self.recall(address))
            });
            let state = state.unwrap_or_else(|| Arc::new(EndpointState::new(address)));
            self.endpoints.insert(Arc::clone(&state.address), Arc::clone(&state));
            states.push(state);
        }
        self.former.extend(before.into_values());
        let forgotten = self.former.len().saturating_sub(MOST_FORMER);
        self.former.drain(..forgotten);
        states
    }

    fn recall(&mut self, address: &str) -> Option<Arc<EndpointState>> {
        let at = self.former.iter().position(|state| *state.address == *address)?;
        let state = self.former.remove(at);
        // Nobody has asked it meanwhile.
        state.set_healthy(true);
        Some(state)
    }
}

/// What a backend needs to know of others.
pub(super) struct Around<'a> {
    /// Where relative files are.
    pub(super) base: &'a Path,
    /// The servers of a port of a Service.
    pub(super) service: &'a dyn Fn(&Key, u16) -> Vec<String>,
}

/// A backend, and what it refers to.
pub(super) struct Compiled {
    pub(super) backend: Backend,
    pub(super) service: Option<Key>,
}

pub(super) fn compile(
    input: &Input,
    learned: &mut Learned,
    around: &Around<'_>,
) -> Result<Compiled, Vec<Problem>> {
    compile_spec(&input.id.key, input.checked()?, learned, around)
}

/// Compiles the spec of a backend.
pub(super) fn compile_spec(
    key: &Key,
    spec: GatewayBackendSpec,
    learned: &mut Learned,
    around: &Around<'_>,
) -> Result<Compiled, Vec<Problem>> {
    let mut problems = Problems::default();
    let namespace = key.namespace().unwrap_or_default();
    let mut path = String::new();
    let mut is_tls = spec.tls.is_some();
    let mut service = None;
    let mut addresses: Vec<(String, u32)> = Vec::new();
    match (&spec.url, spec.endpoints.as_slice(), &spec.service) {
        (Some(url), [], None) => match read_url(url) {
            Ok((tls, address, prefix)) => {
                is_tls |= tls;
                addresses.push((address, 1));
                path = prefix;
            }
            Err(message) => problems.add("spec.url", message),
        },
        (None, endpoints @ [_, ..], None) => {
            for (at, endpoint) in endpoints.iter().enumerate() {
                let field = format!("spec.endpoints[{at}].address");
                let address = problems.note(field, read_address(&endpoint.address));
                addresses
                    .extend(address.map(|address| (address, u32::try_from(endpoint.weight).unwrap_or(1))));
            }
        }
        (None, [], Some(named)) => {
            let named_service = Key::new(Some(namespace), &named.name);
            let found = (around.service)(&named_service, u16::try_from(named.port).unwrap_or(0));
            addresses.extend(found.into_iter().map(|address| (address, 1)));
            service = Some(named_service);
        }
        _ => problems.add("spec", "needs one of url, endpoints and service"),
    }
    let transport = transport(&mut problems, &spec, is_tls, around.base);
    let host = spec.host.as_ref().and_then(|host| problems.header_value("spec.host", host));
    let balance = balance(&mut problems, &spec, &addresses);
    let passive = spec.health.passive.as_ref().map(|passive| Passive {
        failures: u32::try_from(passive.failures).unwrap_or(1),
        eject_for: problems.positive(
            "spec.health.passive.ejectFor",
            passive.eject_for.as_ref(),
            Duration::from_secs(10),
        ),
        max_percent: u32::try_from(passive.max_ejected_percent).unwrap_or(0),
    });
    let active = spec.health.active.as_ref().and_then(|active| {
        let field = "spec.health.active";
        Some(ActiveCheck {
            path: problems.path(&format!("{field}.path"), &active.path)?,
            interval: problems.positive(
                &format!("{field}.interval"),
                active.interval.as_ref(),
                Duration::from_secs(5),
            ),
            timeout: problems.positive(
                &format!("{field}.timeout"),
                active.timeout.as_ref(),
                Duration::from_secs(2),
            ),
            unhealthy_after: u32::try_from(active.unhealthy_after).unwrap_or(1),
            healthy_after: u32::try_from(active.healthy_after).unwrap_or(1),
        })
    });
    // Without a transport there is a problem.
    let transport = problems.finish(transport)?.ok_or_else(Vec::new)?;
    // Only now: what is learned is not touched for an object that cannot be used.
    let states = learned.adopt(addresses.iter().map(|(address, _)| &**address));
    if active.is_none() {
        // Nobody would ever say that it is well again.
        states.iter().for_each(|state| state.set_healthy(true));
    }
    let endpoints =
        addresses.iter().zip(states).map(|((_, weight), state)| Endpoint { weight: *weight, state });
    let endpoints = endpoints.collect();
    let backend = Backend {
        key: key.clone(),
        endpoints,
        former: learned.former.clone().into(),
        balance,
        transport: Arc::new(transport),
        passive,
        active,
        max_requests: spec.limits.requests.and_then(|most| u32::try_from(most).ok()),
        host,
        path: path.into(),
        state: Arc::clone(&learned.state),
    };
    Ok(Compiled { backend, service })
}

fn transport(
    problems: &mut Problems,
    spec: &GatewayBackendSpec,
    is_tls: bool,
    base: &Path,
) -> Option<Transport> {
    let http2 = spec.protocol == BackendProtocol::HTTP2;
    let mut authorities = None;
    let mut name = None;
    if let Some(tls) = &spec.tls {
        name = match &tls.server_name {
            Some(name) => {
                let parsed = ServerName::try_from(name.clone());
                let parsed =
                    parsed.map_err(|_| format!("{name:?} is not a name that a certificate can have"));
                Some(problems.note("spec.tls.serverName", parsed)?)
            }
            None => None,
        };
        authorities = match (&tls.ca, &tls.ca_file) {
            (Some(_), Some(_)) => {
                problems.add("spec.tls", "has both ca and caFile");
                None
            }
            (Some(pem), None) => Some(("spec.tls.ca", pem.clone().into_bytes())),
            (None, Some(file)) => {
                let read = std::fs::read(base.join(file)).map_err(|error| format!("{file}: {error}"));
                Some(("spec.tls.caFile", problems.note("spec.tls.caFile", read)?))
            }
            (None, None) => None,
        };
    }
    let tls = match is_tls {
        true => {
            let field = authorities.as_ref().map_or("spec.tls", |(field, _)| field);
            let roots = system_roots(authorities.as_ref().map(|(_, pem)| pem.as_slice()));
            let config = roots.and_then(|roots| client_config(roots, http2));
            Some((problems.note(field, config)?, name.clone()))
        }
        false => None,
    };
    let mut hasher = DefaultHasher::new();
    (http2, is_tls, format!("{name:?}"), &authorities).hash(&mut hasher);
    Some(Transport {
        http2,
        tls,
        connect_timeout: problems.positive(
            "spec.connectTimeout",
            spec.connect_timeout.as_ref(),
            Duration::from_secs(5),
        ),
        idle_timeout: problems.positive(
            "spec.idleTimeout",
            spec.idle_timeout.as_ref(),
            Duration::from_secs(60),
        ),
        max_connections: spec.limits.connections.and_then(|most| u32::try_from(most).ok()),
        epoch: hasher.finish(),
    })
}

fn balance(problems: &mut Problems, spec: &GatewayBackendSpec, addresses: &[(String, u32)]) -> BalanceBy {
    let wanted = &spec.balance;
    if wanted.policy != BalancePolicy::Hash && (wanted.header.is_some() || wanted.cookie.is_some()) {
        problems.add("spec.balance", "header and cookie are for type Hash");
    }
    match wanted.policy {
        BalancePolicy::RoundRobin => {
            BalanceBy::turns(&addresses.iter().map(|(_, weight)| *weight).collect::<Vec<_>>())
        }
        BalancePolicy::LeastRequest => BalanceBy::LeastRequest,
        BalancePolicy::Hash => BalanceBy::Hash(match (&wanted.header, &wanted.cookie) {
            (Some(header), None) => match problems.header_name("spec.balance.header", header) {
                Some(name) => HashBy::Header(name),
                None => HashBy::Address,
            },
            (None, Some(cookie)) => HashBy::Cookie(cookie.as_str().into()),
            (None, None) => HashBy::Address,
            (Some(_), Some(_)) => {
                problems.add("spec.balance", "has both header and cookie");
                HashBy::Address
            }
        }),
    }
}

/// Whether it is TLS, `host:port`, and the path without the slash at its end.
fn read_url(text: &str) -> Result<(bool, String, String), String> {
    let wrong = || format!("{text:?} is not a URL such as http://127.0.0.1:9000 or https://example.com");
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let tls = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(wrong()),
    };
    let authority =
        uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(wrong)?;
    if uri.query().is_some() {
        return Err(format!("{text:?} has a query"));
    }
    let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
    Ok((tls, format!("{}:{port}", authority.host()), uri.path().trim_end_matches('/').to_owned()))
}

fn read_address(text: &str) -> Result<String, String> {
    let authority: Option<http::uri::Authority> = text.parse().ok();
    match authority.filter(|authority| authority.port_u16().is_some() && !text.contains('@')) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("{text:?} is not an address such as 10.0.0.1:8080")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(states: &[Arc<EndpointState>]) -> Vec<&str> {
        states.iter().map(|state| &*state.address).collect()
    }

    #[test]
    fn servers_that_come_back_are_known_still() {
        let mut learned = Learned::default();
        let first = learned.adopt(["a:1", "b:1"].into_iter());
        first[0].set_healthy(false);
        assert!(Arc::ptr_eq(&learned.adopt(["b:1", "b:1"].into_iter())[1], &first[1]));
        assert_eq!(addresses(&learned.former), ["a:1"]);
        let back = learned.adopt(["a:1"].into_iter());
        assert!(Arc::ptr_eq(&back[0], &first[0]));
        assert!(back[0].is_healthy());
        assert_eq!(addresses(&learned.former), ["b:1"]);
    }

    #[test]
    fn only_the_last_servers_that_left_are_remembered() {
        let mut learned = Learned::default();
        for number in 0..100 {
            learned.adopt([&*format!("a:{number}")].into_iter());
        }
        assert_eq!(learned.endpoints.len(), 1);
        let former: Vec<String> = (99 - MOST_FORMER..99).map(|number| format!("a:{number}")).collect();
        assert_eq!(addresses(&learned.former), former);
    }
}
