//! From nothing to the first object, and what that takes.

use std::fs;
use std::process::Command;
use std::time::Duration;

use watchkeeper_bench_report::{Samples, Unit};
use watchkeeper_bench_target::{Kind, Memory, Result};

use super::{Bench, timed};
use crate::wanted::Wanted;

/// How long a server has nothing to do before it is called idle.
const IDLE: Duration = Duration::from_millis(500);

impl Bench {
    pub(super) async fn start(&mut self) -> Result<()> {
        eprintln!("measuring: starts");
        let [mut ready, mut idle] = [const { (Vec::new(), Vec::new()) }; 2];
        for round in 0..self.size.rounds {
            // The first of each is there already.
            if round > 0 {
                self.anew().await?;
            }
            tokio::time::sleep(IDLE).await;
            ready.0.push(self.ours.ready.as_secs_f64());
            idle.0.push(self.ours.memory(Memory::Now)?);
            if let Ok(peer) = &self.peer {
                ready.1.push(peer.ready.as_secs_f64());
                idle.1.push(peer.memory(Memory::Now)?);
            }
        }
        let what = "process started to /readyz served, empty data directory";
        let rows = [
            (Wanted::new(Unit::Seconds, what).at_most(0.05), ready),
            (Wanted::new(Unit::Bytes, "memory (RSS) when idle").at_most(20e6), idle),
        ];
        for (row, (ours, peer)) in rows {
            let peer = peer.into_iter().collect();
            self.report.rows.push(row.found(self.group, ours.into_iter().collect(), Ok(peer), None));
        }
        let size = Samples::from(self.stripped()?);
        self.add(Wanted::new(Unit::Bytes, "binary, stripped").at_most(40e6), size);
        let mut serial = 0;
        let row = Wanted::new(Unit::Seconds, "definition created to first instance created").at_most(0.03);
        self.alternate([row], async |side| {
            serial += 1;
            Ok([timed(side.define(&Kind::new(format!("first{serial}")))).await?])
        })
        .await;
        Ok(())
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
