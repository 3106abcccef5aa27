/// Metrics of an [`Election`](crate::Election), at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElectionMetrics {
    /// Whether this candidate leads: `leader_election_master_status`.
    pub leading: bool,
    /// How often a leader had to read the lease before it could renew it: `leader_election_slowpath_total`.
    pub slow_renewals: u64,
    /// How often the lease was taken or renewed.
    pub renewals: u64,
    /// How many requests failed; that somebody else was faster is not a failure.
    pub failures: u64,
    /// How often this candidate became the leader.
    pub terms: u64,
}
