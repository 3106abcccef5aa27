/// Metrics of an [`Election`](crate::Election), at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElectionMetrics {
    /// Whether this candidate leads: `leader_election_master_status`.
    pub leading: bool,
    /// Renewals for which the lease had to be read first: `leader_election_slowpath_total`.
    pub slow_renewals: u64,
    /// Acquisitions and renewals of the lease.
    pub renewals: u64,
    /// Requests that failed. A conflict with another candidate is not a failure.
    pub failures: u64,
    /// Terms of this candidate as the leader.
    pub terms: u64,
}
