//! One side of the comparison.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use watchkeeper_bench_target::{Peer, Result, Target};

use crate::crowd::Crowd;
use crate::size::Size;

/// What ours is compared with.
#[derive(Clone)]
pub(crate) enum Other {
    /// kube-apiserver with etcd.
    Real(Peer),
    /// Another program of ours, of which as much is asked.
    Before(PathBuf),
}

/// A server, and how much is asked of it.
pub(crate) struct Side {
    target: Target,
    pub(crate) size: Size,
    /// Those who watch it, while that is what is measured.
    pub(crate) crowd: Option<Crowd>,
    /// How many changes they are told of before the next are made, at the most.
    pub(crate) burst: usize,
}

impl Side {
    pub(crate) async fn ours(binary: &Path, size: Size) -> Result<Self> {
        Ok(Self { target: Target::ours(binary).await?, size, crowd: None, burst: usize::MAX })
    }

    /// Three of ours over three members of etcd.
    pub(crate) async fn three_ours(binary: &Path, size: Size) -> Result<Self> {
        Ok(Self { target: Target::three_ours(binary).await?, size, crowd: None, burst: usize::MAX })
    }

    /// Three of the other over three members of etcd.
    pub(crate) async fn three_others(other: &Other, size: Size) -> Result<Self> {
        let peer = match other {
            Other::Real(peer) => peer,
            Other::Before(binary) => return Self::three_ours(binary, size).await,
        };
        let target = Target::three_peers(peer).await?;
        Ok(Self { target, size: size.for_peer(), crowd: None, burst: usize::MAX })
    }

    pub(crate) async fn other(other: &Other, size: Size) -> Result<Self> {
        let peer = match other {
            Other::Real(peer) => peer,
            Other::Before(binary) => return Self::ours(binary, size).await,
        };
        Ok(Self { target: Target::peer(peer).await?, size: size.for_peer(), crowd: None, burst: usize::MAX })
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
