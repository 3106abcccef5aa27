//! What three members of etcd do for programs that do nothing else: more than that, no server over them can.

use std::cell::Cell;
use std::time::Instant;

use futures_util::future::try_join_all;
use watchkeeper_bench_report::{Row, Samples, Unit};
use watchkeeper_bench_target::{Error, Kind, Peer, Result};
use watchkeeper_etcd::{Client, Compare, Keys, Put, Range, Txn};

use super::{Bench, ROUND, limited};

/// Connections to etcd, as many as there are servers. Clients take turns to use them.
const SERVERS: usize = 3;
/// Outside of what servers keep and follow.
const PREFIX: &str = "/bare";

/// What is asked of etcd.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    /// A transaction that creates a key, as the servers create an object.
    Create,
    /// A read that says how far etcd is, as servers need one before they answer a get.
    Head,
}

impl Bench {
    /// Puts what the members do alone beside what the peer was found to do in another row.
    pub(super) async fn members(&mut self, asked: Asked, clients: usize, beside: &str) -> Result<()> {
        let title = match asked {
            Asked::Create => format!("{beside}: the transactions alone (not ours: the limit)"),
            Asked::Head => format!(
                "{beside}: the reads of etcd's revision alone, one for each (not ours: the limit unless several share one)"
            ),
        };
        eprintln!("measuring: {title}");
        let servers = limited(ROUND, connect(&self.ours.etcd()?)).await?;
        let object = Kind::new("bare").object(1, 1, None);
        let count = self.size.requests_of(clients);
        let mut rates = Samples::default();
        for round in 0..self.size.rounds {
            let ask = async |server: &Client, number: usize| {
                let key = format!("{PREFIX}/{clients}/{round}/{number}");
                ask(asked, server, &key, &object).await
            };
            rates.push(count as f64 / limited(ROUND, by_clients(&servers, clients, count, ask)).await?);
        }
        let row = Row::new(self.group, title, Unit::Rate, rates);
        let peer = self.report.rows.iter().find(|row| row.what == beside).map(|row| row.peer.clone());
        self.report.rows.push(match peer.filter(|peer| !peer.is_empty()) {
            Some(peer) => row.beside(Peer::NAME, peer),
            None => row,
        });
        Ok(())
    }
}

/// Connects as servers do: each to the member that leads.
async fn connect(endpoints: &[String]) -> Result<Vec<Client>> {
    let mut servers = Vec::new();
    for _ in 0..SERVERS {
        let client = Client::builder(endpoints).build()?;
        client.find_leader().await?;
        servers.push(client);
    }
    Ok(servers)
}

async fn ask(asked: Asked, server: &Client, key: &str, object: &str) -> Result<()> {
    match asked {
        Asked::Create => {
            let create = Txn::new()
                .when(Compare::absent(key))
                .then(Put::new(key, object))
                .otherwise(Range::of(Keys::one(key)));
            match server.txn(&create).await?.succeeded {
                true => Ok(()),
                false => Err(format!("{key} is there already").into()),
            }
        }
        Asked::Head => Ok(server.range(&Range::of(Keys::one("\0")).count_only()).await.map(drop)?),
    }
}

/// Seconds from the first question to the last answer, of so many clients that ask one thing after the other.
async fn by_clients(
    servers: &[Client],
    clients: usize,
    count: usize,
    ask: impl AsyncFn(&Client, usize) -> Result<()>,
) -> Result<f64> {
    let (next, ask) = (&Cell::new(0), &ask);
    let begin = Instant::now();
    try_join_all(servers.iter().cycle().take(clients).map(async |server| {
        while next.get() < count {
            ask(server, next.replace(next.get() + 1)).await?;
        }
        Ok::<_, Error>(())
    }))
    .await?;
    Ok(begin.elapsed().as_secs_f64())
}
