use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Metrics of a [`Front`](crate::Front). Clones share them.
///
/// | metric | labels | |
/// |---|---|---|
/// | `connections` | `client`: `authenticated`, `stranger` | Connections that are open. |
/// | `connections_dropped_total` | `reason`: `full`, `address_full`, `evicted`, `handshake`, `idle` | Connections that the front, not their client, ended, by the limit that did. |
/// | `requests_total` | `code` | Requests that were answered. |
/// | `tls_handshake_failures_total` | | Handshakes that failed: certificates that are not trusted, garbage, clients that left. Those that took too long are among the connections dropped. |
#[derive(Clone, Debug, Default)]
pub struct AccessMetrics {
    open: Family<Of, Gauge>,
    dropped: Family<Why, Counter>,
    requests: Family<Answer, Counter>,
    handshake_failures: Counter,
    malformed: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    client: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

/// Why the server, and not its client, ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// There were as many connections as may be.
    Full,
    /// There were as many of its address as may be.
    AddressFull,
    /// It was a stranger's, and made room for another.
    Evicted,
    /// The TLS handshake took too long.
    #[cfg_attr(not(feature = "tls"), allow(dead_code, reason = "there are no handshakes"))]
    Handshake,
    /// Nothing was asked for too long.
    Idle,
}

impl Dropped {
    fn label(self) -> Why {
        let reason = match self {
            Self::Full => "full",
            Self::AddressFull => "address_full",
            Self::Evicted => "evicted",
            Self::Handshake => "handshake",
            Self::Idle => "idle",
        };
        Why { reason }
    }
}

impl AccessMetrics {
    /// Adds these metrics to a registry. For a prefix or labels of your own, give it a
    /// [sub-registry](Registry::sub_registry_with_prefix).
    pub fn register(&self, registry: &mut Registry) {
        registry.register("connections", "Connections that are open", self.open.clone());
        let help = "Connections that the server refused or closed, by reason";
        registry.register("connections_dropped", help, self.dropped.clone());
        registry.register("requests", "Requests that were answered, by code", self.requests.clone());
        registry.register(
            "tls_handshake_failures",
            "TLS handshakes that failed",
            self.handshake_failures.clone(),
        );
    }

    /// HTTP/1 requests that could not be read, or not in one way only, requests whose [bodies are malformed](crate::BodyError::Malformed), and HTTP/2 connections
    /// that broke the protocol or flooded the server, so far. Streams of HTTP/2 that are reset because of their heads are not among them: neither hyper nor
    /// the service sees these. None of it is among the metrics of the registry.
    pub fn malformed_so_far(&self) -> u64 {
        self.malformed.get()
    }

    /// Connections that are open.
    pub fn connections(&self) -> i64 {
        let open = |client| self.open.get_or_create(&Of { client }).get();
        open("authenticated") + open("stranger")
    }

    pub(crate) fn open(&self, [authenticated, strangers]: &[usize; 2]) {
        for (client, count) in [("authenticated", authenticated), ("stranger", strangers)] {
            self.open.get_or_create(&Of { client }).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
    }

    pub(crate) fn dropped(&self, reason: Dropped) {
        self.dropped.get_or_create(&reason.label()).inc();
    }

    pub(crate) fn answered(&self, code: u16) {
        self.requests.get_or_create(&Answer { code }).inc();
    }

    pub(crate) fn malformed(&self) {
        self.malformed.inc();
    }

    #[cfg(feature = "tls")]
    pub(crate) fn handshake_failed(&self) {
        self.handshake_failures.inc();
    }

    #[cfg(test)]
    #[cfg(feature = "http2")]
    pub(crate) fn dropped_so_far(&self, reason: Dropped) -> u64 {
        self.dropped.get_or_create(&reason.label()).get()
    }
}
