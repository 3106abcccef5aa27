//! Three API servers over three members of etcd, ours beside kube-apiserver. Clients take turns to connect to them.

use watchkeeper_bench_report::{Samples, Unit};
use watchkeeper_bench_target::{Ask, Kind, Memory, Result, by_clients};

use super::fan_out::reached;
use super::lists::List;
use super::members::Asked;
use super::{Bench, FILLERS, PREPARATION, clients, limited};
use crate::wanted::Wanted;

/// How many times better we aim to be.
const TIMES: f64 = 3.0;
/// Clients that make requests at the same time.
const CLIENTS: [usize; 2] = [1, 16];
/// Those who watch, and how many changes they are told of.
const WATCHERS: usize = 100;
const CHANGES: usize = 100;
/// Different objects that are read.
const OBJECTS: usize = 100;
/// How soon a server serves that is added to many objects, in seconds.
const ADDED: f64 = 2.0;

impl Bench {
    pub(super) async fn servers(&mut self) -> Result<()> {
        for count in CLIENTS {
            let kind = Kind::new(format!("shared{count}"));
            self.define(&kind).await?;
            let what = format!("three servers: creates, {}", clients(count));
            let row = Wanted::new(Unit::Rate, &*what);
            self.alternate([row.better(TIMES)], async |side| {
                let creates = side.size.requests_of(count);
                Ok([creates as f64 / side.create(&kind, count, creates).await?])
            })
            .await;
            self.members(Asked::Create, count, &what).await?;
        }
        let kind = Kind::new("sharedreads");
        self.fill(&kind, OBJECTS).await?;
        for count in CLIENTS {
            let what = format!("three servers: gets, {}", clients(count));
            let row = Wanted::new(Unit::Rate, &*what);
            self.alternate([row.better(TIMES)], async |side| {
                let (gets, last) = (side.size.requests_of(count) * 4, side.last());
                let time = by_clients(&side.access, count, 0..gets, async |connection, number| {
                    let path = kind.path(last - number % OBJECTS);
                    connection.call(Ask::get(&path)).await.map(drop)
                });
                Ok([gets as f64 / time.await?])
            })
            .await;
            self.members(Asked::Head, count, &what).await?;
        }
        let (kind, count) = (Kind::new("sharedlists"), self.size.objects);
        self.fill(&kind, count).await?;
        let row = Wanted::new(Unit::Seconds, format!("three servers: {}", List::Plain.what(count)));
        self.alternate([row.better(TIMES)], async |side| Ok([List::Plain.time(side, &kind, count).await?]))
            .await;
        let row =
            Wanted::new(Unit::Bytes, format!("three servers and three members: memory with {count} objects"));
        self.alternate([row.better(TIMES)], async |side| Ok([side.memory(Memory::Now)?])).await;
        let kind = Kind::new("sharedwatch");
        self.define(&kind).await?;
        let row = Wanted::new(Unit::Rate, format!("three servers: events delivered to {WATCHERS} watchers"));
        self.alternate([row.better(TIMES)], async |side| {
            let changes = side.size.changes.min(CHANGES);
            let time = reached(side, &kind, WATCHERS, changes).await?;
            Ok([(WATCHERS * changes) as f64 / time])
        })
        .await;
        self.sides().for_each(|side| side.crowd = None);
        self.added().await
    }

    /// How long it takes to add one to servers that hold many objects.
    async fn added(&mut self) -> Result<()> {
        let (kind, many) = (Kind::new("sharedmany"), self.size.many);
        limited(PREPARATION, async {
            self.ours.define(&kind).await?;
            self.ours.create(&kind, FILLERS, many).await
        })
        .await?;
        let mut times = Samples::default();
        for _ in 0..self.size.rounds {
            times.push(self.ours.add_server().await?.as_secs_f64());
        }
        let what = format!("a server added to {many} objects: process started to ready");
        self.add(Wanted::new(Unit::Seconds, what).at_most(ADDED), times);
        Ok(())
    }
}
