//! Questions that are answered and forgotten: who am I, may I.

use serde_json::{Value, json};

use crate::dispatch::Call;
use crate::failure::Failure;
use crate::front::Identity;
use crate::reply::Reply;
use crate::request::media::Format;
use crate::resource::Resource;
use crate::server::Server;

/// Answers a review.
pub(crate) fn answer(
    server: &Server,
    call: &Call,
    resource: &Resource,
    mut object: Value,
    format: Format,
) -> Result<Reply, Failure> {
    let status = match resource.kind.as_str() {
        "SelfSubjectReview" => {
            crate::meta::set(&mut object, "creationTimestamp", server.options.clock.stamp());
            json!({"userInfo": user_info(&call.identity)})
        }
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            json!({"allowed": true})
        }
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        "TokenReview" => {
            json!({"authenticated": false, "user": {}, "error": "this server reviews no tokens"})
        }
        kind => return Err(Failure::internal(format!("{kind} is not answered"))),
    };
    object["status"] = status;
    Ok(Reply::object(201, &object, format))
}

fn user_info(identity: &Identity) -> Value {
    let mut info = json!({"username": identity.user, "groups": identity.groups});
    if !identity.uid.is_empty() {
        info["uid"] = identity.uid.as_str().into();
    }
    if !identity.extra.is_empty() {
        info["extra"] = json!(identity.extra);
    }
    info
}
