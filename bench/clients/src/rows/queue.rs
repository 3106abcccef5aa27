//! The work queue beside those of client-go and controller-runtime.

use watchkeeper_bench_report::{Curve, Point, Row, Samples, Target, Unit};
use watchkeeper_bench_target::Result;

use crate::bench::Bench;
use crate::child::Side;

const GROUP: &str = "queue-peers";
const PRIORITY: &str = "controller-runtime priority queue";
const WORK: &str = "client-go workqueue";

/// What goes through a queue.
#[derive(Clone, Copy)]
struct Load {
    keys: usize,
    items: usize,
    workers: usize,
    /// Milliseconds that adds are delayed by, at the most.
    after: u32,
}

/// Seconds of CPU time per item: ours, controller-runtime's, client-go's.
type Costs = [Samples; 3];

impl Load {
    fn what(self) -> String {
        let Self { keys, workers, after, .. } = self;
        let add = if after > 0 { format!("add after up to {after} ms") } else { "add".into() };
        format!(
            "{add}, get, done: {keys} keys, {workers} {}, CPU per item",
            if workers == 1 { "worker" } else { "workers" }
        )
    }

    fn flags(self, mode: &str) -> Vec<(&'static str, String)> {
        let mut flags = vec![
            ("mode", mode.to_owned()),
            ("keys", self.keys.to_string()),
            ("items", self.items.to_string()),
            ("workers", self.workers.to_string()),
        ];
        if self.after > 0 {
            flags.push(("after", format!("{}ms", self.after)));
        }
        flags
    }

    fn target(self) -> Option<Target> {
        (self.after == 0).then_some(Target::TimesBetter(5.0))
    }
}

impl Bench {
    /// All rows of the queue.
    pub(crate) async fn queue(&mut self) {
        let size = self.size;
        let full = |workers| Load { keys: size.keys, items: size.keys, workers, after: 0 };
        let few = |workers| Load { keys: 1_000, items: size.items, workers, after: 0 };
        let late = Load { keys: size.items / 3, items: size.items / 3, workers: 1, after: 100 };
        let mut largest = None;
        for load in [few(1), few(4), full(1), full(4), late] {
            let costs = self.costs(load).await;
            if load.keys == size.keys && load.workers == 1 {
                largest = costs.as_ref().ok().cloned();
            }
            let rows = costs.map(|[ours, priority, work]| {
                let row =
                    Row::new(GROUP, load.what(), Unit::Seconds, ours.clone()).beside(PRIORITY, priority);
                let row = load.target().map_or_else(|| row.clone(), |target| row.clone().aims(target));
                vec![row, Row::new(GROUP, load.what(), Unit::Seconds, ours).beside(WORK, work)]
            });
            self.add(GROUP, vec![load.what(), load.what()], rows);
        }
        if let Err(why) = self.queue_growth(largest).await {
            self.add(GROUP, vec!["growth".into()], Err(why));
        }
    }

    /// Has all three do the work in turn.
    async fn costs(&mut self, load: Load) -> Result<Costs> {
        eprintln!("measuring: {}", load.what());
        let sides = [(Side::Ours, ""), (Side::Peer, "priority"), (Side::Peer, "workqueue")];
        let mut costs = Costs::default();
        let mut programs = Vec::new();
        for (side, mode) in sides {
            programs.push(self.programs.start(side, "queue", &load.flags(mode)).await?);
        }
        for _ in 0..self.size.rounds {
            for (program, costs) in programs.iter_mut().zip(&mut costs) {
                costs.push(program.ask("run").await?.cpu / 1e9 / load.items as f64);
            }
        }
        Ok(costs)
    }

    async fn queue_growth(&mut self, largest: Option<Costs>) -> Result<()> {
        let mut points = Vec::new();
        let keys = self.size.keys;
        for count in [keys / 16, keys / 4] {
            points.push((count, self.costs(Load { keys: count, items: count, workers: 1, after: 0 }).await?));
        }
        points.extend(largest.map(|costs| (keys, costs)));
        let point = |(count, [ours, priority, _]): (usize, Costs)| {
            let total =
                |costs: &Samples| costs.median().map(|each| each * count as f64).into_iter().collect();
            Point { count: count as f64, ours: total(&ours), peer: total(&priority) }
        };
        self.report.curves.push(Curve {
            group: GROUP.into(),
            what: "CPU of adding, getting and finishing all keys".into(),
            unit: Unit::Seconds,
            peer_name: Some(PRIORITY.into()),
            points: points.into_iter().map(point).collect(),
        });
        Ok(())
    }
}
