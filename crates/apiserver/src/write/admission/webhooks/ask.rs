//! Asking a hook.

use bytes::Bytes;
use tokio::time::Instant;

use super::hook::Hook;
use super::review::{self, Question, Verdict};
use super::{Phase, Webhooks};
use crate::webhook_client::CallLimits;

/// How large an answer may be: a patch is text in text, and may replace a whole object.
const MOST_BYTES: usize = 8 << 20;

impl Webhooks {
    /// Asks a hook. The error is what there is to say about a hook that could not be asked, without its name.
    pub(super) async fn ask(
        &self,
        hook: &Hook,
        phase: Phase,
        question: &Question<'_>,
    ) -> Result<Verdict, String> {
        let Some(version) = hook.review else {
            return Err("webhook does not accept known AdmissionReview versions (v1, v1beta1)".to_owned());
        };
        let uid = crate::object::random::uid();
        let body = Bytes::from(question.review(version, phase, &uid).to_string());
        // What is left to the request is all that the hook has.
        let left = question.attributes.context.deadline;
        let left = left.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(hook.timeout, |left| left.min(hook.timeout));
        let limits = CallLimits { timeout, tells_timeout: true, answer_bytes: MOST_BYTES };
        let answer = self.client.post(&hook.client, limits, body).await;
        let answer = answer.map_err(|why| format!("failed to call webhook: {why}"))?;
        review::read(&answer, version, &uid, phase)
    }
}
