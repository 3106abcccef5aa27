use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// What a [`Front`](super::Front) counts about its connections. A clone counts the same.
#[derive(Clone, Debug, Default)]
pub struct ConnectionCounts {
    open: Family<Of, Gauge>,
    dropped: Family<Why, Counter>,
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
pub(super) enum Dropped {
    /// There were as many connections as may be.
    Full,
    /// There were as many of its address as may be.
    AddressFull,
    /// It was a stranger's, and made room for another.
    Evicted,
    /// The TLS handshake took too long.
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

impl ConnectionCounts {
    /// Adds these counts to what a registry shows.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("watchkeeper_connections", "Connections that are open", self.open.clone());
        let help = "Connections that the server refused or closed, by reason";
        registry.register("watchkeeper_connections_dropped", help, self.dropped.clone());
    }

    pub(super) fn open(&self, [authenticated, strangers]: &[usize; 2]) {
        for (client, count) in [("authenticated", authenticated), ("stranger", strangers)] {
            self.open.get_or_create(&Of { client }).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
    }

    pub(super) fn dropped(&self, reason: Dropped) {
        self.dropped.get_or_create(&reason.label()).inc();
    }

    #[cfg(test)]
    pub(super) fn dropped_so_far(&self, reason: Dropped) -> u64 {
        self.dropped.get_or_create(&reason.label()).get()
    }
}
