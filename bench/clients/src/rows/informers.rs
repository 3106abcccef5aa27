//! First syncs, and what is held afterwards.

use watchkeeper_bench_report::{Curve, Point, Row, Samples, Target, Unit};
use watchkeeper_bench_target::Result;

use super::footprint::{Footprints, Metric, Mode};
use crate::bench::Bench;
use crate::child::Side;
use crate::server::{Population, Which};

const GROUP: &str = "informers";

/// Two modes, what of them, and by how much ours should be better.
type Comparison = (Metric, &'static str, &'static str, Option<f64>);

/// What is compared of one population.
struct Plan {
    which: Which,
    all: Population,
    rounds: usize,
    comparisons: Vec<Comparison>,
}

impl Plan {
    fn modes(&self) -> Vec<Mode> {
        let mut modes = Vec::new();
        for (_, ours, peer, _) in &self.comparisons {
            for mode in [Mode::ours(ours), Mode::peer(peer)] {
                if !modes.contains(&mode) {
                    modes.push(mode);
                }
            }
        }
        modes
    }

    fn what(&self, (metric, ours, ..): &Comparison) -> String {
        let (all, from) = (&self.all.what, self.which.name());
        match metric {
            Metric::Cpu => format!("first sync of {all} ({ours}) from {from}, CPU per object"),
            Metric::Wall => format!("first sync of {all} ({ours}) from {from}, time"),
            Metric::Heap => format!("heap per object, {all} ({ours}) from {from}"),
            Metric::Rss => format!("RSS per object, {all} ({ours}) from {from}"),
        }
    }

    fn titles(&self) -> Vec<String> {
        self.comparisons.iter().map(|comparison| self.what(comparison)).collect()
    }

    fn row(&self, comparison: &Comparison, measured: &[(Mode, Footprints)]) -> Row {
        let (metric, ours, peer, target) = *comparison;
        let of = |mode: Mode| {
            measured.iter().find(|(other, _)| *other == mode).map(|(_, all)| all.of(metric).clone())
        };
        let unit = if matches!(metric, Metric::Heap | Metric::Rss) { Unit::Bytes } else { Unit::Seconds };
        let row = Row::new(GROUP, self.what(comparison), unit, of(Mode::ours(ours)).unwrap_or_default())
            .beside(Mode::peer(peer).title(), of(Mode::peer(peer)).unwrap_or_default());
        match target {
            Some(times) => row.aims(Target::TimesBetter(times)),
            None => row,
        }
    }
}

