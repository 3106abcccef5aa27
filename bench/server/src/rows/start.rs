//! From nothing to the first object, and what that takes.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::Bench;
use crate::side::Side;
use crate::table::{Samples, Unit};
use watchkeeper_bench_target::Result;
use watchkeeper_bench_target::{Kind, Memory};

/// How often the server is started.
pub(crate) const STARTS: usize = 10;
/// How long a server has nothing to do before it is called idle.
const IDLE: Duration = Duration::from_millis(500);

impl Bench {
    pub(super) async fn start(&mut self) -> Result<()> {
        let (mut ready, mut idle) = (Samples::default(), Samples::default());
        for _ in 0..STARTS {
            let target = Side::ours(&self.binary, self.size).await?;
            ready.push(target.ready.as_secs_f64());
            tokio::time::sleep(IDLE).await;
            idle.push(target.memory(Memory::Now)?);
        }
        let peer = self.peer.as_ref().map(|peer| peer.ready.as_secs_f64());
        self.add(
            "process started to /readyz served, empty data directory",
            Unit::Seconds,
            Some(0.05),
            ready,
            peer,
        );
        let peer = self.peer.as_ref().map(|peer| peer.memory(Memory::Now)).transpose()?;
        self.add("memory (RSS) when idle", Unit::Bytes, Some(25e6), idle, peer);
        let size = [self.stripped()?].into_iter().collect();
        self.add("binary, stripped", Unit::Bytes, Some(40e6), size, None);

        let what = "definition created to first instance created";
        let mut serial = 0;
        self.alternate(what, Unit::Seconds, Some(0.03), async |target| {
            serial += 1;
            let kind = Kind::new(format!("first{serial}"));
            let begin = Instant::now();
            target.define(&kind).await?;
            Ok(begin.elapsed().as_secs_f64())
        })
        .await
    }

    fn stripped(&self) -> Result<f64> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("stripped");
        if !Command::new("strip").arg("-o").arg(&file).arg(&self.binary).status()?.success() {
            return Err("strip failed".into());
        }
        Ok(fs::metadata(file)?.len() as f64)
    }
}
