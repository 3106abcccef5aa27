//! Reading one object.

use watchkeeper_bench_report::Unit;
use watchkeeper_bench_target::{Ask, Kind, Result, by_clients};

use super::writes::CLIENTS;
use super::{Bench, clients};
use crate::wanted::Wanted;

/// Different objects that are read.
const OBJECTS: usize = 100;

impl Bench {
    pub(super) async fn reads(&mut self) -> Result<()> {
        let kind = Kind::new("reads");
        self.fill(&kind, OBJECTS).await?;
        for count in CLIENTS {
            let what = format!("gets, {}", clients(count));
            let cost = format!("{what}: CPU time of the server per get");
            let rows = [Wanted::new(Unit::Rate, what), Wanted::new(Unit::Seconds, cost)];
            self.alternate(rows, async |side| {
                // They are cheap.
                let gets = side.size.requests_of(count) * 4;
                let (last, cpu) = (side.last(), side.cpu()?);
                let time = by_clients(&side.access, count, 0..gets, async |connection, number| {
                    let path = kind.path(last - number % OBJECTS);
                    connection.call(Ask::get(&path)).await.map(drop)
                });
                let time = time.await?;
                Ok([gets as f64 / time, (side.cpu()? - cpu) / gets as f64])
            })
            .await;
        }
        Ok(())
    }
}
