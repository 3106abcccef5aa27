//! Disruption budgets: whether a Pod may be evicted now.

use parking_lot::Mutex;
use serde_json::{Value, json};
use watchkeeper_storage::Range;
use watchkeeper_wire::LabelSelector;

use super::operation::Operation;
use super::request::{Current, Moment, Planned};
use super::{Subresource, WriteRequest, Writer};
use crate::object::meta;
use crate::resource::ObjectRef;
use crate::status_error::{StatusError, Subject};

/// The manager of the fields of budgets that evictions write.
const MANAGER: &str = "kube-apiserver";

/// The most evictions of one budget that nobody has confirmed.
const MOST_DISRUPTED: usize = 2000;

/// The reason of the causes of a refusal.
const CAUSE: &str = "DisruptionBudget";

impl Writer {
    /// Asks the budget of a Pod that is evicted whether it may go, and takes note in it that it will.
    ///
    /// An eviction that admission refuses costs no disruption, so this comes after it. A Pod that may go because of the state that it is in
    /// goes in that state only, since that is what the commit depends on. If another writer is faster there, the budget is not charged again.
    pub(super) async fn charge_disruption(
        &self,
        request: &WriteRequest<'_>,
        current: &Current,
        planned: &Planned,
        moment: &Moment,
    ) -> Result<(), StatusError> {
        let (Operation::Evict(eviction), Some(pod)) = (&request.operation, &current.object) else {
            return Ok(());
        };
        let (place, options) = (&request.target, eviction.options(&planned.asked)?);
        let is_running = !meta::is_deleting(pod)
            && !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Pending"));
        if !is_running || eviction.is_charged() {
            return Ok(());
        }
        let mut budgets = self.budgets_of(place, pod).await?;
        let Some((budget, mut state)) = budgets.pop() else { return Ok(()) };
        if !budgets.is_empty() {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(StatusError::untyped(message));
        }
        if !is_ready(pod) && may_lose_unready(&state) {
            return Ok(());
        }
        if options.dry_run || request.context.dry_run {
            return disrupt(&mut state, &place.name, "");
        }
        let verdict = Mutex::new(Ok(()));
        let change = |state: &mut Value| {
            let mut next = state.clone();
            let judged = disrupt(&mut next, &place.name, &moment.stamp);
            if judged.is_ok() {
                *state = next;
            }
            *verdict.lock() = judged;
        };
        Box::pin(self.modify_as(MANAGER, &budget, Subresource::Status, change)).await?;
        verdict.into_inner()?;
        eviction.set_charged();
        Ok(())
    }

