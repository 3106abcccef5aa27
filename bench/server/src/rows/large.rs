//! A server with very many objects: lists, memory, restarts.

use watchkeeper_bench_report::Unit;
use watchkeeper_bench_target::{Ask, End, Kind, Memory, Result};

use super::Bench;
use super::restart::restarted;
use crate::wanted::Wanted;

impl Bench {
    pub(super) async fn large(&mut self) -> Result<()> {
        let (kind, count) = (Kind::new("many"), self.size.many);
        self.fill(&kind, count).await?;
        self.lists_of(&kind, count).await;
        let bytes = self.ours.connection.call(Ask::get(&kind.all(""))).await?.len();
        let what = format!("memory (RSS) with {count} objects of {} B, after the lists", bytes / count);
        let rows = [
            Wanted::new(Unit::Bytes, what.clone()).at_most(2.0 * bytes as f64 + 30e6),
            Wanted::new(Unit::Bytes, format!("{what}: at the most")),
        ];
        self.alternate(rows, async |side| Ok([side.memory(Memory::Now)?, side.memory(Memory::Most)?])).await;
        for (end, how) in [(End::Asked, "SIGTERM"), (End::Killed, "SIGKILL")] {
            let what = format!("started again with {count} objects after {how} to the first of them served");
            let row = Wanted::new(Unit::Seconds, what);
            self.alternate([row], async |side| Ok([restarted(side, &kind, end).await?])).await;
        }
        let what = format!("memory (RSS) with {count} objects of {} B, started again", bytes / count);
        let row = Wanted::new(Unit::Bytes, what);
        self.alternate([row], async |side| Ok([side.memory(Memory::Now)?])).await;
        Ok(())
    }
}
