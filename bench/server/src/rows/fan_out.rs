//! One change, many watchers.

use std::time::Instant;

use tokio::task::JoinSet;

use super::Bench;
use super::creates::CLIENTS;
use crate::side::Side;
use crate::table::Unit;
use watchkeeper_bench_target::Result;
use watchkeeper_bench_target::{Ask, Connection};
use watchkeeper_bench_target::{Kind, version};

/// Watchers of everything.
const WATCHERS: usize = 100;

impl Bench {
    pub(super) async fn fan_out(&mut self) -> Result<()> {
        let kind = self.define("watched").await?;
        let what = format!("{WATCHERS} watchers: events delivered in total");
        self.alternate(what, Unit::Rate, Some(100_000.0), async |target| deliver(target, &kind).await)
            .await?;
        self.add_costs(format!("{WATCHERS} watchers: CPU time of the server per event, creates included"));
        Ok(())
    }
}

/// Events per second, all watchers together.
async fn deliver(target: &mut Side, kind: &Kind) -> Result<f64> {
    let list = target.connection.call(Ask::get(&kind.all("limit=1"))).await?.concat();
    let version = version(&list).ok_or("a list has no version")?;
    let path = kind.all(&format!("watch=true&resourceVersion={version}"));
    let changes = target.size.changes;
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS {
        let mut connection = Connection::http1(&target.access).await?;
        let mut lines = connection.watch(&path).await?;
        watchers.spawn(async move {
            // The watch ends with its connection.
            let _connection = connection;
            lines.reach(changes).await
        });
    }
    let (begin, cpu) = (Instant::now(), target.cpu()?);
    target.create(kind, CLIENTS, changes).await?;
    while let Some(done) = watchers.join_next().await {
        done??;
    }
    let (events, time) = ((WATCHERS * changes) as f64, begin.elapsed().as_secs_f64());
    target.costs.push((target.cpu()? - cpu) / events);
    Ok(events / time)
}
