//! Changes by one client and by several, each of them at its own objects.

use std::time::Instant;

use http::Method;

use super::Bench;
use super::creates::CLIENTS;
use crate::side::Side;
use crate::table::Unit;
use watchkeeper_bench_target::Result;
use watchkeeper_bench_target::{Ask, Connection};
use watchkeeper_bench_target::{Kind, version};

/// A way to change an object.
#[derive(Clone, Copy)]
enum Change {
    Replace,
    Merge,
    JsonPatch,
    /// By somebody who applies something else each time.
    Apply,
    /// By somebody who applies what is there already.
    ApplySame,
    /// What is not there yet.
    ApplyNew,
    Delete,
}

const CHANGES: [(Change, &str); 7] = [
    (Change::Replace, "replaces (PUT)"),
    (Change::Merge, "merge patches"),
    (Change::JsonPatch, "JSON patches"),
    (Change::ApplyNew, "server-side applies that create"),
    (Change::Apply, "server-side applies"),
    (Change::ApplySame, "server-side applies that change nothing"),
    (Change::Delete, "deletes"),
];

impl Bench {
    pub(super) async fn writes(&mut self) -> Result<()> {
        for clients in [1, CLIENTS] {
            let kind = self.define(&format!("writes{clients}")).await?;
            for (change, what) in CHANGES {
                let noun = if clients == 1 { "client" } else { "clients" };
                self.alternate(format!("{what}, {clients} {noun}"), Unit::Rate, None, async |target| {
                    let count = target.size.creates * if clients == 1 { 1 } else { 4 };
                    let first = target.last() + 1;
                    match change {
                        Change::ApplyNew => drop(target.take(count)),
                        Change::Delete => drop(target.create(&kind, clients, count).await?),
                        _ => drop(target.create(&kind, clients, clients).await?),
                    }
                    Ok(count as f64 / target.change(&kind, change, clients, first, count).await?)
                })
                .await?;
            }
        }
        Ok(())
    }
}

impl Side {
    /// Makes changes with several clients, and gives the seconds that it took. The objects are those from `first` on: one
    /// for each client, or where a change can be made only once, one for each change.
    async fn change(
        &mut self,
        kind: &Kind,
        change: Change,
        clients: usize,
        first: usize,
        count: usize,
    ) -> Result<f64> {
        let mut connections = Vec::new();
        for _ in 0..clients {
            connections.push(Connection::http2(&self.access).await?);
        }
        let begin = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for (client, mut connection) in connections.into_iter().enumerate() {
            let kind = kind.clone();
            tasks.spawn(async move {
                let mut last = Vec::new();
                for round in 0..count / clients {
                    let number = match change {
                        Change::ApplyNew | Change::Delete => first + round * clients + client,
                        _ => first + client,
                    };
                    last = one(&mut connection, &kind, change, number, round, &last).await?;
                }
                Ok::<_, watchkeeper_bench_target::Error>(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(begin.elapsed().as_secs_f64())
    }
}

/// Makes one change. `last` is what was answered to the one before.
async fn one(
    connection: &mut Connection,
    kind: &Kind,
    change: Change,
    number: usize,
    round: usize,
    last: &[u8],
) -> Result<Vec<u8>> {
    let path = kind.path(number);
    let applied = format!("{path}?fieldManager=applier&force=true");
    let patch =
        |path, content_type, body| Ask { method: &Method::PATCH, content_type, body, ..Ask::get(path) };
    let size = 2 + round;
    let answer = match change {
        Change::Replace if last.is_empty() => connection.call(Ask::get(&path)).await?,
        Change::Replace => {
            let body = &kind.object(number, size, version(last));
            connection.call(Ask { method: &Method::PUT, body, ..Ask::get(&path) }).await?
        }
        Change::Merge => {
            let body = format!(r#"{{"spec":{{"size":{size}}}}}"#);
            connection.call(patch(&path, "application/merge-patch+json", &body)).await?
        }
        Change::JsonPatch => {
            let body = format!(r#"[{{"op":"replace","path":"/spec/size","value":{size}}}]"#);
            connection.call(patch(&path, "application/json-patch+json", &body)).await?
        }
        Change::Apply | Change::ApplySame | Change::ApplyNew => {
            let size = if matches!(change, Change::Apply) { size } else { 2 };
            let body = kind.object(number, size, None);
            connection.call(patch(&applied, "application/apply-patch+yaml", &body)).await?
        }
        Change::Delete => connection.call(Ask { method: &Method::DELETE, ..Ask::get(&path) }).await?,
    };
    Ok(answer.concat())
}
