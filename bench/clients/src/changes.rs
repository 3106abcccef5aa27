//! Changes: merge patches by several clients, as fast as the server takes them or at a steady rate.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use http::Method;
use tokio::time::{Instant, sleep_until};
use watchkeeper_bench_target::{Ask, Result, by_clients, version};

use crate::objects::{Weight, name};
use crate::server::{MERGE, Population, Server};

/// How many clients make changes.
const CLIENTS: usize = 16;

/// When a change was made, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
}

/// Changes that were made, by the version that each led to.
#[derive(Debug, Default)]
pub(crate) struct Changes(pub(crate) BTreeMap<u64, Moment>);

impl Changes {
    /// The last of them.
    pub(crate) fn newest(&self) -> u64 {
        self.0.keys().next_back().copied().unwrap_or(0)
    }
}

impl Server {
    /// Changes custom resources of a population, one after the other, all over again if there are fewer; so many a second at the
    /// most.
    pub(crate) async fn change(
        &mut self,
        all: &Population,
        count: usize,
        rate: Option<f64>,
    ) -> Result<Changes> {
        let changes = RefCell::new(Changes::default());
        let (namespace, objects) = changeable(all);
        let numbers = self.changed..self.changed + count;
        self.changed += count;
        let (path, first, begin) = (Weight::Light.path(namespace), numbers.start, Instant::now());
        by_clients(&self.target.access, CLIENTS, numbers, async |connection, number| {
            if let Some(rate) = rate {
                // A moment for all clients to connect.
                let due =
                    Duration::from_secs_f64((number - first) as f64 / rate) + Duration::from_millis(200);
                sleep_until(begin + due).await;
            }
            let body = format!(r#"{{"spec":{{"replicas":{}}}}}"#, number + 2);
            let path = format!("{path}/{}", name(number % objects));
            let ask = Ask { method: &Method::PATCH, content_type: MERGE, ..Ask::post(&path, &body) };
            let sent = now();
            let answer = connection.call(ask).await?.concat();
            let version =
                version(&answer).and_then(|text| text.parse().ok()).ok_or("an answer without a version")?;
            changes.borrow_mut().0.insert(version, Moment { sent, answered: now() });
            Ok(())
        })
        .await?;
        Ok(changes.into_inner())
    }
}

/// Where a population can be changed, and how many there are. Of all, those of the largest namespace with a number for each.
fn changeable(all: &Population) -> (&'static str, usize) {
    if all.namespace.is_empty() { ("second", all.count / 4) } else { (all.namespace, all.count) }
}

fn now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO).as_nanos() as u64
}
