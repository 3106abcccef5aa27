//! Old revisions are forgotten, by whichever server comes first.
//!
//! The protocol is kube-apiserver's, so that both can use one cluster: a key whose version is a turn. Each server remembers the revision that it
//! saw a turn ago. Whoever writes the key first takes the turn, writes that revision there for others to read, and compacts to it. So what
//! is kept is between one and two intervals old, however many servers there are.

use std::time::Duration;

use watchkeeper_etcd::{Client, Compare, Error, Keys, Outcome, Put, Range, Relation, Txn};

/// The key, outside of any prefix.
const KEY: &str = "compact_rev_key";

/// Takes part for as long as the storage is open.
pub(super) async fn run(client: Client, interval: Duration) {
    let (mut version, mut left) = (0, 0);
    loop {
        tokio::time::sleep(interval).await;
        match turn(&client, version, left).await {
            Ok(next) => (version, left) = next,
            Err(error) => tracing::warn!(%error, "etcd was not compacted"),
        }
    }
}

/// Takes a turn, or finds out who has. Gives the version of the key, and the revision to compact to the next time.
async fn turn(client: &Client, version: i64, left: i64) -> Result<(i64, i64), Error> {
    let txn = Txn::new()
        .when(Compare::version(KEY, Relation::Equal, version))
        .then(Put::new(KEY, left.to_string()))
        .otherwise(Range::of(Keys::one(KEY)));
    let done = client.txn(&txn).await?;
    let now = done.header.revision;
    if done.succeeded {
        if left > 0 {
            client.compact(left, false).await?;
            tracing::debug!(revision = left, "etcd was compacted");
        }
        return Ok((version + 1, now));
    }
    let seen = match done.outcomes.first() {
        Some(Outcome::Range(found)) => found.kvs.first().map_or(0, |pair| pair.version),
        _ => 0,
    };
    Ok((seen, now))
}
