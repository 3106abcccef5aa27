//! Files with bearer tokens, which are read again while the server runs.

use std::sync::Arc;
use std::time::Duration;

use crate::authentication::Tokens;

/// What the task is called.
pub(super) const TASK: &str = "token-files";

/// How often they are read again: as often as certificates.
const INTERVAL: Duration = Duration::from_secs(10);

/// Reads them again from time to time. One that cannot be used leaves the tokens that it had before in force.
pub(super) async fn follow(tokens: Arc<Tokens>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let refreshed = Arc::clone(&tokens);
        match tokio::task::spawn_blocking(move || refreshed.refresh()).await {
            Ok(Ok(false)) => {}
            Ok(Ok(true)) => tracing::info!("tokens reloaded"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "new tokens are not accepted; the old ones stay in force");
            }
            Err(error) => {
                if let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}
