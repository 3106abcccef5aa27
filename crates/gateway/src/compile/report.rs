use std::fmt;

use serde_json::{Value, json};

use super::{Compiler, Entry, Form};
use crate::object::{InputKind, ObjectId, Problem};
use crate::table::Attachment;

/// One thing that is true or not of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whether it is.
    pub is_true: bool,
    /// A word for programs.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Which object.
    pub id: ObjectId,
    /// Which source it comes from.
    pub source: usize,
    /// The generation that this is about.
    pub generation: i64,
    /// Whether the object is valid.
    pub accepted: Condition,
    /// Whether everything that it refers to is there.
    pub resolved: Condition,
    /// Whether requests are served by this generation of it.
    pub programmed: Condition,
    /// The status of an object of Gateway API, without the times of transitions.
    pub status: Option<Value>,
}

impl Condition {
    pub(super) fn of(reason: &'static str, problems: &[Problem]) -> Option<Self> {
        let said: Vec<String> = problems.iter().map(Problem::to_string).collect();
        (!said.is_empty()).then(|| Self { is_true: false, reason, message: said.join("; ") })
    }

    pub(super) fn good(reason: &'static str) -> Self {
        Self { is_true: true, reason, message: String::new() }
    }
}

impl Report {
    /// That of an object of which there is nothing to say but that it is served.
    pub(crate) fn of_served(id: ObjectId, source: usize, generation: i64) -> Self {
        let (accepted, resolved) = (Condition::good("Accepted"), Condition::good("ResolvedRefs"));
        let programmed = Condition::good("Programmed");
        Self { id, source, generation, accepted, resolved, programmed, status: None }
    }
}

impl Compiler {
    /// What became of an object of the gateway; `None` for other kinds, and for objects that are gone.
    pub fn report(&self, id: &ObjectId) -> Option<Report> {
        let entry = self.objects.get(id)?;
        if !id.kind.is_own() {
            return self.standard_report(id, entry);
        }
        let Form { place, input } = &**entry.first()?;
        let doubles = self.doubles_of(id);
        let displaced = self.displaced.get(&id.key).filter(|_| id.kind == InputKind::Listener);
        let mut accepted = Condition::of("Invalid", &entry.notes().problems);
        if let Some(displaced) = displaced {
            accepted = accepted.or(Condition::of("Conflicted", std::slice::from_ref(displaced)));
        }
        let taken = match id.kind {
            InputKind::Model => self.displaced_model(&id.key),
            InputKind::Prompt => self.displaced_prompt(&id.key),
            _ => None,
        };
        let is_displaced = displaced.is_some() || taken.is_some();
        accepted = accepted.or(taken.and_then(|taken| Condition::of("Conflicted", &[taken])));
        let is_served = accepted.is_none();
        let accepted = accepted.unwrap_or_else(|| match doubles {
            Some(told) => Condition { is_true: true, reason: "Conflicted", message: told },
            None => Condition::good("Accepted"),
        });
        let mut unresolved = entry.notes().unresolved.clone();
        unresolved.extend(self.missing(id));
        let resolved = Condition::of("RefNotFound", &unresolved)
            .or_else(|| Condition::of("PricesMissing", &self.unpriced(id)))
            .unwrap_or_else(|| Condition::good("ResolvedRefs"));
        let unusable = self.unusable_policies(id);
        let pending = self.pending(&id.key).filter(|_| id.kind == InputKind::Subscription);
        let programmed = match is_served {
            true if !unusable.is_empty() => Condition {
                is_true: false,
                reason: "PolicyInvalid",
                message: format!("requests are answered with 500: {}", unusable.join("; ")),
            },
            true if pending.is_some() => Condition {
                is_true: false,
                reason: "Pending",
                message: pending.unwrap_or_default().to_owned(),
            },
            true => Condition::good("Programmed"),
            false if is_displaced => Condition {
                is_true: false,
                reason: "Conflicted",
                message: "the object is not served: another one has its place".to_owned(),
            },
            false if entry.good.is_some() => Condition {
                is_true: false,
                reason: "LastGood",
                message: "an older generation of the object is served".to_owned(),
            },
            false => Condition {
                is_true: false,
                reason: "Invalid",
                message: match id.kind {
                    InputKind::Policy => {
                        "there is no form of it that can be used: what it is for answers with 500"
                    }
                    _ => "the object is not served",
                }
                .to_owned(),
            },
        };
        Some(Report {
            id: id.clone(),
            source: place.0,
            generation: input.generation,
            accepted,
            resolved,
            programmed,
            status: None,
        })
    }

    /// What is wrong with the form of an object that counts.
    pub fn problems(&self, id: &ObjectId) -> &[Problem] {
        self.objects.get(id).map_or(&[], |entry| &entry.notes().problems)
    }

    /// The policies for a listener or route that never could be used.
    fn unusable_policies(&self, id: &ObjectId) -> Vec<String> {
        let attachments = match id.kind {
            InputKind::Listener => vec![Attachment::Listener(id.key.clone())],
            InputKind::Route => {
                let namespace = id.key.namespace().unwrap_or_default();
                vec![Attachment::Namespace(namespace.into()), Attachment::Route(id.key.clone())]
            }
            _ => Vec::new(),
        };
        let policies = attachments.iter().flat_map(|attachment| self.table.policies(attachment));
        let unusable = policies.filter(|policy| policy.is_unusable);
        unusable.map(|policy| format!("GatewayPolicy {} cannot be used", policy.key)).collect()
    }

