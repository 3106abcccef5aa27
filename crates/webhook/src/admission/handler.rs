//! Functions over typed objects as answers to reviews.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::patch::patch;
use super::request::AdmissionRequest;
use super::verdict::Verdict;

/// The answer of a webhook: a verdict, and a patch.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_webhook::{Answer, Verdict};
/// let label = json!({"op": "add", "path": "/metadata/labels", "value": {"app": "web"}});
/// let answer = Answer::from(Verdict::allow()).patched([label]);
/// assert_eq!(answer.patch.len(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// Whether the write may go on.
    pub verdict: Verdict,
    /// The changes to the object: the operations of a JSON patch (RFC 6902). Only of a mutating webhook.
    pub patch: Vec<Value>,
}

impl Answer {
    /// Adds changes to the object: operations of a JSON patch.
    #[must_use]
    pub fn patched(mut self, operations: impl IntoIterator<Item = Value>) -> Self {
        self.patch.extend(operations);
        self
    }
}

impl From<Verdict> for Answer {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, patch: Vec::new() }
    }
}

/// What answers the reviews of one path.
pub(crate) type Handler = Arc<dyn Fn(Arc<AdmissionRequest>) -> BoxFuture<'static, Answer> + Send + Sync>;

/// A function that does not await, on a thread where it may take its time.
pub(crate) fn blocking(answer: impl Fn(&AdmissionRequest) -> Answer + Send + Sync + 'static) -> Handler {
    let answer = Arc::new(answer);
    Arc::new(move |request| {
        let answer = Arc::clone(&answer);
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || answer(&request)).await {
                Ok(answer) => answer,
                // Whoever called counts it, and answers for it.
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => Verdict::failed(500, "the webhook is shutting down").into(),
            }
        })
    })
}

/// A function that sets what is missing.
pub(crate) fn defaulting<K: Serialize + DeserializeOwned>(
    default: impl Fn(&mut K, &AdmissionRequest) + Send + Sync + 'static,
) -> Handler {
    blocking(move |request| {
        let Some(json) = request.object_json() else { return Verdict::allow().into() };
        match defaulted(json, request, &default) {
            Ok(patch) => Answer { verdict: Verdict::allow(), patch },
            Err(why) => unreadable(&why).into(),
        }
    })
}

fn defaulted<K: Serialize + DeserializeOwned>(
    json: &str,
    request: &AdmissionRequest,
    default: impl Fn(&mut K, &AdmissionRequest),
) -> Result<Vec<Value>, String> {
    let mut object: K = watchkeeper_informer::decode(json.as_bytes())?;
    let encode = |object: &K| serde_json::to_value(object).map_err(|error| error.to_string());
    let before = encode(&object)?;
    default(&mut object, request);
    let after = encode(&object)?;
    if before == after {
        return Ok(Vec::new());
    }
    let sent: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    Ok(patch(&sent, &before, &after))
}

/// A function that judges an object that is written, or one that is deleted.
pub(crate) fn validating<K: DeserializeOwned>(
    validate: impl Fn(Option<&K>, Option<&K>, &AdmissionRequest) -> Verdict + Send + Sync + 'static,
) -> Handler {
    blocking(move |request| match read::<K>(request) {
        Ok((new, old)) => validate(new.as_ref(), old.as_ref(), request).into(),
        Err(verdict) => verdict.into(),
    })
}

/// Both objects of a request. One that is being replaced and cannot be read is taken for none: or else it could never be mended.
pub(crate) fn read<K: DeserializeOwned>(
    request: &AdmissionRequest,
) -> Result<(Option<K>, Option<K>), Verdict> {
    let new = request.object::<K>().map_err(|why| unreadable(&why))?;
    let old = match request.old_object::<K>() {
        Ok(old) => old,
        Err(_) if new.is_some() => None,
        Err(why) => return Err(unreadable(&why)),
    };
    Ok((new, old))
}

fn unreadable(why: &str) -> Verdict {
    let mut verdict = Verdict::allow();
    let (field, why) = why.split_once(": ").unwrap_or(("", why));
    match field {
        "" => verdict.forbidden("<nil>", why),
        field => verdict.forbidden(field, format!("the operator does not understand this field: {why}")),
    };
    verdict
}
