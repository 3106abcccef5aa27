//! No request takes for ever, but for watches.

use std::time::Duration;

use crate::handlers::call::Call;
use crate::request::action::Action;
use crate::server::Server;
use crate::status_error::StatusError;

impl Server {
    /// How long a request may take; `None` for watches, which have a limit of their own.
    pub(crate) fn limit(&self, call: &Call, action: &Action) -> Option<Duration> {
        if action.is_watch() {
            return None;
        }
        let most = self.options.request_timeout;
        // What cannot be read is refused elsewhere.
        Some(call.query.timeout().ok().flatten().map_or(most, |asked| asked.min(most)))
    }
}

/// Does something, unless it takes too long. What has been committed by then stays.
pub(crate) async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, StatusError>>,
) -> Result<T, StatusError> {
    match limit {
        None => work.await,
        Some(limit) => {
            tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(StatusError::too_slow()))
        }
    }
}
