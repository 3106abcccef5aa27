/// How a [`Postgres`](super::Postgres) source is doing: of the feed that was opened last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// How many changes it found that nobody had told it of. Stays 0 unless notifications get lost, as with a trigger that is disabled, or
    /// changes are not published.
    pub drift: u64,
    /// How many snapshots were begun.
    pub snapshots: u64,
    /// How many row changes the log has had for us.
    pub changes: u64,
    /// How far, in bytes of the log, what was confirmed to the server is behind what it has written. Export it as a metric: the server keeps at
    /// least this much of its log for us.
    pub lag_bytes: u64,
    /// The slot as the server reports it, read every [`rescan`](super::Postgres::rescan).
    pub slot: Option<Slot>,
}

/// A replication slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slot {
    /// Its name.
    pub name: String,
    /// How many bytes of the log it keeps from being removed.
    pub retained_bytes: u64,
    /// How many bytes may still be written before it is invalidated; `None` if there is no limit, which is how disks get full.
    pub safe_bytes: Option<u64>,
    /// `reserved`, `extended`, `unreserved` or `lost`.
    pub wal_status: String,
}
