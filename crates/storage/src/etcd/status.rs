//! How the cluster says that it is doing.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use watchkeeper_etcd::{Client, Status};

use super::mirror::Mirror;

/// How often etcd is asked. An alarm concerns all members, and each of them knows it.
const INTERVAL: Duration = Duration::from_secs(5);

/// How often the leader is looked for, if it is none of the endpoints or cannot be reached.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// What etcd calls the alarm of a database that is full.
const NO_SPACE: &str = "NOSPACE";

/// Asks for as long as the storage is open. What is not answered changes nothing: that etcd is silent is noticed by those who follow it.
///
/// Another member may lead from some time on, or be asked because the one that leads was silent. Then the leader is asked again: that saves each transaction and
/// each read of the head the way from one member to the other. What is followed stays where it is.
pub(super) async fn run(client: Client, mirror: Arc<Mirror>) {
    let mut looked = None;
    loop {
        if let Ok(status) = client.status().await {
            let alarm = status.errors.iter().find(|error| error.contains(NO_SPACE));
            mirror.set_full(alarm.map(|alarm| format!("etcd has the alarm {}", alarm.trim())));
            mirror.set_database_bytes(u64::try_from(status.db_bytes).unwrap_or_default());
            look(&client, &status, &mut looked).await;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Looks for the leader if the member that is asked does not lead. `looked` says for whom it was looked last, from where, and when.
async fn look(client: &Client, status: &Status, looked: &mut Option<(u64, u64, Instant)>) {
    let (leader, member, now) = (status.leader, status.header.member, Instant::now());
    if leader == 0 || leader == member {
        return;
    }
    if looked.is_some_and(|(of, from, at)| (of, from) == (leader, member) && now < at + LOOK_INTERVAL) {
        return;
    }
    *looked = Some((leader, member, now));
    match client.find_leader().await {
        Ok(true) => tracing::info!(leader = format!("{leader:x}"), "the leader of etcd is asked"),
        Ok(false) => tracing::debug!(leader = format!("{leader:x}"), "no endpoint of etcd leads"),
        Err(error) => tracing::debug!(%error, "the leader of etcd was not looked for"),
    }
}
