//! Webhooks that are a reason to read the source of a URL again.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::stream;
use parking_lot::Mutex;
use watchkeeper_core::{
    Capabilities, Error, Feed, ObjectStatus, Source, SourceGauge, Start, StatusWritten, Version,
};
use watchkeeper_front::{Front, Limits, Listener};
use watchkeeper_sources::webhook::{Hooked, Receiver};

use super::{Asked, Settings};

/// What can be set for the source of any URL, in `settings` only:
///
/// - `webhookListen`: the address on which deliveries are received;
/// - `webhookSecretFile`: the secrets that they are signed with, one in each line;
/// - `webhookScheme`: how they are signed, `standard` or `github`.
pub(super) const SETTINGS: &[&str] = &["webhookListen", "webhookSecretFile", "webhookScheme"];

/// Connections at a time. Who sends webhooks does not wait for long.
const CONNECTIONS: usize = 256;

/// The source as it is, or with webhooks if they are asked for. Does no I/O.
pub(super) fn with_webhooks(source: Arc<dyn Source>, asked: &Asked<'_>) -> Option<Arc<dyn Source>> {
    let settings = Settings::given(asked);
    let (secrets, scheme) = (settings.get("webhookSecretFile"), settings.get("webhookScheme"));
    let Some(listen) = settings.get("webhookListen") else {
        if let Some(node) = secrets.or(scheme) {
            node.wrong("is for webhooks: say where they are received with webhookListen");
            return None;
        }
        return Some(source);
    };
    let Ok(address) = listen.text()?.parse() else {
        listen.wrong("has to be an address and a port, as 127.0.0.1:8088");
        return None;
    };
    let Some(secrets) = secrets else {
        listen.wrong("webhooks are believed by their signatures: webhookSecretFile is missing");
        return None;
    };
    let secrets = secrets.path(asked.base)?;
    let scheme = scheme.map_or(Some("standard"), |node| node.word(&["standard", "github"]))?;
    let receiver = match scheme {
        "github" => Receiver::github(secrets),
        _ => Receiver::standard(secrets),
    };
    let hooked = receiver.hints_for(Arc::clone(&source));
    Some(Arc::new(Webhooks { source, hooked, receiver, address, front: Mutex::default() }))
}

/// A source with an address at which webhooks are received. It listens from the first feed on, for as long as it is there.
struct Webhooks {
    source: Arc<dyn Source>,
    hooked: Hooked<Arc<dyn Source>>,
    receiver: Receiver,
    address: SocketAddr,
    front: Mutex<Option<Front>>,
}

impl Webhooks {
    fn listen(&self) -> Result<(), Error> {
        let mut front = self.front.lock();
        if front.is_none() {
            let started = Listener::bind(self.address).and_then(|listener| {
                let limits = Limits::of_connections(2 * CONNECTIONS);
                Front::builder(self.receiver.clone()).http(listener).limits(limits).task("webhooks").start()
            });
            let started = started.map_err(|error| Error::Unavailable {
                answered: false,
                reason: format!("webhooks cannot be received on {}: {error}", self.address),
            });
            *front = Some(started?);
        }
        Ok(())
    }
}

impl Source for Webhooks {
    fn name(&self) -> &str {
        self.source.name()
    }

    /// That of the source: webhooks change when it is read, and not what there is.
    fn identity(&self) -> String {
        self.source.identity()
    }

    fn capabilities(&self) -> Capabilities {
        self.hooked.capabilities()
    }

    fn open(&self, start: Start) -> Feed {
        match self.listen() {
            Ok(()) => self.hooked.open(start),
            Err(error) => Box::pin(stream::iter([Err(error)])),
        }
    }

    fn origin(&self, version: &Version) -> Option<Arc<str>> {
        self.hooked.origin(version)
    }

    fn drift(&self) -> u64 {
        self.hooked.drift()
    }

    fn gauges(&self) -> Vec<SourceGauge> {
        self.hooked.gauges()
    }

    fn write_status(&self, status: ObjectStatus) -> StatusWritten {
        self.hooked.write_status(status)
    }
}
