//! Mutating hooks: one after the other, and those that want it once more if others have changed the object since.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use watchkeeper_schema::patch::JsonPatch;

use super::hook::Hook;
use super::matching::{NamespaceLabels, is_exempt};
use super::review::{self, Question};
use super::{Call, Phase, Webhooks, key, note};
use crate::object::meta;
use crate::resource::Resource;
use crate::status_error::StatusError;
use crate::write::Draft;
use crate::write::admission::{Attributes, Verb};

/// What is remembered between the two rounds of a write.
#[derive(Default)]
pub(crate) struct Reinvocation {
    is_second: bool,
    /// Whether a hook changed the object, so that there has to be a second round.
    changed: bool,
    /// Hooks that may be asked again and were asked since the last change.
    asked: HashSet<(String, String)>,
    /// Those of them that came before a change, and are to be asked again.
    outdated: HashSet<(String, String)>,
    /// The object as the last hook left it, if somebody is to be asked again should others change it.
    left: Option<Value>,
}

impl Reinvocation {
    /// Begins the second round, if there has to be one.
    pub(crate) fn again(&mut self) -> bool {
        self.is_second = true;
        std::mem::take(&mut self.changed)
    }

    fn outdate(&mut self) {
        self.outdated.extend(self.asked.drain());
    }
}

impl Webhooks {
    /// Has the mutating hooks complete the object of a write.
    pub(crate) async fn mutate(
        &self,
        attributes: &Attributes<'_>,
        draft: &mut Draft,
        rounds: &mut Reinvocation,
    ) -> Result<(), StatusError> {
        if is_exempt(attributes) {
            return Ok(());
        }
        if rounds.is_second && rounds.left.as_ref().is_some_and(|left| *left != draft.object) {
            rounds.outdate();
        }
        let mut labels = NamespaceLabels::default();
        for (at, hook) in self.hooks(Phase::Mutating).iter().enumerate() {
            let concerned = self.concerned(hook, attributes, &draft.object, &mut labels).await?;
            let Some(resource) = concerned else { continue };
            let id = (hook.configuration.clone(), hook.name.clone());
            if rounds.is_second && !rounds.outdated.contains(&id) || !self.may_ask(hook, attributes)? {
                continue;
            }
            let call = (u8::from(rounds.is_second), at);
            let completed = self.complete(hook, &resource, attributes, draft, call).await;
            let mutated = completed.as_ref().is_ok_and(|mutated| *mutated);
            let value =
                json!({"configuration": hook.configuration, "webhook": hook.name, "mutated": mutated});
            attributes.context.annotations.add(key("mutation", call), value.to_string());
            if completed? {
                rounds.outdate();
                rounds.changed = true;
            }
            if hook.again {
                rounds.asked.insert(id);
            }
        }
        if !rounds.is_second && !rounds.asked.is_empty() {
            rounds.left = Some(draft.object.clone());
        }
        Ok(())
    }

    /// Has one hook complete the object. True if it changed it.
    async fn complete(
        &self,
        hook: &Arc<Hook>,
        resource: &Resource,
        attributes: &Attributes<'_>,
        draft: &mut Draft,
        call: Call,
    ) -> Result<bool, StatusError> {
        let from = &attributes.target.resource;
        let mut object = self.converted(from, resource, &draft.object).await?;
        let system = take_system_fields(attributes, &mut object);
        let old = self.old(attributes, resource).await?;
        let question = Question { attributes, resource, object: &object, old: &old };
        let failed = |why: &str| self.failed(hook, Phase::Mutating, attributes, call, why).map(|()| false);
        let verdict = match self.ask(hook, Phase::Mutating, &question).await {
            Ok(verdict) => verdict,
            Err(why) => return failed(&why),
        };
        note(hook, attributes, &verdict);
        draft.warnings.extend(verdict.warnings);
        if !verdict.allowed {
            let denied = review::denied(hook, &verdict.status).with_warnings(draft.warnings.clone());
            self.count(hook, Phase::Mutating, attributes, denied.code, false);
            return Err(denied);
        }
        let Some(patch) = verdict.patch else { return Ok(false) };
        let patch = match JsonPatch::decode(&patch) {
            Ok(patch) => patch,
            Err(error) => {
                let error = error.to_string().replace("[]handlers.jsonPatchOp", "jsonpatch.Patch");
                let why = format!("received undecodable patch in webhook response: {error}");
                return failed(&why);
            }
        };
        if patch.is_empty() {
            return Ok(false);
        }
        if verdict.patch_type != "JSONPatch" {
            return failed(&format!("unsupported patch type {:?}", verdict.patch_type));
        }
        if draft.object.is_null() {
            let why = "attempted to modify the object, which is not supported for this operation";
            return Err(StatusError::internal(format!("admission webhook {:?} {why}", hook.name)));
        }
        let mut patched = patch.apply(&object).map_err(|error| StatusError::internal(error.to_string()))?;
        let value =
            json!({"configuration": hook.configuration, "webhook": hook.name, "patchType": "JSONPatch"});
        attributes.context.annotations.add(key("patch", call), value.to_string());
        let unusable = |why: String| StatusError::internal(why);
        if !patched.is_object() {
            return Err(unusable(format!(
                "admission webhook {:?} made something else of the object",
                hook.name
            )));
        }
        // A Scale, a Binding, an Eviction and a TokenRequest have none of the fields of the resource that they are of.
        if !matches!(attributes.subresource, "scale" | "binding" | "eviction" | "token") {
            resource.coerce_unpruned(&mut patched).map_err(unusable)?;
            resource.default(&mut patched);
        }
        let mut patched = self.converted(resource, from, &patched).await?;
        for (field, value) in system {
            meta::set(&mut patched, field, value);
        }
        if !draft.is_hooked {
            draft.owners = meta::get(&draft.object, "managedFields").cloned();
        }
        // One that changes nothing counts as a change, too, as in kube-apiserver.
        draft.object = patched;
        draft.is_hooked = true;
        Ok(true)
    }
}

/// Takes out of a new object what the server gives it only after hooks have seen it.
fn take_system_fields(attributes: &Attributes<'_>, object: &mut Value) -> Vec<(&'static str, Value)> {
    if attributes.verb != Verb::Create || !attributes.subresource.is_empty() {
        return Vec::new();
    }
    let fields =
        ["uid", "creationTimestamp"].into_iter().chain(attributes.name_is_generated.then_some("name"));
    let taken = fields.filter_map(|field| Some((field, meta::get(object, field)?.clone())));
    let taken: Vec<_> = taken.collect();
    for (field, _) in &taken {
        meta::remove(object, field);
    }
    taken
}
