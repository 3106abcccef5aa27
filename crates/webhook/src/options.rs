use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use watchkeeper_connection::Locality;

use crate::certificates::Rotation;
use crate::configuration::Endpoint;

/// The port on which webhooks are served in a cluster: that of controller-runtime.
pub const PORT: u16 = 9443;
/// The port of the Service in front of them.
const SERVICE_PORT: u16 = 443;

/// How the webhooks of a program are served, and how an API server reaches them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WebhookOptions {
    /// The address to listen on. Default: port 9443 in a cluster, a free port of this machine otherwise.
    pub address: Option<SocketAddr>,
    /// How an API server reaches the webhooks.
    pub reached: Reached,
    /// The certificates of the server.
    pub certificates: Certificates,
}

/// How an API server reaches the webhooks of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reached {
    /// In a pod, through the Service `NAME-webhook` of its namespace. Beside an API server of the same machine, and in tests, directly;
    /// a server at a loopback address is asked whether it is on this machine, since a tunnel has such an address, too.
    /// From anywhere else not at all, until somebody says how: the log says what it takes.
    #[default]
    Automatically,
    /// Through this Service in the program's own namespace, at port 443.
    Service(String),
    /// Under this URL, such as that of a tunnel: `https://laptop.example.com:9443`.
    Url(String),
    /// As configurations say that are not made by the program.
    Elsewhere,
}

/// The certificates of a webhook server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Certificates {
    /// Made by the program itself, and replaced in time.
    Own(Rotation),
    /// Files `tls.crt` and `tls.key` in this folder, as a Secret of cert-manager has them, read again when they change. If there is a
    /// `ca.crt`, its authorities are added to those that configurations show; if not, or if a configuration is annotated for somebody who
    /// injects them, bundles are left alone.
    Files(PathBuf),
}

impl Default for Certificates {
    fn default() -> Self {
        Self::Own(Rotation::default())
    }
}

/// What follows from the options and from where the API server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) address: SocketAddr,
    /// Another address, if that one is taken.
    pub(crate) or_any_port: bool,
    pub(crate) way: Way,
    /// Whether the way is right only if the API server is where its address says.
    pub(crate) is_supposed: bool,
    /// How long it is served on after a stop has begun: API servers hear of that a bit later.
    pub(crate) linger: Duration,
}

/// How an API server comes to the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Through a Service of the namespace, to any of several replicas.
    Service(String),
    /// Directly, at the address that is listened on.
    Here,
    /// Under this URL.
    Url(String),
    /// As others say.
    Elsewhere,
    /// Not.
    Not,
}

/// How long the removal of configurations may take when nobody serves them any more.
pub(crate) const WITHDRAW_TIMEOUT: Duration = Duration::from_secs(3);
/// How long reviews that run may take to end after the last one was accepted.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

impl WebhookOptions {
    /// The time that a stop takes at most, once it has begun: configurations that nobody else serves are removed, API servers hear that
    /// others are to be asked, and reviews that run end.
    pub fn stop_time(&self, locality: Locality) -> Duration {
        // Neither depends on the name of the program.
        let plan = self.plan("", locality);
        let withdraw = if plan.way.is_alone() { WITHDRAW_TIMEOUT } else { Duration::ZERO };
        withdraw + plan.linger + DRAIN_TIMEOUT
    }

    pub(crate) fn plan(&self, name: &str, locality: Locality) -> Plan {
        let way = match (&self.reached, locality) {
            (Reached::Automatically, Locality::Pod) => Way::Service(service_name(name)),
            (Reached::Automatically, Locality::Process | Locality::Machine) => Way::Here,
            (Reached::Automatically, _) => Way::Not,
            (Reached::Service(name), _) => Way::Service(name.clone()),
            (Reached::Url(url), _) => Way::Url(url.clone()),
            (Reached::Elsewhere, _) => Way::Elsewhere,
        };
        let in_pod = locality == Locality::Pod || matches!(way, Way::Service(_));
        let host = if in_pod { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
        let port = if way == Way::Here { 0 } else { PORT };
        Plan {
            address: self.address.unwrap_or_else(|| (host, port).into()),
            or_any_port: self.address.is_none() && way == Way::Not,
            is_supposed: way == Way::Here && locality == Locality::Machine,
            linger: if in_pod { Duration::from_secs(5) } else { Duration::ZERO },
            way,
        }
    }
}

/// The Service in front of the webhooks of a program.
pub fn service_name(program: &str) -> String {
    format!("{program}-webhook")
}

/// The Secret with the authorities of a program's webhooks.
pub fn secret_name(program: &str) -> String {
    format!("{program}-webhook-authorities")
}

impl Way {
    /// Whether this process is the only one to serve the configurations.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(self, Self::Here | Self::Url(_))
    }

    /// Where an API server asks, if it is known.
    pub(crate) fn endpoint(&self, namespace: &str, address: SocketAddr) -> Option<Endpoint> {
        match self {
            Self::Service(name) => Some(Endpoint::Service {
                namespace: namespace.to_owned(),
                name: name.clone(),
                port: SERVICE_PORT,
            }),
            Self::Here => Some(Endpoint::Url(format!("https://{address}"))),
            Self::Url(url) => Some(Endpoint::Url(url.clone())),
            Self::Elsewhere | Self::Not => None,
        }
    }

    /// The names that a certificate has to have.
    pub(crate) fn names(&self, namespace: &str, address: SocketAddr) -> Vec<String> {
        match self {
            Self::Service(name) => {
                let short = format!("{name}.{namespace}.svc");
                vec![short.clone(), format!("{short}.cluster.local"), format!("{name}.{namespace}")]
            }
            Self::Url(url) => {
                let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                let host = rest.split('/').next().unwrap_or_default();
                let host = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
                    Some((address, _)) => address,
                    None => host.split(':').next().unwrap_or_default(),
                };
                vec![host.to_owned(), "127.0.0.1".to_owned(), "localhost".to_owned()]
            }
            Self::Here | Self::Elsewhere | Self::Not => {
                vec![address.ip().to_string(), "127.0.0.1".to_owned(), "localhost".to_owned()]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(options: &WebhookOptions, locality: Locality) -> (String, Way) {
        let plan = options.plan("shop", locality);
        (plan.address.to_string(), plan.way)
    }

    #[test]
    fn where_the_api_server_is_says_how_it_comes_here() {
        let options = WebhookOptions::default();
        let service = Way::Service("shop-webhook".into());
        assert_eq!(plan(&options, Locality::Pod), ("0.0.0.0:9443".into(), service.clone()));
        assert_eq!(plan(&options, Locality::Process), ("127.0.0.1:0".into(), Way::Here));
        assert_eq!(plan(&options, Locality::Machine), ("127.0.0.1:0".into(), Way::Here));
        assert!(options.plan("shop", Locality::Machine).is_supposed);
        assert!(!options.plan("shop", Locality::Process).is_supposed);
        assert_eq!(plan(&options, Locality::Elsewhere), ("127.0.0.1:9443".into(), Way::Not));
        let tunnel = WebhookOptions { reached: Reached::Url("https://a.example:1/x".into()), ..options };
        let (address, way) = plan(&tunnel, Locality::Elsewhere);
        assert_eq!(address, "127.0.0.1:9443");
        assert_eq!(way.names("default", address.parse().unwrap())[0], "a.example");
        assert_eq!(Way::Url("https://[::1]:9/".into()).names("d", address.parse().unwrap())[0], "::1");
        assert_eq!(service.names("s", address.parse().unwrap())[0], "shop-webhook.s.svc");
    }
}
