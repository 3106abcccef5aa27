//! PromptTemplates.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use watchkeeper_ai::Template;
use watchkeeper_core::Key;

use super::fields::Problems;
use super::{Compiler, Put};
use crate::ai::{Input as PromptInput, Prompt, TEXT};
use crate::json_schema::JsonSchema;
use crate::kinds::{PromptInput as WantedInput, PromptInputType, PromptTemplateSpec};
use crate::object::{Input, InputKind, ObjectId, Problem};

impl Compiler {
    pub(super) fn put_prompt(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let prompt = Arc::new(compile(input)?);
        let before = self.ai.prompts.insert(input.id.key.clone(), Arc::clone(&prompt));
        if let Some(before) = before {
            self.name_prompt(&before);
        }
        self.name_prompt(&prompt);
        Ok(Put::default())
    }

    pub(super) fn remove_prompt(&mut self, key: &Key) {
        if let Some(prompt) = self.ai.prompts.remove(key) {
            self.name_prompt(&prompt);
        }
    }

    /// Says anew which versions a prompt has. Of two objects with the same version, the first by name counts.
    fn name_prompt(&mut self, prompt: &Prompt) {
        let same = self.ai.prompts.values();
        let same = same.filter(|other| other.gateway == prompt.gateway && other.name == prompt.name);
        let mut versions: Vec<Arc<Prompt>> = same.cloned().collect();
        let ids = versions.iter().map(|other| ObjectId { kind: InputKind::Prompt, key: other.key.clone() });
        self.touched.extend(ids);
        versions.sort_by_key(|version| (version.rank(), version.key.clone()));
        versions.dedup_by(|later, first| later.version == first.version);
        Arc::make_mut(&mut self.table.ai).put_prompts(&prompt.gateway, &prompt.name, versions);
    }

    /// Prompts say whether their gateways and models are there.
    pub(super) fn touch_prompts(&mut self, namespace: Option<&str>) {
        let prompts = self.ai.prompts.keys().filter(|key| key.namespace() == namespace);
        self.touched.extend(prompts.map(|key| ObjectId { kind: InputKind::Prompt, key: key.clone() }));
    }

    /// What is to be said of another object that has the path of this one.
    pub(super) fn displaced_prompt(&self, key: &Key) -> Option<Problem> {
        let prompt = self.ai.prompts.get(key)?;
        let served = self.table.ai.prompt(&prompt.gateway, &prompt.name, Some(&prompt.version))?;
        (served.key != *key).then(|| {
            let message = format!("is served by PromptTemplate {}, which has the same path", served.key);
            Problem::new("spec.version", message)
        })
    }

    pub(super) fn missing_of_prompt(&self, key: &Key) -> Vec<Problem> {
        let Some(prompt) = self.ai.prompts.get(key) else { return Vec::new() };
        let mut missing = Vec::new();
        if self.table.ai.gateway(&prompt.gateway).is_none() {
            let message = format!("there is no AIGatewayConfig {}", prompt.gateway);
            missing.push(Problem::new("spec.gateway", message));
        }
        if self.table.ai.model(key.namespace().unwrap_or_default(), &prompt.model).is_none() {
            let message = format!("no ModelContextMapping of this namespace is for {:?}", prompt.model);
            missing.push(Problem::new("spec.model", message));
        }
        missing
    }
}

fn compile(input: &Input) -> Result<Prompt, Vec<Problem>> {
    let spec: PromptTemplateSpec = input.checked()?;
    let mut problems = Problems::default();
    let key = &input.id.key;
    let is_name = |text: &str, more: &[u8]| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    let name = spec.prompt.clone().unwrap_or_else(|| key.name().to_owned());
    if !is_name(&name, b"-_") {
        problems
            .add("spec.prompt", format!("{name:?} cannot be part of a path: letters, digits, - and _ can"));
    }
    if !is_name(&spec.version, b"-_.") || spec.version.starts_with('.') {
        let message = format!("{:?} cannot be part of a path: letters, digits, -, _ and . can", spec.version);
        problems.add("spec.version", message);
    }
    let template = problems.note("spec.template", Template::read(&spec.template));
    let system = spec.system.as_ref().and_then(|text| problems.note("spec.system", Template::read(text)));
    for (field, template) in [("spec.template", &template), ("spec.system", &system)] {
        for name in template.as_ref().map(Template::names).unwrap_or_default() {
            if !spec.inputs.contains_key(&name) {
                problems.add(field, format!("{name} is not among spec.inputs"));
            }
        }
    }
    let mut inputs = BTreeMap::new();
    for (name, wanted) in &spec.inputs {
        inputs.extend(self::input(&mut problems, name, wanted).map(|input| (name.clone(), input)));
    }
    // Without a template there is a problem.
    let template = problems.finish(template)?.ok_or_else(Vec::new)?;
    Ok(Prompt {
        key: key.clone(),
        gateway: Key::new(key.namespace(), &spec.gateway),
        name,
        version: spec.version,
        description: spec.description,
        model: spec.model.as_str().into(),
        system,
        template,
        inputs,
        max_tokens: spec.max_tokens.and_then(|most| u64::try_from(most).ok()),
    })
}

/// The types that have a least and a largest value.
const NUMBERS: &[&str] = &["number", "integer"];

/// An input as it is asked for.
fn input(problems: &mut Problems, name: &str, wanted: &WantedInput) -> Option<PromptInput> {
    let field = format!("spec.inputs[{name}]");
    let kind = match wanted.kind {
        PromptInputType::String => "string",
        PromptInputType::Number => "number",
        PromptInputType::Integer => "integer",
        PromptInputType::Boolean => "boolean",
        PromptInputType::Array => "array",
        PromptInputType::Object => "object",
    };
    let max_length = wanted.max_length.and_then(|most| usize::try_from(most).ok()).unwrap_or(TEXT);
    let allowed = (!wanted.allowed.is_empty()).then(|| Value::from(wanted.allowed.clone()));
    // With the types of which they say something.
    let keywords: [(&str, &[&str], Option<Value>); 10] = [
        ("description", &[], wanted.description.as_deref().map(Value::from)),
        ("default", &[], wanted.default.clone()),
        ("enum", &[], allowed),
        ("minimum", NUMBERS, wanted.minimum.map(Value::from)),
        ("maximum", NUMBERS, wanted.maximum.map(Value::from)),
        ("items", &["array"], wanted.items.clone()),
        ("minItems", &["array"], wanted.min_items.map(Value::from)),
        ("maxItems", &["array"], wanted.max_items.map(Value::from)),
        ("properties", &["object"], wanted.properties.clone()),
        ("maxLength", &["string"], (kind == "string").then(|| max_length.into())),
    ];
    let mut schema = json!({"type": kind});
    for (keyword, kinds, value) in keywords {
        let Some(value) = value else { continue };
        if !kinds.is_empty() && !kinds.contains(&kind) {
            let of = kinds.join(" and ");
            problems.add(format!("{field}.{keyword}"), format!("is for inputs of type {of}, not {kind}"));
        }
        schema[keyword] = value;
    }
    let checked = problems.note(field.as_str(), JsonSchema::read(&schema))?;
    let input = PromptInput {
        optional: wanted.optional,
        default: wanted.default.clone(),
        max_length,
        schema,
        checked,
    };
    if let Some(default) = &input.default
        && let Err((place, message)) = input.check(default, &format!("{field}.default"))
    {
        problems.add(place, message);
    }
    Some(input)
}
