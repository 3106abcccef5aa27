use crate::Revision;

/// Statistics of a storage, for metrics. Counters start at zero when it is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The newest revision.
    pub revision: Revision,
    /// The oldest revision that can be asked for.
    pub oldest: Revision,
    /// Keys that exist.
    pub entries: usize,
    /// Events kept for watchers that begin in the past.
    pub events: usize,
    /// Those of them that are [packed](crate::Storage::pack).
    pub packed: usize,
    /// Open watches.
    pub watchers: usize,
    /// Commits that became a revision.
    pub commits: u64,
    /// Times the log was synced to the disk on behalf of commits. Fewer than commits: they share.
    pub syncs: u64,
    /// Bytes in the log that no checkpoint covers yet.
    pub log_bytes: u64,
    /// Checkpoints made.
    pub checkpoints: u64,
    /// Checkpoints that failed; the log grows until one succeeds.
    pub checkpoint_failures: u64,
    /// The reason why no commits are accepted, if so.
    pub halted: Option<String>,
    /// The state of the cluster, if the storage is shared.
    pub cluster: Option<ClusterStats>,
}

/// The state of a cluster that processes share, as one of them knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterStats {
    /// Whether this process does what only one of them should do.
    pub leading: bool,
    /// The revisions of the cluster that are not in this process yet.
    pub lag: Revision,
    /// The size of the database of a member on its disk.
    pub database_bytes: u64,
    /// The reason why nothing can be put, if so. Reads and deletions go on.
    pub full: Option<String>,
}
