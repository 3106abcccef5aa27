use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use watchkeeper_core::Key;
use watchkeeper_front::ServerCertificate;

use super::Certificate;
use super::fields::Problems;
use crate::kinds::{GatewayListenerSpec, ListenerCertificate, ListenerProtocol};
use crate::net::{HostPattern, Networks};
use crate::object::{Input, Problem};
use crate::table::{HostCertificate, Listener, SocketSettings};

/// What a listener needs to know of others.
pub(super) struct Around<'a> {
    /// Where relative files are.
    pub(super) base: &'a Path,
    /// The certificate of a Secret.
    pub(super) secret: &'a dyn Fn(&Key) -> Certificate,
    /// The pairs of files that the listener serves.
    pub(super) before: Option<&'a Pairs>,
    /// The address that takes the place of the one in the object.
    pub(super) address: Option<SocketAddr>,
}

/// The pairs of files of a listener that fit together, by the names of certificate and key.
pub(super) type Pairs = HashMap<(String, String), ServerCertificate>;

/// A listener, the Secrets that it refers to, and what is wrong with those.
pub(super) struct Compiled {
    pub(super) listener: Listener,
    pub(super) secrets: Vec<Key>,
    pub(super) pairs: Pairs,
    pub(super) unresolved: Vec<Problem>,
}

pub(super) fn compile(input: &Input, around: &Around<'_>) -> Result<Compiled, Vec<Problem>> {
    let spec: GatewayListenerSpec = input.checked()?;
    let mut problems = Problems::default();
    let key = &input.id.key;
    let address = spec.address.parse::<IpAddr>();
    let address =
        address.map_err(|_| format!("{:?} is not an IP address such as 127.0.0.1 or ::", spec.address));
    let address = problems.note("spec.address", address).unwrap_or(IpAddr::from([127, 0, 0, 1]));
    let port = u16::try_from(spec.port).unwrap_or(0);
    let hostname = match &spec.hostname {
        Some(text) => problems.note("spec.hostname", HostPattern::parse(text)).unwrap_or(HostPattern::Any),
        None => HostPattern::Any,
    };
    let trusted = Networks::parse(&spec.trusted_proxies)
        .map_err(|(at, message)| problems.add(format!("spec.trustedProxies[{at}]"), message))
        .unwrap_or_default();
    let mut secrets = Vec::new();
    let mut unresolved = Vec::new();
    let mut certificates = Vec::new();
    let wanted = spec.tls.as_ref().map_or(&[][..], |tls| &tls.certificates);
    match (spec.protocol, wanted) {
        (ListenerProtocol::HTTPS, []) => problems.add("spec.tls.certificates", "is empty: HTTPS needs one"),
        (ListenerProtocol::HTTP, [_, ..]) => problems.add("spec.tls", "is for the protocol HTTPS"),
        _ => {}
    }
    let mut pairs = Pairs::new();
    for (at, wanted) in wanted.iter().enumerate() {
        let field = format!("spec.tls.certificates[{at}]");
        let hosts = wanted.hosts.iter().enumerate().filter_map(|(index, host)| {
            problems.note(format!("{field}.hosts[{index}]"), HostPattern::parse(host))
        });
        let hosts = hosts.collect();
        let namespace = key.namespace().unwrap_or_default();
        let (field, found) = match wanted {
            ListenerCertificate {
                secret_name: Some(name), certificate_file: None, key_file: None, ..
            } => {
                let secret = Key::new(Some(namespace), name);
                let found = (around.secret)(&secret);
                secrets.push(secret);
                (format!("{field}.secretName"), found)
            }
            ListenerCertificate {
                secret_name: None,
                certificate_file: Some(chain),
                key_file: Some(key),
                ..
            } => {
                let names = (chain.clone(), key.clone());
                let before = around.before.and_then(|before| before.get(&names)).cloned();
                // One of both may be written already, and the other not yet.
                let found = Certificate::read(read_pair(around.base, chain, key), before);
                pairs.extend(found.served.clone().map(|served| (names, served)));
                (format!("{field}.certificateFile"), found)
            }
            _ => {
                problems.add(field, "needs secretName, or certificateFile and keyFile");
                continue;
            }
        };
        unresolved.extend(found.problem.map(|message| Problem::new(field, message)));
        certificates.extend(found.served.map(|certificate| HostCertificate { hosts, certificate }));
    }
    let limits = &spec.limits;
    let socket = SocketSettings {
        protocol: spec.protocol,
        connections: limits.connections.and_then(|most| usize::try_from(most).ok()),
        streams: limits.streams.and_then(|most| u32::try_from(most).ok()),
        idle: problems.positive("spec.limits.idle", limits.idle.as_ref(), Duration::from_secs(75)),
        headers: problems.positive("spec.limits.headers", limits.headers.as_ref(), Duration::from_secs(10)),
        proxy_protocol: spec.proxy_protocol,
    };
    let listener = Listener {
        key: key.clone(),
        gateway: None,
        created: input.created.clone(),
        address: around.address.unwrap_or(SocketAddr::new(address, port)),
        protocol: spec.protocol,
        hostname,
        certificates: certificates.into(),
        namespaces: spec.namespaces.into(),
        trusted,
        forwarded: spec.forwarded,
        max_body: limits.body_bytes.and_then(|bytes| u64::try_from(bytes).ok()),
        socket,
    };
    problems.finish(Compiled { listener, secrets, pairs, unresolved })
}

fn read_pair(base: &Path, chain: &str, key: &str) -> Result<ServerCertificate, String> {
    let read = |file: &str| std::fs::read(base.join(file)).map_err(|error| format!("{file}: {error}"));
    ServerCertificate::from_pem(&read(chain)?, &read(key)?).map_err(|error| error.to_string())
}
