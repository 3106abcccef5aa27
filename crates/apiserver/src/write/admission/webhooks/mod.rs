//! Admission webhooks: servers of others that complete or refuse writes.
//!
//! A [`Hook`] is one entry of a MutatingWebhookConfiguration or ValidatingWebhookConfiguration. [`Webhooks`] knows all of them; a
//! configuration is in force when its writer is answered. Mutating hooks are called one after the other, by the names of their
//! configurations and in the order in which these list them; validating hooks all at once. The server's own writes call none.
//!
//! Nothing is locked while a hook is asked: one that hangs holds up the writes that it is asked about, and nobody else.

mod ask;
mod hook;
mod matching;
mod mutate;
mod review;
mod validate;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::watch;
use watchkeeper_storage::{Revision, Storage};

use crate::conversion::Converter;
use crate::metrics::WebhookMetrics;
use crate::registry::Registrar;
use crate::webhook_client::WebhookClient;
use crate::write::admission::Attributes;
use hook::Hook;
use review::Verdict;

pub(crate) use mutate::Reinvocation;

/// The group of the configurations.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// Whether a hook may change what it is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Mutating,
    Validating,
}

impl Phase {
    /// What upstream's metrics call it.
    fn name(self) -> &'static str {
        match self {
            Self::Mutating => "admit",
            Self::Validating => "validating",
        }
    }

    /// What upstream's audit annotations call it.
    fn annotated(self) -> &'static str {
        match self {
            Self::Mutating => "mutation",
            Self::Validating => "validating",
        }
    }
}

/// The round in which a hook is asked, and its place among those that are.
type Call = (u8, usize);

/// The key of an audit annotation about a call.
fn key(about: &str, (round, index): Call) -> String {
    format!("{about}.webhook.admission.k8s.io/round_{round}_index_{index}")
}

/// Notes what a hook wants to be noted about a request.
fn note(hook: &Hook, attributes: &Attributes<'_>, verdict: &Verdict) {
    for (name, value) in &verdict.annotations {
        attributes.context.annotations.add_notable(format!("{}/{name}", hook.name), value.clone());
    }
}

/// All webhooks, and what it takes to call them.
pub(crate) struct Webhooks {
    storage: Arc<dyn Storage>,
    registrar: Arc<Registrar>,
    mutating: RwLock<Table>,
    validating: RwLock<Table>,
    /// The revision up to which all configurations are known here.
    reached: watch::Sender<Revision>,
    client: Arc<WebhookClient>,
    converter: Arc<Converter>,
    metrics: WebhookMetrics,
}

/// The hooks of one phase.
#[derive(Default)]
struct Table {
    /// By the names of their configurations.
    configurations: BTreeMap<String, Vec<Arc<Hook>>>,
    /// All, in the order in which they are called.
    all: Arc<[Arc<Hook>]>,
}

impl Table {
    fn new(configurations: BTreeMap<String, Vec<Arc<Hook>>>) -> Self {
        let all = configurations.values().flatten().cloned().collect();
        Self { configurations, all }
    }
}

fn read_hooks(name: &str, configuration: &Value) -> Vec<Arc<Hook>> {
    Hook::read_all(name, configuration).into_iter().map(Arc::new).collect()
}

impl Webhooks {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        registrar: Arc<Registrar>,
        client: Arc<WebhookClient>,
        converter: Arc<Converter>,
        metrics: WebhookMetrics,
    ) -> Self {
        Self {
            storage,
            registrar,
            mutating: RwLock::default(),
            validating: RwLock::default(),
            reached: watch::channel(0).0,
            client,
            converter,
            metrics,
        }
    }

    fn table(&self, phase: Phase) -> &RwLock<Table> {
        match phase {
            Phase::Mutating => &self.mutating,
            Phase::Validating => &self.validating,
        }
    }

    /// Takes in all configurations in the place of those that are known, in one step for each phase: there is no moment in which a
    /// hook that stays is not asked. Of one that cannot be read (`None`), what was in force stays so.
    pub(crate) fn replace(&self, configurations: &[(Phase, String, Option<Value>)]) {
        for phase in [Phase::Mutating, Phase::Validating] {
            let mut table = self.table(phase).write();
            let of_phase = configurations.iter().filter(|(other, ..)| *other == phase);
            let hooks = of_phase.filter_map(|(_, name, configuration)| {
                let hooks = match configuration {
                    Some(configuration) => read_hooks(name, configuration),
                    None => table.configurations.get(name)?.clone(),
                };
                Some((name.clone(), hooks))
            });
            *table = Table::new(hooks.collect());
        }
    }

    /// Takes in a configuration, or forgets it.
    pub(crate) fn set(&self, phase: Phase, name: &str, configuration: Option<&Value>) {
        let mut table = self.table(phase).write();
        match configuration {
            Some(configuration) => {
                table.configurations.insert(name.to_owned(), read_hooks(name, configuration));
            }
            None => drop(table.configurations.remove(name)),
        }
        *table = Table::new(std::mem::take(&mut table.configurations));
    }

    /// Everything up to a revision has been taken in.
    pub(crate) fn reached(&self, revision: Revision) {
        self.reached.send_replace(revision);
    }

    /// Waits until every configuration up to a revision is known here.
    pub(crate) async fn reach(&self, revision: Revision) {
        // The sender is not dropped while this is borrowed.
        let _ = self.reached.subscribe().wait_for(|reached| *reached >= revision).await;
    }

    /// The hooks of a phase.
    fn hooks(&self, phase: Phase) -> Arc<[Arc<Hook>]> {
        Arc::clone(&self.table(phase).read().all)
    }

    /// Whether there are any hooks of a phase.
    pub(crate) fn are_there(&self, phase: Phase) -> bool {
        !self.table(phase).read().all.is_empty()
    }
}
