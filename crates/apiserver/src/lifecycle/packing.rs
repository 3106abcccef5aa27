//! What was told to watchers is kept smaller and smaller: encoded for seconds, then as it is stored, then packed, until it is forgotten.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use watchkeeper_storage::Storage;

use crate::server::Server;

/// What the task is called.
pub(super) const TASK: &str = "history-packing";

/// The time between two packs while there is something to do: a hundredth of a processor at most. Where more is written, the rest of the past stays as it is.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is looked for something to do.
const INTERVAL: Duration = Duration::from_secs(5);

/// Forgets what is encoded of changes that are not recent, and packs what is older still, beside those who answer requests.
pub(super) async fn run(server: Arc<Server>) {
    loop {
        for resource in server.registry().resources() {
            resource.frames.shrink();
        }
        let storage = Arc::clone(&server.storage);
        let packed = server.budget.beside(async move { storage.pack() }).await;
        sleep(if packed { PAUSE } else { INTERVAL }).await;
    }
}
