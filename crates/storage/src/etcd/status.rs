//! How the cluster says that it is doing.

use std::sync::Arc;
use std::time::Duration;

use watchkeeper_etcd::Client;

use super::mirror::Mirror;

/// How often etcd is asked. An alarm concerns all members, and each of them knows it.
const INTERVAL: Duration = Duration::from_secs(5);

/// What etcd calls the alarm of a database that is full.
const NO_SPACE: &str = "NOSPACE";

/// Asks for as long as the storage is open. What is not answered changes nothing: that etcd is silent is noticed by those who follow it.
pub(super) async fn run(client: Client, mirror: Arc<Mirror>) {
    loop {
        if let Ok(status) = client.status().await {
            let alarm = status.errors.iter().find(|error| error.contains(NO_SPACE));
            mirror.set_full(alarm.map(|alarm| format!("etcd has the alarm {}", alarm.trim())));
            mirror.set_database_bytes(u64::try_from(status.db_bytes).unwrap_or_default());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
