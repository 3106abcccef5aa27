//! What is measured, in the order of the table.

mod collecting;
mod creates;
mod fan_out;
mod lists;
mod requests;
mod start;
mod writes;

use std::path::PathBuf;
use std::time::Instant;

use crate::side::Side;
use crate::size::Size;
use crate::table::{Row, Samples, Unit};
use watchkeeper_bench_target::Result;
use watchkeeper_bench_target::{Kind, Peer};

pub(crate) use start::STARTS;

/// The rows that are measured together.
pub(crate) const GROUPS: [&str; 7] =
    ["start", "creates", "requests", "writes", "fan-out", "collecting", "lists"];

/// A run: our server, perhaps a peer, and what was found so far.
pub(crate) struct Bench {
    binary: PathBuf,
    size: Size,
    ours: Side,
    peer: Option<Side>,
    rows: Vec<Row>,
}

impl Bench {
    /// Measures some groups, or if none is named, all.
    pub(crate) async fn run(
        binary: PathBuf,
        peer: Option<&Peer>,
        size: Size,
        groups: &[String],
    ) -> Result<Vec<Row>> {
        let peer = match peer {
            Some(peer) => Some(Side::peer(peer, size.for_peer()).await?),
            None => None,
        };
        let ours = Side::ours(&binary, size).await?;
        let mut bench = Self { binary, size, ours, peer, rows: Vec::new() };
        for group in
            GROUPS.iter().filter(|group| groups.is_empty() || groups.iter().any(|named| named == *group))
        {
            match *group {
                "start" => bench.start().await?,
                "creates" => bench.creates().await?,
                "requests" => bench.requests().await?,
                "writes" => bench.writes().await?,
                "fan-out" => bench.fan_out().await?,
                "collecting" => bench.collecting().await?,
                _ => bench.lists().await?,
            }
        }
        Ok(bench.rows)
    }

    /// Measures ours and the peer in turn, each in as many rounds as its size says.
    async fn alternate(
        &mut self,
        what: impl Into<String>,
        unit: Unit,
        required: Option<f64>,
        mut measure: impl AsyncFnMut(&mut Side) -> Result<f64>,
    ) -> Result<()> {
        let what = what.into();
        eprintln!("measuring: {what}");
        let (mut ours, mut peer) = (Samples::default(), Samples::default());
        for round in 0..self.size.rounds {
            self.ours.renew().await?;
            ours.push(measure(&mut self.ours).await?);
            if let Some(target) = self.peer.as_mut().filter(|target| round < target.size.rounds) {
                target.renew().await?;
                peer.push(measure(target).await?);
            }
        }
        self.rows.push(Row { what, unit, required, ours, peer });
        Ok(())
    }

    /// Adds what was found otherwise.
    fn add(&mut self, what: &str, unit: Unit, required: Option<f64>, ours: Samples, peer: Option<f64>) {
        self.rows.push(Row { what: what.into(), unit, required, ours, peer: peer.into_iter().collect() });
    }

    /// Adds the CPU time that the rounds of the last row noted.
    fn add_costs(&mut self, what: impl Into<String>) {
        let ours = std::mem::take(&mut self.ours.costs);
        let peer = self.peer.as_mut().map(|peer| std::mem::take(&mut peer.costs)).unwrap_or_default();
        self.rows.push(Row { what: what.into(), unit: Unit::Seconds, required: None, ours, peer });
    }

    /// Creates a kind everywhere, and one object of it, so that it is there for good.
    async fn define(&mut self, plural: &str) -> Result<Kind> {
        let kind = Kind::new(plural);
        for target in std::iter::once(&mut self.ours).chain(&mut self.peer) {
            target.define(&kind).await?;
        }
        Ok(kind)
    }
}

/// The middle of the times that a number of requests took, in seconds.
async fn median(count: usize, mut request: impl AsyncFnMut(usize) -> Result<()>) -> Result<f64> {
    let mut times = Vec::with_capacity(count);
    for number in 0..count {
        let begin = Instant::now();
        request(number).await?;
        times.push(begin.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times.get(count / 2).copied().ok_or_else(|| "no requests".into())
}
