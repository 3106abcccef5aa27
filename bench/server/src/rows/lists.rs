//! Lists, short and long, and the memory that a long one takes.

use std::time::Instant;

use super::Bench;
use crate::side::Side;
use crate::table::{Samples, Unit};
use watchkeeper_bench_target::Result;
use watchkeeper_bench_target::{Ask, Kind, Memory, Pieces, SHARDS, objects};

/// Clients that fill the server.
const FILLERS: usize = 32;
/// What kubectl asks for.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
/// The query of a watch that begins with everything there is.
const STREAMED: &str =
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

impl Bench {
    pub(super) async fn lists(&mut self) -> Result<()> {
        let (count, many) = (self.size.objects, self.size.many);
        self.anew().await?;
        self.short(count).await?;
        self.anew().await?;
        self.long(many).await
    }

    /// What the memory is compared with is what is in the lists, so nothing else may be there.
    async fn anew(&mut self) -> Result<()> {
        self.ours = Side::ours(&self.binary, self.size).await?;
        Ok(())
    }

    async fn short(&mut self, count: usize) -> Result<()> {
        let kind = self.define("listed").await?;
        for target in std::iter::once(&mut self.ours).chain(&mut self.peer) {
            // One is there since the kind is.
            target.create(&kind, FILLERS, count - 1).await?;
        }
        let (all, some, streamed) = (kind.all(""), kind.all("labelSelector=shard%3D3"), kind.all(STREAMED));
        let list = Ask::get(&all);
        self.list(format!("list of {count}"), Some(required(count)), list, count).await?;
        let what = format!("list of {count}, 1 in {SHARDS} by label");
        self.list(what, None, Ask::get(&some), count / SHARDS).await?;
        self.alternate(
            format!("initial events of {count} (WatchList)"),
            Unit::Seconds,
            None,
            async |target| {
                let begin = Instant::now();
                // The bookmark that ends them is a line too.
                target.connection.watch(&streamed).await?.reach(count + 1).await?;
                Ok(begin.elapsed().as_secs_f64())
            },
        )
        .await?;
        // Last, so that the memory it takes can be told apart.
        let before = one(self.ours.memory(Memory::Most)?);
        let what = format!("list of {count} as Table");
        self.list(what.clone(), None, Ask { accept: TABLE, ..list }, count).await?;
        let after = one(self.ours.memory(Memory::Most)?);
        self.add(&format!("{what}: memory at the most, before"), Unit::Bytes, None, before, None);
        self.add(&format!("{what}: memory at the most, after"), Unit::Bytes, None, after, None);
        Ok(())
    }

    /// Measures a list that has so many objects.
    async fn list(&mut self, what: String, required: Option<f64>, ask: Ask<'_>, count: usize) -> Result<()> {
        self.alternate(what, Unit::Seconds, required, async |target| Ok(read(target, ask, count).await?.0))
            .await
    }

    /// Ours only: the peer would take minutes to be filled.
    async fn long(&mut self, many: usize) -> Result<()> {
        eprintln!("measuring: list of {many}");
        let kind = Kind::new("many");
        let Self { ours, .. } = self;
        ours.define(&kind).await?;
        ours.create(&kind, FILLERS, many - 1).await?;
        ours.renew().await?;
        let (path, mut times, mut bytes) = (kind.all(""), Samples::default(), 0);
        for _ in 0..self.size.rounds {
            let (time, pieces) = read(&mut self.ours, Ask::get(&path), many).await?;
            times.push(time);
            bytes = pieces.len();
        }
        self.add(&format!("list of {many}"), Unit::Seconds, Some(required(many)), times, None);
        let what = format!("memory (RSS) with {many} objects of {} B, after lists", bytes / many);
        let (now, most) = (self.ours.memory(Memory::Now)?, self.ours.memory(Memory::Most)?);
        self.add(&what, Unit::Bytes, Some(2.0 * bytes as f64 + 30e6), one(now), None);
        self.add(&format!("{what}: at the most"), Unit::Bytes, None, one(most), None);
        Ok(())
    }
}

/// Seconds that a list may take: 60 ms for 10,000 objects, 600 ms for 100,000.
fn required(count: usize) -> f64 {
    0.06 * count as f64 / 10_000.0
}

fn one(value: f64) -> Samples {
    std::iter::once(value).collect()
}

/// Lists, and looks afterwards whether everything was in it.
async fn read(target: &mut Side, ask: Ask<'_>, count: usize) -> Result<(f64, Pieces)> {
    let begin = Instant::now();
    let pieces = target.connection.call(ask).await?;
    let time = begin.elapsed().as_secs_f64();
    match objects(&pieces.concat()) {
        found if found == count => Ok((time, pieces)),
        found => Err(format!("{}: {found} objects, expected {count}", ask.path).into()),
    }
}
