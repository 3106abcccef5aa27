//! What is measured, in the order of the table.

mod collecting;
mod fan_out;
mod growth;
mod large;
mod lists;
mod members;
mod reads;
mod restart;
mod servers;
mod start;
mod webhooks;
mod writes;

use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use watchkeeper_bench_report::{Report, Row, Samples};
use watchkeeper_bench_target::{Kind, Peer, Result};

use crate::side::{Other, Side};
use crate::size::Size;
use crate::wanted::Wanted;

/// The rows that are measured together.
pub(crate) const GROUPS: [&str; 10] =
    ["start", "writes", "webhooks", "reads", "fan-out", "lists", "large", "collecting", "growth", "servers"];

/// Longer than this, a round is not a measurement but a hang.
const ROUND: Duration = Duration::from_secs(120);
/// Longer than this, nothing is being prepared any more.
const PREPARATION: Duration = Duration::from_secs(900);

/// A group that is being measured: our server, perhaps a peer, and what was found so far.
pub(crate) struct Bench {
    binary: PathBuf,
    /// Or why there is none.
    others: Result<Other, String>,
    size: Size,
    group: &'static str,
    ours: Side,
    /// Or why there is none.
    peer: Result<Side, String>,
    report: Report,
}

impl Bench {
    /// Measures a group on servers of its own. What cannot be measured is a row that says so.
    pub(crate) async fn run(
        binary: PathBuf,
        others: Result<Other, String>,
        size: Size,
        group: &'static str,
    ) -> Report {
        let whole = |error: &dyn std::fmt::Display| Row::failed(group, "all of the group", error.to_string());
        let ours = match group {
            "servers" => Side::three_ours(&binary, size).await,
            _ => Side::ours(&binary, size).await,
        };
        let ours = match ours {
            Ok(ours) => ours,
            Err(error) => return vec![whole(&error)].into(),
        };
        let peer = match group {
            // Beside kube-apiserver, it is another process that does this.
            "collecting" => Err("it does not collect".into()),
            "servers" => three(&others, size).await,
            _ => start(&others, size).await,
        };
        let mut bench = Self { binary, others, size, group, ours, peer, report: Report::default() };
        let done = match group {
            "start" => bench.start().await,
            "writes" => bench.writes().await,
            "webhooks" => bench.webhooks().await,
            "reads" => bench.reads().await,
            "fan-out" => bench.fan_out().await,
            "lists" => bench.lists().await,
            "large" => bench.large().await,
            "collecting" => bench.collecting().await,
            "servers" => bench.servers().await,
            _ => bench.growth().await,
        };
        if let Err(error) = done {
            bench.report.rows.push(Row::failed(group, "what else is in the group", error.to_string()));
        }
        bench.report
    }

    /// Measures ours and the peer in turn; each round gives a number for each of the rows.
    async fn alternate<const N: usize>(
        &mut self,
        rows: [Wanted; N],
        mut measure: impl AsyncFnMut(&mut Side) -> Result<[f64; N]>,
    ) {
        if let Some(first) = rows.first() {
            eprintln!("measuring: {}", first.what());
        }
        let (mut ours, mut theirs) = (Found::<N>::default(), Found::default());
        for _ in 0..self.size.rounds {
            ours.add(round(&mut self.ours, &mut measure).await);
            if let Ok(peer) = &mut self.peer {
                theirs.add(round(peer, &mut measure).await);
            }
            if ours.failure.is_some() || theirs.failure.is_some() {
                break;
            }
        }
        let failure = ours.failure.or_else(|| theirs.failure.map(|why| format!("{}: {why}", Peer::NAME)));
        for ((row, ours), theirs) in rows.into_iter().zip(ours.samples).zip(theirs.samples) {
            let peer = self.peer.as_ref().map(|_| theirs).map_err(|why| &**why);
            self.report.rows.push(row.found(self.group, ours, peer, failure.clone()));
        }
    }

    /// Adds what was found otherwise, and has no peer.
    fn add(&mut self, row: Wanted, ours: Samples) {
        self.report.rows.push(row.found(self.group, ours, Ok(Samples::default()), None));
    }

    /// Both sides, or the one that there is.
    fn sides(&mut self) -> impl Iterator<Item = &mut Side> {
        std::iter::once(&mut self.ours).chain(self.peer.as_mut().ok())
    }

    /// Creates a kind everywhere.
    async fn define(&mut self, kind: &Kind) -> Result<()> {
        for side in self.sides() {
            limited(PREPARATION, side.define(kind)).await?;
        }
        Ok(())
    }

    /// Creates a kind everywhere, and as many objects of it.
    async fn fill(&mut self, kind: &Kind, count: usize) -> Result<()> {
        eprintln!("filling with {count} objects");
        for side in self.sides() {
            limited(PREPARATION, async {
                side.define(kind).await?;
                // One is there since the kind is.
                side.create(kind, FILLERS, count - 1).await?;
                side.renew().await
            })
            .await?;
        }
        Ok(())
    }

    /// Begins again with servers that are empty.
    async fn anew(&mut self) -> Result<()> {
        self.ours = Side::ours(&self.binary, self.size).await?;
        // The old one ends before the new one starts.
        self.peer = Err("it was ended".into());
        self.peer = start(&self.others, self.size).await;
        Ok(())
    }
}

/// Clients that fill a server.
const FILLERS: usize = 64;

async fn start(others: &Result<Other, String>, size: Size) -> Result<Side, String> {
    Side::other(others.as_ref().map_err(Clone::clone)?, size).await.map_err(|error| error.to_string())
}

async fn three(others: &Result<Other, String>, size: Size) -> Result<Side, String> {
    Side::three_others(others.as_ref().map_err(Clone::clone)?, size).await.map_err(|error| error.to_string())
}

/// What one side found.
struct Found<const N: usize> {
    samples: [Samples; N],
    failure: Option<String>,
}

impl<const N: usize> Default for Found<N> {
    fn default() -> Self {
        Self { samples: std::array::from_fn(|_| Samples::default()), failure: None }
    }
}

impl<const N: usize> Found<N> {
    fn add(&mut self, round: Result<[f64; N]>) {
        match round {
            Ok(values) => {
                self.samples.iter_mut().zip(values).for_each(|(samples, value)| samples.push(value));
            }
            Err(error) => self.failure = Some(error.to_string()),
        }
    }
}

async fn round<T>(side: &mut Side, measure: &mut impl AsyncFnMut(&mut Side) -> Result<T>) -> Result<T> {
    limited(ROUND, async {
        side.renew().await?;
        measure(side).await
    })
    .await
}

async fn limited<T>(limit: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(limit, work)
        .await
        .unwrap_or_else(|_| Err(format!("not done after {limit:?}").into()))
}

/// How long something takes, in seconds.
async fn timed(work: impl Future<Output = Result<()>>) -> Result<f64> {
    let begin = Instant::now();
    work.await?;
    Ok(begin.elapsed().as_secs_f64())
}

/// "1 client", "16 clients".
fn clients(count: usize) -> String {
    format!("{count} {}", if count == 1 { "client" } else { "clients" })
}
