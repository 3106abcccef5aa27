//! One side of the comparison.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use watchkeeper_bench_target::{Peer, Target};

use crate::size::Size;
use crate::table::Samples;
use watchkeeper_bench_target::Result;

/// A server, and how much is asked of it.
pub(crate) struct Side {
    target: Target,
    pub(crate) size: Size,
    /// CPU time per unit of work, as the rounds of a row note it.
    pub(crate) costs: Samples,
}

impl Side {
    pub(crate) async fn ours(binary: &Path, size: Size) -> Result<Self> {
        Ok(Self { target: Target::ours(binary).await?, size, costs: Samples::default() })
    }

    pub(crate) async fn peer(peer: &Peer, size: Size) -> Result<Self> {
        Ok(Self { target: Target::peer(peer).await?, size, costs: Samples::default() })
    }
}

impl Deref for Side {
    type Target = Target;

    fn deref(&self) -> &Target {
        &self.target
    }
}

impl DerefMut for Side {
    fn deref_mut(&mut self) -> &mut Target {
        &mut self.target
    }
}
