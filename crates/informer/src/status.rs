use watchkeeper_core::Error;

/// The status of one source of an informer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceStatus {
    /// The number of the source, from [`Informer::add_source`](crate::Informer::add_source).
    pub id: SourceId,
    /// The source's name.
    pub name: String,
    /// The present phase.
    pub phase: Phase,
    /// Whether the source has ever delivered a complete snapshot.
    pub synced: bool,
    /// The error of the last feed; `None` as soon as the source delivers again.
    pub error: Option<Error>,
}

/// Names one source of an informer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub(crate) u64);

/// The phase of a reflector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// A snapshot was asked for, or is being received.
    Snapshot,
    /// The store is up to date and follows the source.
    Following,
    /// The source failed, and is asked again after a back-off.
    Waiting,
}
