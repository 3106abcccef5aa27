//! The events that controllers record about objects.

use std::time::Duration;

use watchkeeper_client::{Kind, kind_of};
use watchkeeper_events::{EventOptions, ObjectRef};
use watchkeeper_sources::kubernetes::Connection;
use watchkeeper_supervision::Supervisor;

pub(crate) use watchkeeper_events::{Event, Recorder};

/// The task that writes them.
pub(crate) struct Events(watchkeeper_events::Events);

impl Events {
    /// Starts to write what a program of this name records.
    pub(crate) fn start(connection: Connection, program: &str, supervisor: &Supervisor) -> Self {
        let mut options = EventOptions::new(program);
        options.supervisor = supervisor.clone();
        Self(watchkeeper_events::Events::start(connection, options))
    }

    pub(crate) fn recorder(&self) -> Recorder {
        self.0.recorder()
    }

    /// Writes what is pending, if that can be done in time.
    pub(crate) async fn shutdown(self, within: Duration) {
        self.0.shutdown(within).await;
    }
}

/// Records an event about an object.
pub(crate) fn record<K: Kind>(recorder: &Recorder, object: &K, event: Event) {
    recorder.event(&reference(object), event);
}

/// Records that an object keeps its own controller busy.
pub(crate) fn record_hot_loop<K: Kind>(recorder: &Recorder, object: &K, note: String) {
    record(recorder, object, Event::warning("HotLoop", "Reconcile", note));
}

/// The object that an event is about.
fn reference<K: Kind>(object: &K) -> ObjectRef {
    let meta = object.meta();
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let (api_version, kind) = kind_of(object);
    ObjectRef::new(api_version, kind, text(&meta.name))
        .in_namespace(text(&meta.namespace))
        .with_uid(text(&meta.uid))
}
