//! Following what is stored, for as long as there is a storage.

use std::time::Duration;

use watchkeeper_storage::Error;

/// How long to wait before following again what could not be followed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Follows something until the storage is closed. `follow` takes in what there is, then what changes; when it ends, because it
/// fell behind or failed, it is called again. What it follows is named in the log.
pub(crate) async fn until_closed<F>(what: &str, mut follow: impl FnMut() -> F)
where
    F: Future<Output = Result<(), Error>>,
{
    loop {
        match follow().await {
            Ok(()) | Err(Error::Lagged { .. } | Error::Compacted { .. }) => {}
            Err(Error::Closed) => return,
            Err(error) => {
                tracing::warn!(%error, "following {what} failed");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_fell_behind_begins_again_at_once_and_what_failed_later() {
        let begin = Instant::now();
        let failed = Error::Invalid("on purpose".into());
        let mut ends =
            [Ok(()), Err(Error::Lagged { oldest: 1 }), Err(failed), Err(Error::Closed)].into_iter();
        let mut calls = Vec::new();
        until_closed("nothing", || {
            calls.push(begin.elapsed());
            std::future::ready(ends.next().unwrap())
        })
        .await;
        assert_eq!(calls, [Duration::ZERO, Duration::ZERO, Duration::ZERO, RETRY_DELAY]);
    }
}
