//! Starting again with what is there.

use std::time::Duration;

use http::StatusCode;
use watchkeeper_bench_target::{Ask, End, Kind, Result, objects, refusal};

use super::timed;
use crate::side::Side;

/// Ends a server, starts it again, and gives the seconds from the start of its process until one of its objects is
/// served.
pub(super) async fn restarted(side: &mut Side, kind: &Kind, end: End) -> Result<f64> {
    side.restart(end).await?;
    let path = kind.all("limit=1");
    let ask = Ask::get(&path);
    let served = timed(async {
        loop {
            match side.connection.answer(ask).await? {
                (StatusCode::OK, pieces) if objects(&pieces.concat()) == 1 => return Ok(()),
                // It may be ready before it knows its definitions again.
                (
                    StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS,
                    _,
                ) => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                (status, pieces) => return Err(refusal(ask, status, &pieces)),
            }
        }
    });
    Ok(served.await? + side.ready.as_secs_f64())
}
