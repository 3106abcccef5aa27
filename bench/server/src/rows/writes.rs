//! Durable changes by one client and by several, each of them at its own objects.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use http::Method;
use watchkeeper_bench_report::{Samples, Unit};
use watchkeeper_bench_target::{Ask, Connection, Kind, Result, by_clients, metric, version};

use super::{Bench, clients};
use crate::side::Side;
use crate::wanted::Wanted;

/// Clients that make requests at the same time.
pub(super) const CLIENTS: [usize; 3] = [1, 16, 64];
/// Up to so many clients, we aim at being so many times faster.
const FEW: usize = 16;
const TIMES: f64 = 5.0;

/// A way to change an object.
#[derive(Clone, Copy, PartialEq)]
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
        let disk = sync_times(self.size.requests)?;
        self.add(Wanted::new(Unit::Seconds, "disk: write 600 B and sync"), disk);
        for count in CLIENTS {
            let kind = Kind::new(format!("writes{count}"));
            self.define(&kind).await?;
            self.creates(&kind, count).await;
            for (change, what) in CHANGES {
                let row = Wanted::new(Unit::Rate, format!("{what}, {}", clients(count)));
                let aimed = count <= FEW && !matches!(change, Change::Replace | Change::Delete);
                let row = if aimed { row.better(TIMES) } else { row };
                self.alternate([row], async |side| Ok([changes(side, &kind, change, count).await?])).await;
            }
        }
        Ok(())
    }

    async fn creates(&mut self, kind: &Kind, count: usize) {
        let what = format!("durable creates, {}", clients(count));
        let rate = Wanted::new(Unit::Rate, what.clone());
        let rate = if count <= FEW { rate.better(TIMES) } else { rate };
        let cost = Wanted::new(Unit::Seconds, format!("{what}: CPU time of the server per create"));
        let mut syncs = Samples::default();
        self.alternate([rate, cost], async |side| {
            let creates = side.size.requests_of(count);
            let (before, cpu) = (commits(side).await?, side.cpu()?);
            let time = side.create(kind, count, creates).await?;
            let cpu = side.cpu()? - cpu;
            // Only ours counts them.
            if let (Some(before), Some(after)) = (before, commits(side).await?) {
                syncs.push((after.1 - before.1) / (after.0 - before.0));
            }
            Ok([creates as f64 / time, cpu / creates as f64])
        })
        .await;
        self.add(Wanted::new(Unit::Number, format!("{what}: fsyncs per commit")), syncs);
    }
}

/// How many changes there are in a second. Where a change can be made only once, each is of another object; else, each client
/// has one.
async fn changes(side: &mut Side, kind: &Kind, change: Change, clients: usize) -> Result<f64> {
    let count = side.size.requests_of(clients);
    let objects = match change {
        Change::ApplyNew => side.take(count),
        Change::Delete => {
            side.create(kind, clients, count).await?;
            side.last() + 1 - count..side.last() + 1
        }
        _ => {
            side.create(kind, clients, clients).await?;
            side.last() + 1 - clients..side.last() + 1
        }
    };
    if matches!(change, Change::ApplyNew | Change::Delete) {
        let time = by_clients(&side.access, clients, objects, async |connection, number| {
            make(connection, kind, change, number, 0, &[]).await.map(drop)
        });
        return Ok(count as f64 / time.await?);
    }
    let rounds = count / clients;
    let time = by_clients(&side.access, clients, objects, async |connection, number| {
        let mut last = if change == Change::Replace {
            connection.call(Ask::get(&kind.path(number))).await?.concat()
        } else {
            Vec::new()
        };
        for round in 0..rounds {
            last = make(connection, kind, change, number, round, &last).await?;
        }
        Ok(())
    });
    Ok((rounds * clients) as f64 / time.await?)
}

/// Makes one change. `last` is what was answered to the one before.
async fn make(
    connection: &mut Connection,
    kind: &Kind,
    change: Change,
    number: usize,
    round: usize,
    last: &[u8],
) -> Result<Vec<u8>> {
    let path = kind.path(number);
    let applied = format!("{path}?fieldManager=applier&force=true");
    let size = 2 + round;
    let answer = match change {
        Change::Replace => {
            let body = &kind.object(number, size, version(last));
            connection.call(Ask { method: &Method::PUT, body, ..Ask::get(&path) }).await?
        }
        Change::Merge => {
            let body = format!(r#"{{"spec":{{"size":{size}}}}}"#);
            connection.call(Ask::patch(&path, "application/merge-patch+json", &body)).await?
        }
        Change::JsonPatch => {
            let body = format!(r#"[{{"op":"replace","path":"/spec/size","value":{size}}}]"#);
            connection.call(Ask::patch(&path, "application/json-patch+json", &body)).await?
        }
        Change::Apply | Change::ApplySame | Change::ApplyNew => {
            let size = if change == Change::Apply { size } else { 2 };
            let body = kind.object(number, size, None);
            connection.call(Ask::patch(&applied, "application/apply-patch+yaml", &body)).await?
        }
        Change::Delete => connection.call(Ask::delete(&path)).await?,
    };
    Ok(answer.concat())
}

/// Commits and syncs so far, if the server tells them.
async fn commits(side: &mut Side) -> Result<Option<(f64, f64)>> {
    let text = side.connection.call(Ask::get("/metrics")).await?.concat();
    let text = String::from_utf8_lossy(&text);
    let told = |name| metric(&text, name);
    Ok(told("watchkeeper_storage_commits").zip(told("watchkeeper_storage_syncs")))
}

/// What the disk takes to keep as much as one object, in a file that has its size already.
fn sync_times(count: usize) -> Result<Samples> {
    let file: File = tempfile::tempfile()?;
    file.write_all_at(&vec![1; count * 600], 0)?;
    file.sync_all()?;
    let time = |number: usize| {
        let begin = Instant::now();
        file.write_all_at(&[0; 600], number as u64 * 600)?;
        file.sync_data()?;
        Ok(begin.elapsed().as_secs_f64())
    };
    (0..count).map(time).collect()
}
