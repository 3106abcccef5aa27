//! Controllers that do nothing: how fast, and how soon after a change.

use watchkeeper_bench_report::{Curve, Point, Row, Samples, Target, Unit};
use watchkeeper_bench_target::Result;

use super::delays::Delays;
use crate::bench::Bench;
use crate::child::{Child, Side};
use crate::server::{Population, Server, Which};

const GROUP: &str = "reconcile";
const PEER: &str = "controller-runtime";
/// What the design asks for over loopback, and in one process, in seconds.
const LOOPBACK: f64 = 5e-3;
const IN_PROCESS: f64 = 1e-3;
/// How often each side is started; its rounds are spread over that.
const STARTS: usize = 2;

/// What one side was measured to do at one rate of changes.
#[derive(Clone, Debug, Default)]
struct Latency {
    /// The 50th and the 99th of a hundred.
    sent: [Samples; 2],
    /// The 99th of a hundred.
    answered: Samples,
    cpu: Samples,
}

/// What one side was measured to do.
#[derive(Clone, Debug, Default)]
struct Controller {
    start: Samples,
    again: Samples,
    per_second: Samples,
    rates: Vec<Latency>,
}

impl Bench {
    /// All rows of controllers.
    pub(crate) async fn reconcile(&mut self) {
        let size = self.size;
        let many = Population::step(size, 2);
        let ours = self.side_by_side(Which::Ours, &many, &[100.0, 1_000.0], &["priority", "workqueue"]).await;
        let largest = ours.as_ref().ok().cloned();
        self.tell(Which::Ours, &many, &[100.0, 1_000.0], ours);
        let some = Population::some(size);
        let real = self.side_by_side(Which::Real, &some, &[100.0], &["priority"]).await;
        self.tell(Which::Real, &some, &[100.0], real);
        self.in_process().await;
        if let Err(why) = self.reconcile_growth(largest).await {
            self.add(GROUP, vec!["growth".into()], Err(why));
        }
    }

    /// Ours and some modes of the peer.
    async fn side_by_side(
        &mut self,
        which: Which,
        all: &Population,
        rates: &[f64],
        modes: &[&str],
    ) -> Result<Vec<Controller>> {
        eprintln!("measuring: a controller with {} of {}", all.what, which.name());
        let (rounds, seconds) = (self.size.rounds, self.size.seconds);
        let (server, programs) = self.parts(which).await?;
        let sides: Vec<_> =
            std::iter::once((Side::Ours, "")).chain(modes.iter().map(|mode| (Side::Peer, *mode))).collect();
        let mut measured = vec![Controller::default(); sides.len()];
        for start in 0..STARTS.min(rounds) {
            let turns = rounds / STARTS + usize::from(start < rounds % STARTS);
            for ((side, mode), controller) in sides.iter().zip(&mut measured) {
                controller.rates.resize(rates.len(), Latency::default());
                let mut flags = all.flags(server.target.kubeconfig());
                flags.push(("mode", (*mode).to_owned()));
                let mut child = programs.start(*side, "reconcile", &flags).await?;
                let started = child.ask("start").await?;
                controller.start.push((started.cpu - child.ready.cpu) / 1e9 / all.count as f64);
                for _ in 0..turns.max(1) {
                    controller.turn(&mut child, server, all, rates, seconds).await?;
                }
            }
        }
        Ok(measured)
    }

    fn tell(&mut self, which: Which, all: &Population, rates: &[f64], measured: Result<Vec<Controller>>) {
        let place = format!("{} cached, {}", all.count, which.name());
        let mut planned = vec![
            format!("start until each of {} of {} was reconciled, CPU per object", all.what, which.name()),
            format!("no-op reconcile, CPU each, {place}"),
        ];
        planned.extend(rates.iter().map(|rate| format!("change to reconcile at {rate} changes/s, {place}")));
        let rows = measured.map(|all| {
            let Some((ours, peers)) = all.split_first() else { return Vec::new() };
            let mut rows = Vec::new();
            for (peer, name) in peers.iter().zip([PEER, "controller-runtime without its priority queue"]) {
                let mut row = |what: &str, unit, of: &dyn Fn(&Controller) -> Samples| {
                    rows.push(Row::new(GROUP, what, unit, of(ours)).beside(name, of(peer)));
                };
                row(&planned[0], Unit::Seconds, &|side| side.start.clone());
                row(&planned[1], Unit::Seconds, &|side| side.again.clone());
                row(&format!("no-op reconciles, 1 worker, {place}"), Unit::Rate, &|side| {
                    side.per_second.clone()
                });
            }
            for (at, rate) in rates.iter().enumerate() {
                for (peer, name) in peers.iter().zip([PEER, "controller-runtime without its priority queue"])
                {
                    // Once is enough to say what was aimed at.
                    let aims = which == Which::Ours && name == PEER;
                    rows.extend(latencies(&ours.rates[at], &peer.rates[at], name, *rate, &place, aims));
                }
            }
            rows
        });
        self.add(GROUP, planned, rows);
    }