    /// The budgets that select a Pod, and what they say.
    async fn budgets_of(
        &self,
        place: &ObjectRef,
        pod: &Value,
    ) -> Result<Vec<(ObjectRef, Value)>, StatusError> {
        let Some(resource) = self.registrar.current().find("policy", "v1", "poddisruptionbudgets") else {
            return Ok(Vec::new());
        };
        let page = self.storage.range(Range::prefix(&resource.prefix_in(place.namespace.as_deref()))).await?;
        let mut found = Vec::new();
        for entry in &page.entries {
            let budget = resource.read(entry)?;
            // One whose selector cannot be read selects nothing.
            let selector = LabelSelector::from_object(budget["spec"].get("selector"));
            if selector.is_ok_and(|selector| selector.matches(pod["metadata"]["labels"].as_object())) {
                found.push((ObjectRef::of(&resource, &entry.key), budget));
            }
        }
        Ok(found)
    }
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Whether a Pod that is not ready may go without anybody missing it.
fn may_lose_unready(budget: &Value) -> bool {
    let status = |field: &str| budget["status"][field].as_i64().unwrap_or_default();
    let (healthy, desired) = (status("currentHealthy"), status("desiredHealthy"));
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" || (healthy >= desired && desired > 0)
}

/// Takes note in a budget that a Pod goes, or says why it may not.
fn disrupt(budget: &mut Value, pod: &str, now: &str) -> Result<(), StatusError> {
    const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
    let name = meta::name(budget).to_owned();
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let generation = number(&budget["metadata"]["generation"]);
    let status = &mut budget["status"];
    if number(&status["observedGeneration"]) < generation {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(StatusError::too_many_requests(REFUSED, 10).cause(CAUSE, why, ""));
    }
    let forbidden = |why: &str| {
        let subject = Subject { group: "policy", name: "poddisruptionbudget" };
        Err(StatusError::forbidden(subject, &name, why))
    };
    let allowed = number(&status["disruptionsAllowed"]);
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    if status["disruptedPods"].as_object().is_some_and(|pods| pods.len() > MOST_DISRUPTED) {
        return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if allowed == 0 {
        return Err(StatusError::too_many_requests(REFUSED, 0).cause(CAUSE, why_none(&name, status), ""));
    }
    status["disruptionsAllowed"] = allowed.saturating_sub(1).into();
    if allowed == 1 {
        let observed = status["observedGeneration"].clone();
        set_insufficient(status, observed, now);
    }
    status["disruptedPods"][pod] = now.into();
    Ok(())
}

/// Why a budget allows nobody to go.
fn why_none(name: &str, status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut said = conditions.filter(|condition| {
        condition["type"] == "DisruptionAllowed"
            && condition["status"] == "False"
            && condition["message"].as_str().is_some_and(|message| !message.is_empty())
    });
    let said = said.next().map(|condition| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("message"))
    });
    let number = |field: &str| status[field].as_i64().unwrap_or_default();
    let (healthy, desired) = (number("currentHealthy"), number("desiredHealthy"));
    match said {
        Some((reason, message)) if reason == "SyncFailed" => {
            format!(
                "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
            )
        }
        _ if healthy <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        }
        Some((reason, message)) => {
            format!(
                "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
            )
        }
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// Says in the conditions of a budget that nobody else may go.
fn set_insufficient(status: &mut Value, observed_generation: Value, now: &str) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    let known = conditions.iter_mut().find(|condition| condition["type"] == "DisruptionAllowed");
    let (since, place) = match known {
        Some(known) if known["status"] == "False" => (known["lastTransitionTime"].clone(), Some(known)),
        known => (now.into(), known),
    };
    let mut condition = json!({
        "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
        "lastTransitionTime": since,
    });
    if observed_generation.is_number() {
        condition["observedGeneration"] = observed_generation;
    }
    match place {
        Some(place) => *place = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(status: &Value) -> Value {
        json!({"metadata": {"name": "b", "generation": 2}, "spec": {}, "status": status})
    }

    fn causes(failure: &StatusError) -> String {
        failure.status()["details"]["causes"][0]["message"].as_str().unwrap_or_default().to_owned()
    }

    #[test]
    fn an_eviction_is_taken_note_of_and_the_last_one_says_so() {
        let mut state = budget(&json!({"observedGeneration": 2, "disruptionsAllowed": 2}));
        disrupt(&mut state, "one", "t1").unwrap();
        assert_eq!(state["status"]["disruptionsAllowed"], 1);
        assert_eq!(state["status"]["disruptedPods"]["one"], "t1");
        assert!(state["status"].get("conditions").is_none());
        disrupt(&mut state, "two", "t2").unwrap();
        assert_eq!(state["status"]["conditions"][0]["reason"], "InsufficientPods");
        let failure = disrupt(&mut state, "three", "t3").unwrap_err();
        assert_eq!(failure.code, 429);
        assert_eq!(causes(&failure), "The disruption budget b needs 0 healthy pods and has 0 currently");
        assert!(state["status"]["disruptedPods"].get("three").is_none());
    }

    #[test]
    fn a_budget_that_nobody_has_counted_yet_asks_to_wait() {
        let failure = disrupt(&mut budget(&json!({"disruptionsAllowed": 5})), "a", "t").unwrap_err();
        assert_eq!((failure.code, failure.retry_after_seconds()), (429, Some(10)));
        let mut negative = budget(&json!({"observedGeneration": 2, "disruptionsAllowed": -1}));
        assert_eq!(disrupt(&mut negative, "a", "t").unwrap_err().code, 403);
    }

    #[test]
    fn the_reason_is_the_one_that_can_be_trusted() {
        let condition = |reason: &str, message: &str| json!([{"type": "DisruptionAllowed", "status": "False", "reason": reason, "message": message}]);
        let say = |status: Value| {
            let mut state = budget(&status);
            state["status"]["observedGeneration"] = 2.into();
            causes(&disrupt(&mut state, "a", "t").unwrap_err())
        };
        assert!(
            say(json!({"conditions": condition("SyncFailed", "no scale")}))
                .ends_with("failed sync: no scale")
        );
        let more =
            json!({"currentHealthy": 3, "desiredHealthy": 1, "conditions": condition("Other", "because")});
        assert!(say(more).ends_with("currently (Other): because"));
        assert!(say(json!({"currentHealthy": 3, "desiredHealthy": 1})).ends_with("evicting pods currently"));
    }
}
