//! What policies do not want to be said.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::try_join_all;
use serde_json::{Value, json};
use watchkeeper_ai::{ApiError, ErrorKind};

use super::call::{Call, Shared};
use super::table::{AiKey, Guard, Look};
use super::webhook::Webhook;

/// What programs are told of a webhook that does not judge.
pub(super) const UNAVAILABLE: &str = "guardrail_unavailable";

/// Whether a policy looks for anything in requests, or in answers.
pub(super) fn is_guarded(key: Option<&AiKey>, on_response: bool) -> bool {
    key.is_some_and(|key| key.policy.guards.iter().any(|guard| guard.on_response == on_response))
}

/// Looks for what a policy does not want to be said.
pub(super) fn guard(key: Option<&AiKey>, on_response: bool, text: &str) -> Result<(), ApiError> {
    let Some(key) = key else { return Ok(()) };
    let mut guards = key.policy.guards.iter().filter(|guard| guard.on_response == on_response);
    let met = guards.find(|guard| matches!(&guard.look, Look::Pattern(pattern) if pattern.is_match(text)));
    met.map_or(Ok(()), |guard| Err(refused(guard)))
}

fn place(on_response: bool) -> &'static str {
    if on_response { "the answer" } else { "the request" }
}

fn refused(guard: &Guard) -> ApiError {
    ApiError::invalid(format!("{} is refused by guardrail {:?}", place(guard.on_response), guard.name))
        .code("content_policy_violation")
}

/// What webhooks say of a text.
pub(super) type Judged = Pin<Box<dyn Future<Output = Result<(), ApiError>> + Send>>;

/// Asks the webhooks of a policy about the texts of a call.
#[derive(Clone)]
pub(super) struct Judge {
    shared: Arc<Shared>,
    key: Arc<AiKey>,
    on_response: bool,
    id: String,
    model: Arc<str>,
}

impl Judge {
    /// `None` if there is nobody to ask.
    pub(super) fn of(call: &Call, on_response: bool) -> Option<Self> {
        let key = call.key.as_ref()?;
        let mut guards = key.policy.guards.iter();
        let any =
            guards.any(|guard| guard.on_response == on_response && matches!(guard.look, Look::Webhook(_)));
        any.then(|| Self {
            shared: Arc::clone(call.shared()),
            key: Arc::clone(key),
            on_response,
            id: call.id.clone(),
            model: Arc::clone(&call.model),
        })
    }

    /// Asks all of them at once. The first that does not let the text pass decides.
    pub(super) fn ask(&self, text: String) -> Judged {
        let judge = self.clone();
        Box::pin(async move {
            let guards =
                judge.key.policy.guards.iter().filter(|guard| guard.on_response == judge.on_response);
            let asked = guards.filter_map(|guard| match &guard.look {
                Look::Webhook(webhook) => Some(judge.one(guard, webhook, &text)),
                Look::Pattern(_) => None,
            });
            try_join_all(asked).await.map(drop)
        })
    }

    async fn one(&self, guard: &Guard, webhook: &Webhook, text: &str) -> Result<(), ApiError> {
        let policy = &self.key.policy.key;
        let answer = match text.len() > webhook.max_bytes {
            true => {
                Err(format!("the text is longer than the {} bytes of webhook.maxBytes", webhook.max_bytes))
            }
            false => {
                let question = json!({
                    "guardrail": guard.name,
                    "on": if self.on_response { "Response" } else { "Request" },
                    "id": self.id,
                    "namespace": policy.namespace(),
                    "key": &*self.key.name,
                    "model": &*self.model,
                    "text": text,
                });
                webhook.ask(question.to_string().into()).await
            }
        };
        self.shared.stats.judged(policy, &guard.name, answer.as_ref().ok().copied());
        match answer {
            Ok(true) => Ok(()),
            Ok(false) => Err(refused(guard)),
            Err(reason) => {
                if webhook.failed.is_due() {
                    tracing::warn!("LLMGatewayPolicy {policy}: guardrail {:?}: {reason}", guard.name);
                }
                match webhook.fails_closed {
                    false => Ok(()),
                    true => Err(unavailable(guard)),
                }
            }
        }
    }
}

fn unavailable(guard: &Guard) -> ApiError {
    let message = format!(
        "guardrail {:?} could not judge {}, so that it does not pass: try again, and see the log of the gateway",
        guard.name,
        place(guard.on_response)
    );
    let mut error = ApiError::new(ErrorKind::Unavailable, message).code(UNAVAILABLE);
    error.retry_after = Some(1);
    error
}

/// All texts in a document, a line each. Field names are not said by anybody.
pub(super) fn texts_of(value: &Value) -> String {
    fn collect(value: &Value, text: &mut String) {
        match value {
            Value::String(said) => {
                text.push_str(said);
                text.push('\n');
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, text)),
            Value::Object(fields) => fields.values().for_each(|field| collect(field, text)),
            _ => {}
        }
    }
    let mut text = String::new();
    collect(value, &mut text);
    text
}