    async fn in_process(&mut self) {
        let what =
            |share: &str| format!("change to reconcile in process, 1000 changes/s, {share}, from sending");
        eprintln!("measuring: {}", what("all"));
        let rows = self.in_process_delays().await.map(|[p50, p99]| {
            vec![
                Row::new(GROUP, what("p50"), Unit::Seconds, p50),
                Row::new(GROUP, what("p99"), Unit::Seconds, p99).aims(Target::Value(IN_PROCESS)),
            ]
        });
        self.add(GROUP, vec![what("p50"), what("p99")], rows);
    }

    async fn in_process_delays(&mut self) -> Result<[Samples; 2]> {
        let changes = (1_000.0 * self.size.seconds) as usize;
        let flags =
            [("expect", "1000".to_owned()), ("rate", "1000".into()), ("changes", changes.to_string())];
        let mut child = self.programs.start(Side::Ours, "in-process", &flags).await?;
        let mut samples = [Samples::default(), Samples::default()];
        for _ in 0..self.size.rounds {
            let delays = Delays::of(child.ask("run").await?.delays);
            samples[0].push(delays.at(0.5));
            samples[1].push(delays.at(0.99));
        }
        Ok(samples)
    }

    /// With N, 4N and 16N cached objects, the last of which was measured before.
    async fn reconcile_growth(&mut self, largest: Option<Vec<Controller>>) -> Result<()> {
        let rate = 1_000.0;
        let mut steps = Vec::new();
        for number in 0..2 {
            let all = Population::step(self.size, number);
            let measured = self.side_by_side(Which::Ours, &all, &[100.0, rate], &["priority"]).await?;
            steps.push((all.count, measured));
        }
        steps.extend(largest.map(|measured| (self.size.many, measured)));
        type Cost = fn(&Controller, usize) -> Option<f64>;
        let costs: [(&str, Cost); 3] = [
            ("p50 from a change's being sent to its reconcile at 1000/s, by cached objects", |side, _| {
                side.rates[1].sent[0].median()
            }),
            ("CPU of a reconcile at 1000 changes/s, by cached objects", |side, _| side.rates[1].cpu.median()),
            ("CPU of reconciling all objects once more", |side, count| {
                Some(side.again.median()? * count as f64)
            }),
        ];
        for (what, cost) in costs {
            let point = |(count, sides): &(usize, Vec<Controller>)| {
                let of = |at: usize| sides.get(at).and_then(|side| cost(side, *count)).into_iter().collect();
                Point { count: *count as f64, ours: of(0), peer: of(1) }
            };
            self.report.curves.push(Curve {
                group: GROUP.into(),
                what: what.into(),
                unit: Unit::Seconds,
                peer_name: Some(PEER.into()),
                points: steps.iter().map(point).collect(),
            });
        }
        Ok(())
    }
}

impl Controller {
    /// One round: everything once more, then changes at each rate.
    async fn turn(
        &mut self,
        child: &mut Child,
        server: &mut Server,
        all: &Population,
        rates: &[f64],
        seconds: f64,
    ) -> Result<()> {
        let again = child.ask("again").await?;
        self.again.push(again.cpu / 1e9 / again.events as f64);
        self.per_second.push(again.events as f64 / (again.wall / 1e9));
        for (latency, rate) in self.rates.iter_mut().zip(rates) {
            let count = (rate * seconds) as usize;
            let before = child.ask("record").await?;
            let changes = server.change(all, count, Some(*rate)).await?;
            let after = child.ask(&format!("reach {}", changes.newest())).await?;
            let (sent, answered) = Delays::since(&changes, &after.starts)?;
            latency.sent[0].push(sent.at(0.5));
            latency.sent[1].push(sent.at(0.99));
            latency.answered.push(answered.at(0.99));
            latency.cpu.push((after.cpu - before.cpu) / 1e9 / count as f64);
        }
        Ok(())
    }
}

/// The rows of one rate. The design speaks of the time from the commit, which is before the answer and after the sending.
fn latencies(ours: &Latency, peer: &Latency, name: &str, rate: f64, place: &str, aims: bool) -> Vec<Row> {
    let row = |what: &str, of: &dyn Fn(&Latency) -> Samples| {
        let what = format!("change to reconcile at {rate} changes/s, {place}, {what}");
        Row::new(GROUP, what, Unit::Seconds, of(ours)).beside(name, of(peer))
    };
    let judged = |row: Row| if aims { row.aims(Target::Value(LOOPBACK)) } else { row };
    vec![
        row("p50, from sending", &|side| side.sent[0].clone()),
        judged(row("p99, from sending", &|side| side.sent[1].clone())),
        // Most begin before the answer is there, so that the middle of them would be nothing to compare.
        judged(row("p99, from the answer", &|side| side.answered.clone())),
        row("CPU per reconcile", &|side| side.cpu.clone()),
    ]
}
