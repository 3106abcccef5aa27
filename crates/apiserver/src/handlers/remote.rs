//! Requests that other servers answer.

use crate::aggregation::{Failed, Target};
use crate::handlers::call::Call;
use crate::handlers::reply::Reply;
use crate::remote::Remote;
use crate::server::Server;
use crate::status_error::StatusError;

/// Hands a request on that was authorized.
pub(super) async fn answer(
    server: &Server,
    call: &Call,
    remote: &Remote,
    target: Target,
) -> Result<Reply, StatusError> {
    if !remote.is_available {
        return Ok(unavailable("service unavailable"));
    }
    let (sent, limit) = ((&call.headers, call.body.clone()), server.options.request_timeout);
    Ok(match server.aggregator.forward(remote, target, sent, &call.identity, limit).await {
        Ok(answer) => Reply::forwarded(answer.code, answer.headers, answer.body),
        Err(Failed::Unavailable(why)) => unavailable(&why),
        Err(Failed::Redirected) => {
            Reply::text(502, "the backend attempted to redirect this request, which is not permitted\n")
        }
    })
}

/// A text, as kube-apiserver has it.
fn unavailable(why: &str) -> Reply {
    Reply::text(503, format!("{why}\n"))
}
