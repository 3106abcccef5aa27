//! Durable creates: one client, and several that share fsyncs.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Bench, median};
use crate::side::Side;
use crate::table::{Samples, Unit};
use watchkeeper_bench_target::Result;
use watchkeeper_bench_target::{Ask, metric};

/// Clients that create at the same time; what kube-apiserver did with as many is what is required times five.
pub(super) const CLIENTS: usize = 16;

impl Bench {
    pub(super) async fn creates(&mut self) -> Result<()> {
        let disk = sync_time(self.size.requests).await?;
        self.add("disk: write 600 B and sync, p50", Unit::Seconds, None, [disk].into_iter().collect(), None);
        let kind = self.define("creates").await?;
        for (clients, required) in [(1, 5.0 * 174.0), (CLIENTS, 5.0 * 483.0)] {
            let mut syncs = Samples::default();
            let what =
                format!("durable creates, {clients} {}", if clients == 1 { "client" } else { "clients" });
            self.alternate(&what, Unit::Rate, Some(required), async |target| {
                let count = target.size.creates * if clients == 1 { 1 } else { 4 };
                let before = target.commits().await?;
                let cpu = target.cpu()?;
                let time = target.create(&kind, clients, count).await?;
                target.costs.push((target.cpu()? - cpu) / count as f64);
                // Only ours counts them.
                if let (Some(before), Some(after)) = (before, target.commits().await?) {
                    syncs.push((after.1 - before.1) / (after.0 - before.0));
                }
                Ok(count as f64 / time)
            })
            .await?;
            self.add(&format!("{what}: fsyncs per commit"), Unit::Number, None, syncs, None);
            self.add_costs(format!("{what}: CPU time of the server per create"));
        }
        Ok(())
    }
}

impl Side {
    /// Commits and syncs so far, if the server tells them.
    async fn commits(&mut self) -> Result<Option<(f64, f64)>> {
        let text = self.connection.call(Ask::get("/metrics")).await?.concat();
        let text = String::from_utf8_lossy(&text);
        let told = |name| metric(&text, name);
        Ok(told("watchkeeper_storage_commits").zip(told("watchkeeper_storage_syncs")))
    }
}

/// What the disk takes to keep as much as one object, in a file that has its size already.
async fn sync_time(count: usize) -> Result<f64> {
    let file: File = tempfile::tempfile()?;
    file.write_all_at(&vec![1; count * 600], 0)?;
    file.sync_all()?;
    median(count, async |number| {
        file.write_all_at(&[0; 600], number as u64 * 600)?;
        Ok(file.sync_data()?)
    })
    .await
}
