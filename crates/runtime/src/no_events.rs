//! What is in the place of events in programs that are built without the feature `events`: nothing is recorded.

use std::time::Duration;

use watchkeeper_client::Kind;
use watchkeeper_sources::kubernetes::Connection;
use watchkeeper_supervision::Supervisor;

pub(crate) struct Events;

impl Events {
    pub(crate) fn start(_: Connection, _: &str, _: &Supervisor) -> Self {
        Self
    }

    pub(crate) fn recorder(&self) -> Recorder {
        Recorder
    }

    pub(crate) async fn shutdown(self, _: Duration) {}
}

#[derive(Clone)]
pub(crate) struct Recorder;

pub(crate) fn record_hot_loop<K: Kind>(_: &Recorder, _: &K, _: String) {}
