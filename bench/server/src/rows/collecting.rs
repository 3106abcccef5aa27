//! What goes by itself: objects whose owner is deleted, and everything in a namespace, while somebody goes on creating.

use std::time::{Duration, Instant};

use http::StatusCode;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::task::JoinHandle;
use watchkeeper_bench_report::Unit;
use watchkeeper_bench_target::{Ask, Connection, Kind, Result, uid, version};

use super::Bench;
use crate::side::Side;
use crate::wanted::Wanted;

const NAMESPACES: &str = "/api/v1/namespaces";
/// How many seconds it may take.
const SOON: f64 = 2.0;
/// How many seconds somebody else may wait for a create meanwhile, 99 times of 100.
const UNDISTURBED: f64 = 0.05;
/// Clients that create what is to go.
const WRITERS: usize = 16;

impl Bench {
    /// Ours only.
    pub(super) async fn collecting(&mut self) -> Result<()> {
        let [owned, others] = ["owned", "bystanders"].map(Kind::new);
        self.define(&owned).await?;
        self.define(&others).await?;
        let objects = self.size.objects;
        for whole in [false, true] {
            let what = if whole {
                format!("namespace with {objects} deleted to gone")
            } else {
                format!("owner of {objects} deleted to the last of them gone")
            };
            let wait = format!("{what}: create of somebody else, p99");
            let rows = [
                Wanted::new(Unit::Seconds, what).at_most(SOON),
                Wanted::new(Unit::Seconds, wait).at_most(UNDISTURBED),
            ];
            self.alternate(rows, async |side| {
                let (time, wait) = if whole {
                    namespace(side, &owned, &others, objects).await?
                } else {
                    owner(side, &owned, &others, objects).await?
                };
                Ok([time, wait])
            })
            .await;
        }
        Ok(())
    }
}

/// Seconds until all are gone, and what a create took meanwhile.
pub(super) async fn owner(side: &mut Side, kind: &Kind, others: &Kind, count: usize) -> Result<(f64, f64)> {
    let boss = side.take(1).start;
    let made =
        side.connection.call(Ask::post(&kind.collection(), &kind.object(boss, 1, None))).await?.concat();
    let uid = uid(&made).ok_or("an object has no uid")?.to_owned();
    side.post(&kind.collection(), WRITERS, count, |number| kind.owned(number, boss, &uid)).await?;
    side.renew().await?;
    let list = side.connection.call(Ask::get(&kind.all("limit=1"))).await?.concat();
    let since = version(&list).ok_or("a list has no version")?;
    let mut watching = Connection::http1(&side.access).await?;
    let mut gone = watching.watch(&kind.all(&format!("watch=true&resourceVersion={since}"))).await?;
    let bystander = Bystander::start(side, others).await?;
    let begin = Instant::now();
    side.connection.call(Ask::delete(&kind.path(boss))).await?;
    gone.reach(count + 1).await?;
    Ok((begin.elapsed().as_secs_f64(), bystander.end().await?))
}

/// The same for a namespace.
pub(super) async fn namespace(
    side: &mut Side,
    kind: &Kind,
    others: &Kind,
    count: usize,
) -> Result<(f64, f64)> {
    let name = format!("crowded-{}", side.take(1).start);
    let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
    side.connection.call(Ask::post(NAMESPACES, &body)).await?;
    side.post(&kind.within(&name), WRITERS, count, |number| kind.object(number, 1, None)).await?;
    side.renew().await?;
    let bystander = Bystander::start(side, others).await?;
    let path = format!("{NAMESPACES}/{name}");
    let begin = Instant::now();
    side.connection.call(Ask::delete(&path)).await?;
    while side.connection.answer(Ask::get(&path)).await?.0 != StatusCode::NOT_FOUND {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok((begin.elapsed().as_secs_f64(), bystander.end().await?))
}

/// Somebody who creates one object after the other.
struct Bystander {
    task: JoinHandle<Result<Vec<f64>>>,
    stop: tokio::sync::oneshot::Sender<()>,
}

impl Bystander {
    async fn start(side: &mut Side, kind: &Kind) -> Result<Self> {
        let mut connection = Connection::http2(&side.access).await?;
        // More than it will get to.
        let (kind, first) = (kind.clone(), side.take(1_000_000).start);
        let (stop, mut stopped) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let mut times = Vec::new();
            while matches!(stopped.try_recv(), Err(TryRecvError::Empty)) {
                let object = kind.object(first + times.len(), 1, None);
                let begin = Instant::now();
                connection.call(Ask::post(&kind.collection(), &object)).await?;
                times.push(begin.elapsed().as_secs_f64());
            }
            Ok(times)
        });
        Ok(Self { task, stop })
    }

    /// What 99 of 100 took at the most.
    async fn end(self) -> Result<f64> {
        // If it is gone, it failed, and says why.
        let _ = self.stop.send(());
        let mut times = self.task.await??;
        times.sort_by(f64::total_cmp);
        times.get(times.len() * 99 / 100).copied().ok_or_else(|| "nothing was created meanwhile".into())
    }
}