    /// The forms of an object that do not count, because a source before has it too: their sources, and their generations.
    pub fn shadowed(&self, id: &ObjectId) -> Vec<(usize, i64)> {
        let candidates = self.objects.get(id).map(Entry::candidates).unwrap_or_default();
        candidates.iter().skip(1).map(|form| (form.place.0, form.input.generation)).collect()
    }

    /// What a route or policy refers to and what is not there.
    fn missing(&self, id: &ObjectId) -> Vec<Problem> {
        let mut missing = Vec::new();
        match id.kind {
            InputKind::Route => {
                let Some(route) = self.table.route(&id.key) else { return missing };
                for name in self.backend_users.by_user.get(&id.key).into_iter().flatten() {
                    if self.table.backend(name).is_none() {
                        missing
                            .push(Problem::new("spec.rules", format!("there is no GatewayBackend {name}")));
                    }
                }
                for name in route.head.listeners.iter().flatten() {
                    match self.listeners.get(name) {
                        None => missing.push(Problem::new(
                            "spec.listeners",
                            format!("there is no GatewayListener {name}"),
                        )),
                        Some(listener) if !listener.allows(id.key.namespace().unwrap_or_default()) => missing
                            .push(Problem::new(
                                "spec.listeners",
                                format!("GatewayListener {name} does not take routes of this namespace"),
                            )),
                        Some(_) => {}
                    }
                }
            }
            InputKind::Policy => {
                let Some(policy) = self.policies.get(&id.key) else { return missing };
                for attachment in &policy.attachments {
                    let gone = match attachment {
                        Attachment::Listener(key) if !self.listeners.contains_key(key) => {
                            format!("there is no GatewayListener {key}")
                        }
                        Attachment::Route(key) if self.table.route(key).is_none() => {
                            format!("there is no GatewayRoute {key}")
                        }
                        _ => continue,
                    };
                    missing.push(Problem::new("spec.targets", gone));
                }
            }
            InputKind::Model => missing.extend(self.missing_providers(&id.key)),
            InputKind::Prompt => missing.extend(self.missing_of_prompt(&id.key)),
            InputKind::Api | InputKind::Subscription => missing.extend(self.missing_of_api(id)),
            _ => {}
        }
        missing
    }

    /// What is to be said of other routes that match the same as this one.
    fn doubles_of(&self, id: &ObjectId) -> Option<String> {
        let route = self.table.route(&id.key).filter(|_| id.kind == InputKind::Route)?;
        let mut told: Vec<String> = self
            .table
            .doubles(route)
            .into_iter()
            .map(|(rule, other)| {
                let field = format!("spec.rules[{}].matches[{}]", rule.index.0, rule.index.1);
                match (rule.route.created.is_none(), &rule.route.created, &rule.route.key)
                    < (other.route.created.is_none(), &other.route.created, &other.route.key)
                {
                    true => format!(
                        "{field}: route {} matches the same and is younger: this one serves",
                        other.route.key
                    ),
                    false => format!(
                        "{field}: route {} matches the same and is older: that one serves",
                        other.route.key
                    ),
                }
            })
            .collect();
        told.sort();
        told.dedup();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

impl Report {
    /// Whether all is well.
    pub fn is_good(&self) -> bool {
        [&self.accepted, &self.resolved, &self.programmed].iter().all(|condition| condition.is_true)
            && self.accepted.reason != "Conflicted"
    }

    /// What became of the form of the object that another source has, which does not count.
    pub fn shadowed(&self, source: usize, generation: i64, by: &str) -> Self {
        let not =
            |message: &str| Condition { is_true: false, reason: "Shadowed", message: message.to_owned() };
        Self {
            id: self.id.clone(),
            source,
            generation,
            accepted: not(&format!("the source {by} has this object too, and counts more")),
            resolved: self.resolved.clone(),
            programmed: not("the object is not served"),
            status: None,
        }
    }

    /// The conditions with their names.
    pub fn conditions(&self) -> [(&'static str, &Condition); 3] {
        [("Accepted", &self.accepted), ("ResolvedRefs", &self.resolved), ("Programmed", &self.programmed)]
    }

    /// All of it as JSON.
    pub fn to_json(&self) -> Value {
        let conditions: Vec<Value> = self
            .conditions()
            .iter()
            .map(|(name, condition)| {
                json!({
                    "type": name,
                    "status": if condition.is_true { "True" } else { "False" },
                    "reason": condition.reason,
                    "message": condition.message,
                })
            })
            .collect();
        json!({
            "kind": self.id.kind.names().1,
            "name": self.id.key.to_string(),
            "observedGeneration": self.generation,
            "conditions": conditions,
        })
    }
}

/// What is not well, in a line.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)?;
        let mut any = false;
        for (name, condition) in self.conditions() {
            if !condition.message.is_empty() {
                any = true;
                write!(f, ": {name}={} ({})", condition.is_true, condition.message)?;
            }
        }
        if any { Ok(()) } else { f.write_str(": programmed") }
    }
}
