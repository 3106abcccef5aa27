//! Events: what users read with `kubectl events` about their objects.
//!
//! [`Recorder`] takes them, from anywhere, without waiting and without failing; [`Events`] owns the task that writes them.
//! The way of an event: a bounded queue, `series` (what is new, what is a repetition, what is too much), `writer` (requests
//! and retries).
//!
//! ```no_run
//! # async fn example(connection: watchkeeper_connection::Connection) {
//! use std::time::Duration;
//! use watchkeeper_events::{Event, Events, ObjectRef, EventOptions};
//!
//! let events = Events::start(connection, EventOptions::new("example.com/operator"));
//! let recorder = events.recorder();
//! let object = ObjectRef::new("example.com/v1", "Widget", "w").in_namespace("default");
//! recorder.event(&object, Event::normal("Created", "Create", "the widget was made"));
//! events.shutdown(Duration::from_secs(5)).await;
//! # }
//! ```

mod counts;
mod event;
mod events;
mod options;
mod series;
mod writer;

pub use counts::EventCounts;
pub use event::{Event, EventType, ObjectRef};
pub use events::{Events, Recorder};
pub use options::EventOptions;
