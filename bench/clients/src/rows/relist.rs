//! How much more memory it takes to list everything again.

use watchkeeper_bench_report::{Row, Samples, Target, Unit};
use watchkeeper_bench_target::{Memory, Result};

use super::footprint::{Footprints, Mode};
use crate::bench::Bench;
use crate::child::Programs;
use crate::proxy::Proxy;
use crate::server::{Population, Which};

const GROUP: &str = "informers";
/// The most that there may be while listing again, by what there is otherwise.
const TARGET: f64 = 1.15;

/// Peaks by what there was before.
#[derive(Default)]
struct Peaks {
    rss: Samples,
    /// Only known of ours.
    heap: Samples,
}

impl Bench {
    /// All rows of re-lists.
    pub(crate) async fn relists(&mut self) {
        for (all, peer) in [
            (Population::step(self.size, 1), Mode::peer("dynamic")),
            (Population::pods(self.size), Mode::peer("typed")),
        ] {
            let what = |of: &str| format!("re-list of {} (packed), peak / steady {of}", all.what);
            eprintln!("measuring: {}", what("memory"));
            let rows = self.peaks(&all, peer).await.map(|(ours, theirs)| {
                let aims = Target::Value(TARGET);
                vec![
                    Row::new(GROUP, what("RSS"), Unit::Number, ours.rss)
                        .beside(peer.title(), theirs.rss)
                        .aims(aims),
                    Row::new(GROUP, what("heap"), Unit::Number, ours.heap).aims(aims),
                ]
            });
            self.add(GROUP, vec![what("RSS"), what("heap")], rows);
        }
    }

    async fn peaks(&mut self, all: &Population, peer: Mode) -> Result<(Peaks, Peaks)> {
        let rounds = self.size.rounds;
        let (server, programs) = self.parts(Which::Ours).await?;
        let (mut ours, mut theirs) = (Peaks::default(), Peaks::default());
        for _ in 0..rounds {
            let proxy = Proxy::start(&server.target.access).await?;
            ours.round(programs, &proxy, Mode::ours("packed"), all).await?;
            let proxy = Proxy::start(&server.target.access).await?;
            theirs.round(programs, &proxy, peer, all).await?;
        }
        Ok((ours, theirs))
    }
}

impl Peaks {
    async fn round(
        &mut self,
        programs: &Programs,
        proxy: &Proxy,
        mode: Mode,
        all: &Population,
    ) -> Result<()> {
        let mut child = Footprints::default().round(programs, proxy.kubeconfig(), mode, all).await?;
        child.idle().await?;
        let steady = child.ask("heap").await?;
        child.forget_peak()?;
        let resident = child.memory(Memory::Now)?;
        proxy.expire().await?;
        child.idle().await?;
        self.rss.push(child.memory(Memory::Most)? / resident);
        self.heap.push(child.ask("heap").await?.peak / steady.heap);
        Ok(())
    }
}
