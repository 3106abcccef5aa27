//! Questions that are answered and forgotten: who am I, may I, may they, whose token is this.

mod access;
mod tokens;

use serde_json::{Value, json};

use crate::authentication::Identity;
use crate::handlers::call::Call;
use crate::handlers::reply::Reply;
use crate::request::media::Format;
use crate::resource::ObjectRef;
use crate::server::Server;
use crate::status_error::StatusError;
use crate::write::{Incoming, WriteContext};

/// Answers a review.
pub(crate) async fn answer(
    server: &Server,
    call: &Call,
    target: &ObjectRef,
    incoming: Incoming,
    context: &WriteContext,
    format: Format,
) -> Result<Reply, StatusError> {
    let (Incoming { mut object, warnings }, resource) = (incoming, &target.resource);
    let review = match resource.kind.as_str() {
        "SelfSubjectReview" => json!({
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": {"creationTimestamp": server.options.clock.stamp()},
            "status": {"userInfo": user_info(&call.identity)},
        }),
        "SelfSubjectRulesReview" => json!({
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": {},
            "spec": {},
            "status": access::rules(server, &call.identity, &object)?,
        }),
        _ => {
            crate::object::meta::fields(&mut object).remove("status");
            if let Some(namespace) = target.namespace.as_deref() {
                crate::object::meta::set(&mut object, "namespace", namespace);
            }
            server.writer.record_owner(resource, &mut object, context);
            object["status"] = match resource.kind.as_str() {
                "TokenReview" => tokens::review(server, &object).await?,
                _ => access::review(server, resource, &call.identity, &object)?,
            };
            object
        }
    };
    Ok(Reply::object(201, &review, format).warnings(&warnings))
}

/// A user, as reviews show it.
fn user_info(identity: &Identity) -> Value {
    let mut info = json!({"username": identity.user});
    if !identity.groups.is_empty() {
        info["groups"] = json!(identity.groups);
    }
    if !identity.uid.is_empty() {
        info["uid"] = identity.uid.as_str().into();
    }
    if !identity.extra.is_empty() {
        info["extra"] = json!(identity.extra);
    }
    info
}
