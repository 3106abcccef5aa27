//! One change, many watchers.

use std::time::Duration;

use watchkeeper_bench_report::{Row, Samples, Unit};
use watchkeeper_bench_target::{Ask, Connection, Kind, Peer, Process, Result, connected, over, version};

use super::{Bench, ROUND, limited, timed};
use crate::bare::Bare;
use crate::crowd::Crowd;
use crate::side::Side;
use crate::wanted::Wanted;

/// Watchers of everything.
const WATCHERS: [usize; 3] = [1, 100, 1_000];
/// From so many watchers on, we aim at being so many times faster.
const MANY: usize = 100;
const TIMES: f64 = 10.0;
/// Clients that make the changes.
const WRITERS: usize = 16;
/// With no fewer changes at a time than this is it tried: kube-apiserver ends the watch of whoever is further behind than its buffers
/// are long, and many on the same machine are.
const FEWEST: usize = 10;
/// How often it is tried, and how long it is waited in between, the second time twice as long.
const ATTEMPTS: u32 = 8;
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Changes one after the other, of which each has to reach everybody before the next is made.
const SINGLE: usize = 20;

impl Bench {
    pub(super) async fn fan_out(&mut self) -> Result<()> {
        let kind = Kind::new("watched");
        self.define(&kind).await?;
        for watchers in WATCHERS {
            eprintln!("connecting {watchers} watchers");
            for side in self.sides() {
                side.burst = usize::MAX;
                gather(side, &kind, watchers).await?;
                // So that it is known how many changes at a time it bears.
                deliver(side, &kind, watchers).await?;
            }
            let what = format!("{watchers} {}", if watchers == 1 { "watcher" } else { "watchers" });
            let rate = Wanted::new(Unit::Rate, format!("{what}: events delivered in total"));
            let rows = [
                if watchers >= MANY { rate.better(TIMES) } else { rate },
                Wanted::new(
                    Unit::Seconds,
                    format!("{what}: CPU time of the server per event, creates included"),
                ),
                Wanted::new(
                    Unit::Seconds,
                    format!("{what}: CPU time of the client per event, creates included"),
                ),
                Wanted::new(Unit::Seconds, format!("{what}: create sent to the last watcher told")),
            ];
            self.alternate(rows, async |side| deliver(side, &kind, watchers).await).await;
            self.sides().for_each(|side| side.crowd = None);
            if watchers >= MANY {
                self.limit(&kind, &what, watchers).await?;
            }
        }
        Ok(())
    }

    /// What could be delivered by a server that has nothing to do but to send, beside what the peer was just found to deliver.
    async fn limit(&mut self, kind: &Kind, what: &str, watchers: usize) -> Result<()> {
        let bursts: Vec<String> = self
            .sides()
            .map(|side| match side.burst {
                usize::MAX => "all at once".into(),
                burst => format!("{burst} at a time"),
            })
            .collect();
        let note = format!("To {what}, changes were made {}", bursts.join(" for ours, and "));
        self.report.notes.push(if bursts.len() > 1 { note + " for the peer." } else { note + "." });
        let path = kind.path(self.ours.last());
        let object = self.ours.connection.call(Ask::get(&path)).await?.concat();
        let line =
            format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", String::from_utf8_lossy(&object).trim_end());
        let (bare, changes, mut rates) = (Bare::start()?, self.size.changes_to(watchers), Samples::default());
        let crowd = limited(ROUND, Crowd::gather(&bare.access, "/", watchers)).await?;
        for _ in 0..self.size.rounds {
            crowd.expect(changes);
            let send = async {
                bare.send(&line, changes);
                crowd.all_saw().await
            };
            rates.push((watchers * changes) as f64 / limited(ROUND, timed(send)).await?);
        }
        // The first of the rows that were just added.
        let peer =
            self.report.rows.iter().rev().find(|row| row.unit == Unit::Rate).map(|row| row.peer.clone());
        let title = format!("{what}: the same events from a program that only sends (not ours: the limit)");
        let row = Row::new(self.group, title, Unit::Rate, rates);
        self.report.rows.push(match peer.filter(|peer| !peer.is_empty()) {
            Some(peer) => row.beside(Peer::NAME, peer),
            None => row,
        });
        Ok(())
    }
}

/// Lets so many watch a kind from now on.
async fn gather(side: &mut Side, kind: &Kind, watchers: usize) -> Result<()> {
    side.renew().await?;
    let list = side.connection.call(Ask::get(&kind.all("limit=1"))).await?.concat();
    let version = version(&list).ok_or("a list has no version")?;
    let path = kind.all(&format!("watch=true&resourceVersion={version}"));
    // The old ones leave first.
    side.crowd = None;
    side.crowd = Some(limited(ROUND, Crowd::gather(&side.access, &path, watchers)).await?);
    Ok(())
}

/// Makes changes with several clients, as many at a time as the side bears, and gives the seconds from the first request to the last
/// watcher told.
async fn told(side: &mut Side, kind: &Kind, writers: &mut [Connection], changes: usize) -> Result<f64> {
    let (path, mut left, mut time) = (kind.collection(), changes, 0.0);
    while left > 0 {
        let some = left.min(side.burst);
        let numbers = side.take(some);
        let crowd = side.crowd.as_ref().ok_or("nobody watches")?;
        crowd.expect(some);
        time += timed(async {
            over(writers, numbers, async |connection, number| {
                connection.call(Ask::post(&path, &kind.object(number, 1, None))).await.map(drop)
            })
            .await?;
            crowd.all_saw().await
        })
        .await?;
        left -= some;
    }
    Ok(time)
}

/// Measures something while so many watch. If the server ends watches, it is done again, a little later and with fewer changes at a
/// time.
async fn watched<T>(
    side: &mut Side,
    kind: &Kind,
    watchers: usize,
    changes: usize,
    mut measure: impl AsyncFnMut(&mut Side, &mut [Connection]) -> Result<T>,
) -> Result<T> {
    let mut writers = connected(&side.access, WRITERS).await?;
    let mut attempt = 1;
    loop {
        if side.crowd.is_none() {
            gather(side, kind, watchers).await?;
        }
        match measure(side, &mut writers).await {
            Err(error) if attempt < ATTEMPTS => {
                side.burst = (side.burst.min(changes) / 3).max(FEWEST);
                eprintln!("{error}: {} changes at a time", side.burst);
                side.crowd = None;
                tokio::time::sleep(RETRY_DELAY * attempt).await;
                attempt += 1;
            }
            done => return done,
        }
    }
}

/// Seconds until the last of so many, who come anew, was told of changes.
pub(super) async fn reached(side: &mut Side, kind: &Kind, watchers: usize, changes: usize) -> Result<f64> {
    side.burst = usize::MAX;
    side.crowd = None;
    watched(side, kind, watchers, changes, async |side, writers| told(side, kind, writers, changes).await)
        .await
}

/// Events per second, all watchers together; what an event costs; how long one takes.
async fn deliver(side: &mut Side, kind: &Kind, watchers: usize) -> Result<[f64; 4]> {
    let (own, changes) = (Process::of(std::process::id()), side.size.changes_to(watchers));
    watched(side, kind, watchers, changes, async |side, writers| {
        let (server, client) = (side.cpu()?, own.cpu()?);
        let time = told(side, kind, writers, changes).await?;
        let (server, client) = (side.cpu()? - server, own.cpu()? - client);
        let events = (watchers * changes) as f64;
        let mut single = 0.0;
        for _ in 0..SINGLE {
            single += told(side, kind, &mut writers[..1], 1).await?;
        }
        Ok([events / time, server / events, client / events, single / SINGLE as f64])
    })
    .await
}
