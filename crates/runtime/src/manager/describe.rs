use std::io::Write as _;

use watchkeeper_client::{DynamicKind, StaticKind};
use watchkeeper_description::{
    API_VERSION, Description, Election, Metric, Namespaces, Port, Resource, Right, Rights, Run, Verbs, When,
};

use crate::declared::{dynamic_resource, resource, status_of};
use crate::error::{Error, Result};
use crate::manager::Manager;
use crate::metric_names::METRICS;

/// Where programs serve probes and metrics unless told otherwise.
#[cfg(all(feature = "server", unix))]
const METRICS_PORT: u16 = 8080;

impl Manager {
    /// The version of the program, for its [description](Self::description): `env!("CARGO_PKG_VERSION")`.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.about.version = Some(version.into());
        self
    }

    /// Sets the purpose of the program, in a sentence, for its [description](Self::description).
    #[must_use]
    pub fn about(mut self, text: impl Into<String>) -> Self {
        self.about.text = Some(text.into());
        self
    }

    /// Declares that tasks write objects of kind `C`; as [on a controller](crate::ControllerBuilder::writes).
    #[must_use]
    pub fn writes<C: StaticKind>(mut self, verbs: Verbs) -> Self {
        self.about.rights.push(Right::of(resource::<C>(), verbs | Verbs::GET, "a task writes them"));
        self
    }

    /// As [`writes`](Self::writes), for a kind that is known at run time only.
    #[must_use]
    pub fn writes_dynamic(mut self, kind: &DynamicKind, verbs: Verbs) -> Self {
        self.about.rights.push(Right::of(dynamic_resource(kind), verbs | Verbs::GET, "a task writes them"));
        self
    }

    /// Declares that tasks write the status of objects of kind `C`.
    #[must_use]
    pub fn writes_status<C: StaticKind>(mut self) -> Self {
        self.about.rights.extend(status_of(resource::<C>(), "a task writes their status"));
        self
    }

    /// As [`writes_status`](Self::writes_status), for a kind that is known at run time only.
    #[must_use]
    pub fn writes_status_dynamic(mut self, kind: &DynamicKind) -> Self {
        self.about.rights.extend(status_of(dynamic_resource(kind), "a task writes their status"));
        self
    }

    /// Declares that tasks use a part of objects of kind `C` that has a path of its own: `scale`, `eviction`.
    #[must_use]
    pub fn uses_subresource<C: StaticKind>(mut self, name: &str, verbs: Verbs) -> Self {
        self.about.rights.push(Right::of(resource::<C>(), verbs, "a task uses a subresource").on(name));
        self
    }

    /// As [`uses_subresource`](Self::uses_subresource), for a kind that is known at run time only.
    #[must_use]
    pub fn uses_subresource_dynamic(mut self, kind: &DynamicKind, name: &str, verbs: Verbs) -> Self {
        self.about
            .rights
            .push(Right::of(dynamic_resource(kind), verbs, "a task uses a subresource").on(name));
        self
    }

    /// Declares that tasks read objects of kind `C` past the cache.
    #[must_use]
    pub fn reads_live<C: StaticKind>(mut self) -> Self {
        let verbs = Verbs::GET | Verbs::LIST;
        self.about.rights.push(Right::of(resource::<C>(), verbs, "a task reads them live"));
        self
    }

    /// As [`reads_live`](Self::reads_live), for a kind that is known at run time only.
    #[must_use]
    pub fn reads_live_dynamic(mut self, kind: &DynamicKind) -> Self {
        let verbs = Verbs::GET | Verbs::LIST;
        self.about.rights.push(Right::of(dynamic_resource(kind), verbs, "a task reads them live"));
        self
    }

    /// Sends also what was not declared. For programs whose rights nobody derives, such as those that run beside the server with all of
    /// them. Their [description](Self::description) says that its rights are not complete.
    #[must_use]
    pub fn allow_undeclared(mut self) -> Self {
        self.about.allow_undeclared = true;
        self
    }

    /// Asks the cluster at the start whether it allows what is declared. What is missing is in the log and in `/readyz`, with the rules to
    /// add. [`run`](Self::run) and [`run_until`](Self::run_until) do so in any case.
    #[must_use]
    pub fn checking_access(mut self) -> Self {
        self.about.checks_access = true;
        self
    }

    /// The description of the program: its parts, and its requests to a cluster. Needs no cluster.
    pub fn description(&self) -> Description {
        let option = |name: &str| self.about.has_options.then(|| name.to_owned());
        let installs = !self.about.definitions.is_empty() || self.has_webhooks();
        #[cfg_attr(not(all(feature = "webhooks", unix)), allow(unused_mut, reason = "webhooks add to it"))]
        let mut description = Description {
            api_version: API_VERSION.to_owned(),
            name: self.name.clone(),
            version: self.about.version.clone(),
            about: self.about.text.clone(),
            definitions: self.about.definitions.clone(),
            controllers: self
                .controllers
                .iter()
                .map(|controller| controller.declared.description.clone())
                .collect(),
            caches: self.about.caches.clone(),
            rights: self.rights(),
            election: self.election_described(),
            metrics_port: self.port(),
            install_option: option("--install-definitions").filter(|_| installs),
            metrics: metrics(),
            webhooks: Vec::new(),
            webhook_port: None,
            webhook_arguments: Vec::new(),
            namespaces_option: option("--namespaces"),
            run: Run::default(),
            grace_seconds: self.grace.as_secs(),
        };
        #[cfg(all(feature = "webhooks", unix))]
        self.describe_webhooks(&mut description);
        description
    }

    #[cfg(not(all(feature = "webhooks", unix)))]
    fn has_webhooks(&self) -> bool {
        false
    }

    /// Everything that the program asks of a cluster.
    pub(crate) fn rights(&self) -> Rights {
        let mut rights = Rights::default();
        for controller in &self.controllers {
            controller.declared.rights().for_each(|right| rights.add(right));
            for right in controller.declared.description.of.iter().flat_map(|of| self.implied_status(of)) {
                rights.add(right);
            }
        }
        for cache in &self.about.caches {
            rights.add(Right::of(cache.resource.clone(), Verbs::READ, "a cache"));
        }
        self.about.rights.iter().cloned().for_each(|right| rights.add(right));
        for cache in self.about.caches.iter().filter(|cache| !cache.namespaces.is_empty()) {
            rights.limit(&cache.resource.group, &cache.resource.plural, &cache.namespaces);
        }
        if cfg!(feature = "events") {
            let events = named("events.k8s.io", "Event", "events", true);
            rights.add(Right::of(events, Verbs::CREATE | Verbs::PATCH, "events"));
        }
        if let Some(right) = self.definition_rights() {
            rights.add(right);
        }
        #[cfg(all(feature = "webhooks", unix))]
        self.webhook_rights().into_iter().for_each(|right| rights.add(right));
        if let Some(Election { lease, namespace, .. }) = self.election_described() {
            let leases = named("coordination.k8s.io", "Lease", "leases", true);
            let verbs = Verbs::GET | Verbs::CREATE | Verbs::UPDATE;
            let mut right = Right::of(leases, verbs, "the election of a leader");
            right.names = vec![lease];
            right.namespaces =
                namespace.map_or(Namespaces::Own, |namespace| Namespaces::These(vec![namespace]));
            right.when = When::ElectingLeader;
            rights.add(right);
        }
        if !self.namespaces.is_empty() {
            rights.limit_all(&self.namespaces);
        }
        if self.about.allow_undeclared {
            rights.set_incomplete();
        }
        rights
    }

    /// A controller of a kind that the program [installs](Self::install) writes its status, if the kind has one. Who writes the status of a
    /// kind that somebody else defines is not known: a controller that does declares it.
    fn implied_status(&self, of: &Resource) -> Vec<Right> {
        let own = self.about.definitions.iter().find(|definition| {
            let spec = &definition["spec"];
            spec["group"] == *of.group && spec["names"]["plural"] == *of.plural
        });
        let mut versions = own.and_then(|own| own["spec"]["versions"].as_array()).into_iter().flatten();
        let has_status = versions
            .any(|version| version["name"] == *of.version && version["subresources"]["status"].is_object());
        if has_status { status_of(of.clone(), "its controller writes the status").into() } else { Vec::new() }
    }

    fn definition_rights(&self) -> Option<Right> {
        let names: Vec<String> = self
            .about
            .definitions
            .iter()
            .filter_map(|one| one["metadata"]["name"].as_str().map(str::to_owned))
            .collect();
        if names.is_empty() {
            return None;
        }
        let definitions =
            named("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", false);
        let verbs = Verbs::GET | Verbs::APPLY;
        let mut right = Right::of(definitions, verbs, "installs its definitions");
        right.names = names;
        right.when = When::InstallingDefinitions;
        Some(right)
    }

    #[cfg(all(feature = "server", unix))]
    fn port(&self) -> Option<Port> {
        let option = self.about.has_options.then(|| "--metrics-addr".to_owned());
        match self.address {
            Some(address) => Some(Port { port: address.port(), option }),
            None => option.map(|option| Port { port: METRICS_PORT, option: Some(option) }),
        }
    }

    #[cfg(not(all(feature = "server", unix)))]
    fn port(&self) -> Option<Port> {
        None
    }
}

/// Prints a description.
pub(crate) fn print(description: &Description) -> Result<()> {
    say(&serde_json::to_string_pretty(description).map_err(Error::terminal)?)
}

/// Tells whoever asked on the command line.
pub(crate) fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(Error::terminal)
}

fn named(group: &str, kind: &str, plural: &str, namespaced: bool) -> Resource {
    Resource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced,
    }
}

/// The metrics that every manager serves. Those of the user's own registry are not among them.
fn metrics() -> Vec<Metric> {
    let metric = |(name, kind, help): &(&str, &str, &str)| Metric {
        name: (*name).to_owned(),
        kind: (*kind).to_owned(),
        help: (*help).to_owned(),
    };
    METRICS.iter().map(metric).collect()
}
