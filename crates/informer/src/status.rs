use watchkeeper_core::Error;

/// How an informer is doing with one of its sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    /// Which source, as [`Informer::add_source`](crate::Informer::add_source) numbered it.
    pub id: SourceId,
    /// The source's name.
    pub name: String,
    /// The present phase.
    pub phase: Phase,
    /// Whether it has delivered a complete snapshot, ever.
    pub synced: bool,
    /// Why the last feed failed; `None` as soon as the source delivers again.
    pub error: Option<Error>,
}

/// Names one source of an informer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub(crate) u64);

/// The phase of a reflector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has asked for a snapshot, or is receiving one.
    Snapshot,
    /// It is up to date and follows the source.
    Following,
    /// The source failed; it waits before it asks again.
    Waiting,
}
