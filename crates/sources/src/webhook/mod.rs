//! Webhooks as triggers of another source.
//!
//! A webhook may be lost, doubled, late, out of order, or forged. So a [`Receiver`] verifies it, and what it says is at most a reason to look: it
//! makes a [`Hooked`] source read again what another source has. Only if the payload carries a version that can be compared is it taken
//! for the state itself ([`Receiver::states_of`]), and then the other source still has the last word.

mod doubles;
mod feed;
mod receiver;
mod secrets;
mod signature;
mod states;

use std::sync::Arc;

use watchkeeper_core::{
    Capabilities, Feed, Follow, ObjectStatus, Source, SourceGauge, Start, StatusWritten, Version,
};

pub use receiver::Receiver;
pub use states::Payload;

/// Another source, read again when a webhook says so.
///
/// It delivers what the other source delivers. After a delivery of its [`Receiver`], it opens a new feed of the other source and
/// passes on its snapshot; deliveries that come together are one reason to look. A source that
/// [polls](Follow::Poll) is still asked at its interval, so that a webhook that was lost costs time and nothing else.
#[derive(Clone, Debug)]
pub struct Hooked<S> {
    source: Arc<S>,
    receiver: Receiver,
    payload: Option<Arc<Payload>>,
}

impl<S: Source> Hooked<S> {
    fn new(source: S, receiver: Receiver, payload: Option<Payload>) -> Self {
        Self { source: Arc::new(source), receiver, payload: payload.map(Arc::new) }
    }
}

impl<S: Source> Source for Hooked<S> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn identity(&self) -> String {
        format!("{} hooked {:?} {:?}", self.source.identity(), self.receiver, self.payload)
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.source.capabilities();
        if capabilities.follow != Follow::Log {
            capabilities.follow = Follow::Hints;
        }
        capabilities
    }

    fn open(&self, start: Start) -> Feed {
        let source: Arc<dyn Source> = Arc::clone(&self.source) as Arc<dyn Source>;
        feed::open(source, self.receiver.listen(), self.payload.clone(), start)
    }

    fn origin(&self, version: &Version) -> Option<Arc<str>> {
        self.source.origin(version)
    }

    fn drift(&self) -> u64 {
        self.source.drift()
    }

    fn gauges(&self) -> Vec<SourceGauge> {
        self.source.gauges()
    }

    fn write_status(&self, status: ObjectStatus) -> StatusWritten {
        self.source.write_status(status)
    }
}
