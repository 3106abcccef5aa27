//! What goes by itself: objects whose owner is deleted, and everything in a namespace, while somebody goes on creating.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::task::JoinHandle;

use super::Bench;
use super::creates::CLIENTS;
use crate::side::Side;
use crate::table::Unit;
use watchkeeper_bench_target::Result;
use watchkeeper_bench_target::{Ask, Connection};
use watchkeeper_bench_target::{Kind, uid, version};

const NAMESPACES: &str = "/api/v1/namespaces";
/// How many seconds it may take.
const SOON: f64 = 2.0;
/// How many seconds somebody else may wait for a create meanwhile, 99 times of 100.
const UNDISTURBED: f64 = 0.05;
/// Each takes thousands of creates to prepare.
const ROUNDS: usize = 3;

impl Bench {
    /// Ours only: beside kube-apiserver, it is another process that does this.
    pub(super) async fn collecting(&mut self) -> Result<()> {
        let (owned, others) = (self.define("owned").await?, self.define("bystanders").await?);
        let objects = self.size.objects;
        eprintln!("measuring: objects whose owner is deleted, and namespaces with objects");
        let mut found = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            found[0].push(owner(&mut self.ours, &owned, &others).await?);
            found[1].push(namespace(&mut self.ours, &owned, &others, round).await?);
        }
        let what = [
            format!("owner of {objects} deleted to the last of them gone"),
            format!("namespace with {objects} deleted to gone"),
        ];
        for (what, found) in what.into_iter().zip(found) {
            let (times, waits): (Vec<f64>, Vec<f64>) = found.into_iter().unzip();
            self.add(&what, Unit::Seconds, Some(SOON), times.into_iter().collect(), None);
            let what = format!("{what}: create of somebody else, p99");
            self.add(&what, Unit::Seconds, Some(UNDISTURBED), waits.into_iter().collect(), None);
        }
        Ok(())
    }
}

/// Seconds until all are gone, and what a create took meanwhile.
async fn owner(target: &mut Side, kind: &Kind, others: &Kind) -> Result<(f64, f64)> {
    target.renew().await?;
    let boss = target.take(1).start;
    let made =
        target.connection.call(Ask::post(&kind.collection(), &kind.object(boss, 1, None))).await?.concat();
    let uid = uid(&made).ok_or("an object has no uid")?.to_owned();
    let count = target.size.objects;
    target.post(&kind.collection(), CLIENTS, count, |number| kind.owned(number, boss, &uid)).await?;
    target.renew().await?;
    let list = target.connection.call(Ask::get(&kind.all("limit=1"))).await?.concat();
    let since = version(&list).ok_or("a list has no version")?;
    let mut watching = Connection::http1(&target.access).await?;
    let mut gone = watching.watch(&kind.all(&format!("watch=true&resourceVersion={since}"))).await?;
    let bystander = Bystander::start(target, others).await?;
    let begin = Instant::now();
    target.connection.call(Ask { method: &Method::DELETE, ..Ask::get(&kind.path(boss)) }).await?;
    gone.reach(count + 1).await?;
    Ok((begin.elapsed().as_secs_f64(), bystander.end().await?))
}

/// The same for a namespace.
async fn namespace(target: &mut Side, kind: &Kind, others: &Kind, round: usize) -> Result<(f64, f64)> {
    target.renew().await?;
    let name = format!("crowded-{round}");
    let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
    target.connection.call(Ask::post(NAMESPACES, &body)).await?;
    let count = target.size.objects;
    target.post(&kind.within(&name), CLIENTS, count, |number| kind.object(number, 1, None)).await?;
    target.renew().await?;
    let bystander = Bystander::start(target, others).await?;
    let path = format!("{NAMESPACES}/{name}");
    let begin = Instant::now();
    target.connection.call(Ask { method: &Method::DELETE, ..Ask::get(&path) }).await?;
    while target.connection.answer(Ask::get(&path)).await?.0 != StatusCode::NOT_FOUND {
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
    async fn start(target: &mut Side, kind: &Kind) -> Result<Self> {
        let mut connection = Connection::http2(&target.access).await?;
        // More than it will get to.
        let (kind, first) = (kind.clone(), target.take(1_000_000).start);
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
