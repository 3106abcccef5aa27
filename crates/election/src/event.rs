use std::fmt;

use crate::Leadership;

/// An event of an election.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ElectionEvent {
    /// Another candidate leads, or none does. Sent whenever the leader changes.
    Standby {
        /// The leader, as far as it is known.
        leader: Option<String>,
    },
    /// This candidate leads.
    Leading(Leadership),
    /// This candidate does not lead any more.
    Lost(Loss),
}

/// The reason why a candidate lost the lead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// The lease is held by another candidate.
    Taken {
        /// The new holder; may be none, or a candidate with the same name.
        by: Option<String>,
    },
    /// The lease could not be renewed in time.
    NotRenewed {
        /// The error of the last attempt, if there was one.
        last: Option<String>,
    },
    /// The lease was released.
    Released,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { by: Some(by) } => write!(f, "the lease is held by {by}"),
            Self::Taken { by: None } => f.write_str("the lease was taken away"),
            Self::NotRenewed { last: Some(last) } => {
                write!(f, "the lease could not be renewed in time: {last}")
            }
            Self::NotRenewed { last: None } => f.write_str("the lease could not be renewed in time"),
            Self::Released => f.write_str("the lease was released"),
        }
    }
}