impl Bench {
    /// All rows of informers.
    pub(crate) async fn informers(&mut self) {
        use Metric::{Cpu, Heap, Rss, Wall};
        let size = self.size;
        let (some, heavy, pods) = (Population::some(size), Population::heavy(size), Population::pods(size));
        let many = Population::step(size, 2);
        let plan = |which, all: &Population, comparisons: &[Comparison]| {
            let rounds = if all.count > size.some { size.long_rounds } else { size.rounds };
            Plan { which, all: all.clone(), rounds, comparisons: comparisons.to_vec() }
        };
        let custom = [
            (Cpu, "packed", "dynamic", Some(5.0)),
            (Wall, "packed", "dynamic", None),
            (Heap, "packed", "dynamic", Some(3.0)),
            (Rss, "packed", "dynamic", None),
        ];
        let more = [
            (Cpu, "packed", "cache-unstructured", Some(5.0)),
            (Cpu, "typed", "cache-typed", None),
            (Heap, "typed", "cache-typed", None),
            (Heap, "packed", "cache-typed", None),
            (Cpu, "metadata", "metadata", None),
        ];
        let of_pods = [
            (Cpu, "packed", "typed", None),
            (Cpu, "packed", "dynamic", None),
            (Cpu, "compressed", "typed", None),
            (Wall, "packed", "typed", None),
            (Heap, "packed", "typed", Some(3.0)),
            (Heap, "packed", "dynamic", Some(10.0)),
            (Heap, "packed", "typed-whole", Some(3.0)),
            (Heap, "packed", "dynamic-whole", Some(10.0)),
            (Heap, "compressed", "typed", Some(8.0)),
            (Heap, "metadata", "metadata", None),
            (Rss, "packed", "typed", None),
            (Rss, "compressed", "typed", None),
        ];
        let real_pods = [
            (Cpu, "packed", "typed", None),
            (Cpu, "packed", "dynamic", None),
            (Wall, "packed", "typed", None),
            (Heap, "packed", "typed", Some(3.0)),
        ];
        let plans = [
            plan(Which::Ours, &some, &[&custom[..], &more[..]].concat()),
            plan(Which::Ours, &many, &custom),
            plan(Which::Ours, &heavy, &custom[..3]),
            plan(Which::Ours, &pods, &of_pods),
            plan(Which::Real, &some, &custom[..2]),
            plan(Which::Real, &many, &custom[..2]),
            plan(Which::Real, &heavy, &custom[..2]),
            plan(Which::Real, &pods, &real_pods),
        ];
        let mut largest = Vec::new();
        for plan in plans {
            let measured = self.measure(&plan).await;
            let rows = measured.as_ref().map_err(|why| why.to_string().into()).map(|measured| {
                plan.comparisons.iter().map(|comparison| plan.row(comparison, measured)).collect()
            });
            self.add(GROUP, plan.titles(), rows);
            if plan.which == Which::Ours && plan.all.count == size.many {
                largest = measured.unwrap_or_default();
            }
        }
        for which in [Which::Ours, Which::Real] {
            self.events(which).await;
        }
        self.relists().await;
        if let Err(why) = self.growth(largest).await {
            self.add(GROUP, vec!["growth of a first sync".into()], Err(why));
        }
    }

    async fn measure(&mut self, plan: &Plan) -> Result<Vec<(Mode, Footprints)>> {
        eprintln!("measuring: first sync of {} from {}", plan.all.what, plan.which.name());
        let (server, programs) = self.parts(plan.which).await?;
        let mut measured: Vec<_> =
            plan.modes().into_iter().map(|mode| (mode, Footprints::default())).collect();
        for _ in 0..plan.rounds {
            for (mode, footprints) in &mut measured {
                footprints.round(programs, server.target.kubeconfig(), *mode, &plan.all).await?;
            }
        }
        Ok(measured)
    }

    /// First syncs at N, 4N and 16N, the last of which was measured before.
    async fn growth(&mut self, largest: Vec<(Mode, Footprints)>) -> Result<()> {
        let mut steps = Vec::new();
        for number in 0..2 {
            let all = Population::step(self.size, number);
            let comparisons = vec![(Metric::Cpu, "packed", "dynamic", None)];
            let plan = Plan { which: Which::Ours, all, rounds: self.size.rounds, comparisons };
            steps.push((plan.all.count, self.measure(&plan).await?));
        }
        steps.push((self.size.many, largest));
        for (metric, unit, what) in [
            (Metric::Cpu, Unit::Seconds, "CPU of a first sync by custom resources of 1.1 kB"),
            (Metric::Heap, Unit::Bytes, "heap by custom resources of 1.1 kB"),
        ] {
            let point = |(count, measured): &(usize, Vec<(Mode, Footprints)>)| {
                let total = |side| -> Samples {
                    let all =
                        measured.iter().find(|(mode, _)| mode.side == side).map(|(_, all)| all.of(metric));
                    all.into_iter().filter_map(Samples::median).map(|each| each * *count as f64).collect()
                };
                Point { count: *count as f64, ours: total(Side::Ours), peer: total(Side::Peer) }
            };
            self.report.curves.push(Curve {
                group: GROUP.into(),
                what: what.into(),
                unit,
                peer_name: Some(Mode::peer("dynamic").title().into()),
                points: steps.iter().map(point).collect(),
            });
        }
        Ok(())
    }
}
