//! One change, many watchers.

use watchkeeper_bench_report::Unit;
use watchkeeper_bench_target::{Ask, Connection, Kind, Process, Result, connected, over, version};

use super::{Bench, ROUND, limited, timed};
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
/// How many changes there are at once where more watch than that: kube-apiserver ends the watch of whoever is further behind than
/// its buffers are long, and a thousand on the same machine are.
const AHEAD: usize = 10;
/// Changes one after the other, of which each has to reach everybody before the next is made.
const SINGLE: usize = 20;

impl Bench {
    pub(super) async fn fan_out(&mut self) -> Result<()> {
        let kind = Kind::new("watched");
        self.define(&kind).await?;
        for watchers in WATCHERS {
            eprintln!("connecting {watchers} watchers");
            for side in self.sides() {
                gather(side, &kind, watchers).await?;
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
        }
        Ok(())
    }
}

/// Lets so many watch a kind from now on.
pub(super) async fn gather(side: &mut Side, kind: &Kind, watchers: usize) -> Result<()> {
    side.renew().await?;
    let list = side.connection.call(Ask::get(&kind.all("limit=1"))).await?.concat();
    let version = version(&list).ok_or("a list has no version")?;
    let path = kind.all(&format!("watch=true&resourceVersion={version}"));
    // The old ones leave first.
    side.crowd = None;
    side.crowd = Some(limited(ROUND, Crowd::gather(&side.access, &path, watchers)).await?);
    Ok(())
}

/// Makes changes with several clients, and gives the seconds from the first request to the last watcher told.
pub(super) async fn told(
    side: &mut Side,
    kind: &Kind,
    writers: &mut [Connection],
    changes: usize,
) -> Result<f64> {
    let (path, numbers) = (kind.collection(), side.take(changes));
    let crowd = side.crowd.as_ref().ok_or("nobody watches")?;
    crowd.expect(changes);
    timed(async {
        over(writers, numbers, async |connection, number| {
            connection.call(Ask::post(&path, &kind.object(number, 1, None))).await.map(drop)
        })
        .await?;
        crowd.all_saw().await
    })
    .await
}

/// Events per second, all watchers together; what an event costs; how long one takes.
async fn deliver(side: &mut Side, kind: &Kind, watchers: usize) -> Result<[f64; 4]> {
    let own = Process::of(std::process::id());
    let changes = if watchers > MANY { side.size.changes / 3 } else { side.size.changes };
    let mut writers = connected(&side.access, WRITERS).await?;
    let (server, client) = (side.cpu()?, own.cpu()?);
    let (mut time, mut left) = (0.0, changes);
    while left > 0 {
        let some = if watchers > MANY { left.min(AHEAD) } else { left };
        time += told(side, kind, &mut writers, some).await?;
        left -= some;
    }
    let (server, client) = (side.cpu()? - server, own.cpu()? - client);
    let events = (watchers * changes) as f64;
    let mut single = 0.0;
    for _ in 0..SINGLE {
        single += told(side, kind, &mut writers[..1], 1).await?;
    }
    Ok([events / time, server / events, client / events, single / SINGLE as f64])
}
