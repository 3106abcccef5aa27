//! Which resources are served.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use watchkeeper_storage::Revision;

use crate::documents::Documents;
use crate::remote::Remote;
use crate::resource::{InstalledCrd, Resource};

/// All resources that are served at one moment, and the groups they are in.
pub(crate) struct Registry {
    /// The groups in the order of discovery: the built-in ones, then the custom ones by name.
    pub(crate) groups: Vec<Group>,
    /// By group, version and plural.
    resources: HashMap<(String, String, String), Arc<Resource>>,
    /// By what keys begin with, in the preferred version.
    prefixes: HashMap<String, Arc<Resource>>,
    /// The definitions of custom resources by name, served or not.
    pub(crate) definitions: BTreeMap<String, Arc<InstalledCrd>>,
    /// What other servers serve, and this one does not.
    pub(crate) remotes: Arc<Vec<Arc<Remote>>>,
    /// Rises with every change.
    pub(crate) generation: u64,
    /// What is told about all of it.
    pub(crate) documents: Documents,
}

/// An API group.
pub(crate) struct Group {
    pub(crate) name: String,
    /// The preferred version first.
    pub(crate) versions: Vec<GroupVersion>,
}

/// A version of an API group.
pub(crate) struct GroupVersion {
    pub(crate) version: String,
    pub(crate) resources: Vec<Arc<Resource>>,
}

impl Group {
    /// Whether some of its resources are built in.
    pub(crate) fn is_builtin(&self) -> bool {
        let mut resources = self.versions.iter().flat_map(|version| &version.resources);
        resources.any(|resource| resource.builtin_kind().is_some())
    }
}

impl Registry {
    fn new(
        builtin: &[Arc<Resource>],
        definitions: BTreeMap<String, Arc<InstalledCrd>>,
        remotes: Arc<Vec<Arc<Remote>>>,
        last: Option<&Self>,
    ) -> Self {
        let mut registry = Self {
            groups: Vec::new(),
            resources: HashMap::new(),
            prefixes: HashMap::new(),
            definitions,
            remotes,
            generation: last.map_or(0, |last| last.generation + 1),
            documents: Documents::default(),
        };
        for resource in builtin {
            registry.add(Arc::clone(resource));
        }
        let builtin_groups = registry.groups.len();
        for installed in
            registry.definitions.clone().values().filter(|installed| installed.definition.established)
        {
            let versions = &installed.definition.versions;
            for index in (0..versions.len()).filter(|index| versions[*index].served) {
                registry.add(match last.and_then(|last| last.unchanged(installed, index)) {
                    Some(resource) => resource,
                    None => Arc::new(Resource::custom(installed, index)),
                });
            }
        }
        registry.groups[builtin_groups..].sort_by(|a, b| a.name.cmp(&b.name));
        for group in &mut registry.groups[builtin_groups..] {
            group.versions.sort_by(|a, b| crate::crd::compare_versions(&a.version, &b.version));
            for version in &mut group.versions {
                version.resources.sort_by(|a, b| a.plural.cmp(&b.plural));
            }
        }
        for resource in
            registry.groups.iter().flat_map(|group| &group.versions).flat_map(|version| &version.resources)
        {
            if resource.is_stored() {
                registry.prefixes.entry(resource.prefix.clone()).or_insert_with(|| Arc::clone(resource));
            }
        }
        registry
    }

    /// All resources, in each version of their own.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups.iter().flat_map(|group| &group.versions).flat_map(|version| &version.resources)
    }

    /// A resource made of this very definition, whose watchers can go on sharing what is encoded.
    fn unchanged(&self, installed: &Arc<InstalledCrd>, index: usize) -> Option<Arc<Resource>> {
        let definition = &installed.definition;
        self.definitions.get(&definition.name).filter(|known| Arc::ptr_eq(known, installed))?;
        self.find(&definition.group, &definition.versions[index].name, &definition.names.plural)
    }

    fn add(&mut self, resource: Arc<Resource>) {
        let at = match self.groups.iter().position(|group| group.name == resource.group) {
            Some(at) => at,
            None => {
                self.groups.push(Group { name: resource.group.clone(), versions: Vec::new() });
                self.groups.len() - 1
            }
        };
        let versions = &mut self.groups[at].versions;
        let at = match versions.iter().position(|version| version.version == resource.version) {
            Some(at) => at,
            None => {
                versions.push(GroupVersion { version: resource.version.clone(), resources: Vec::new() });
                versions.len() - 1
            }
        };
        versions[at].resources.push(Arc::clone(&resource));
        let key = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
        self.resources.insert(key, resource);
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.resources.get(&(group.into(), version.into(), plural.into())).cloned()
    }

    /// The version of a group as another server serves it, if this one does not.
    pub(crate) fn remote(&self, group: &str, version: &str) -> Option<&Arc<Remote>> {
        let found = self.remotes.iter().find(|remote| remote.group == group && remote.version == version)?;
        let is_own = self
            .group(group)
            .is_some_and(|group| group.versions.iter().any(|served| served.version == version));
        (!is_own).then_some(found)
    }

    pub(crate) fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// The resource of a kind, in a version.
    pub(crate) fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>> {
        let version = self.group(group)?.versions.iter().find(|found| found.version == version)?;
        version.resources.iter().find(|resource| resource.kind == kind).cloned()
    }

    /// The versions of a resource that are served.
    pub(crate) fn versions_of(&self, prefix: &str) -> Vec<Arc<Resource>> {
        self.resources.values().filter(|resource| resource.prefix == prefix).cloned().collect()
    }

    /// The resource whose objects have keys like this, in its preferred version.
    pub(crate) fn of_key(&self, key: &str) -> Option<Arc<Resource>> {
        let end = key.match_indices('/').nth(3).map(|(at, _)| at + 1)?;
        self.prefixes.get(&key[..end]).cloned()
    }

    /// Every stored resource once, in its preferred version.
    pub(crate) fn stored(&self) -> Vec<Arc<Resource>> {
        self.prefixes.values().cloned().collect()
    }
}

/// The registry of this moment, and word of its changes.
pub(crate) struct Registrar {
    builtin: Vec<Arc<Resource>>,
    current: RwLock<Arc<Registry>>,
    /// Held while the next registry is made of the current one.
    changing: Mutex<()>,
    /// The revision up to which all definitions are known here.
    reached: watch::Sender<Revision>,
    /// Somebody waits for a revision that may have changed no definition.
    progress_wanted: Notify,
}

/// How long a definition that has changed takes to be known, at most, nearly always.
const USUAL: Duration = Duration::from_millis(20);

impl Registrar {
    /// The built-in resources only.
    pub(crate) fn new() -> Self {
        let builtin: Vec<_> =
            watchkeeper_kinds::all().iter().map(|kind| Arc::new(Resource::builtin(kind))).collect();
        let current = RwLock::new(Arc::new(Registry::new(&builtin, BTreeMap::new(), Arc::default(), None)));
        Self {
            builtin,
            current,
            changing: Mutex::default(),
            reached: watch::channel(0).0,
            progress_wanted: Notify::new(),
        }
    }

    pub(crate) fn current(&self) -> Arc<Registry> {
        Arc::clone(&self.current.read())
    }

    /// Replaces all definitions by those of a revision.
    pub(crate) fn replace(&self, definitions: BTreeMap<String, Arc<InstalledCrd>>, revision: Revision) {
        let _one_at_a_time = self.changing.lock();
        let current = self.current();
        // Whoever reads all of them again mostly finds what is known, and what was made of it is kept.
        let states = |definitions: &BTreeMap<String, Arc<InstalledCrd>>| {
            let state = |installed: &InstalledCrd| (installed.revision, installed.digest);
            definitions.iter().map(|(name, installed)| (name.clone(), state(installed))).collect::<Vec<_>>()
        };
        if states(&current.definitions) != states(&definitions) {
            let remotes = Arc::clone(&current.remotes);
            let next = Registry::new(&self.builtin, definitions, remotes, Some(&current));
            *self.current.write() = Arc::new(next);
        }
        self.reached.send_replace(revision);
    }

    /// Replaces what other servers serve.
    pub(crate) fn set_remotes(&self, remotes: Vec<Arc<Remote>>) {
        let _one_at_a_time = self.changing.lock();
        let current = self.current();
        if *current.remotes != remotes {
            let definitions = current.definitions.clone();
            let next = Registry::new(&self.builtin, definitions, Arc::new(remotes), Some(&current));
            *self.current.write() = Arc::new(next);
        }
    }

    /// Takes in or forgets one definition.
    pub(crate) fn set(&self, name: &str, installed: Option<InstalledCrd>, revision: Revision) {
        let mut definitions = self.current().definitions.clone();
        match installed {
            Some(installed) => definitions.insert(name.to_owned(), Arc::new(installed)),
            None => definitions.remove(name),
        };
        self.replace(definitions, revision);
    }

    /// Waits until every definition up to a revision is known here.
    pub(crate) async fn reach(&self, revision: Revision) {
        let mut reached = self.reached.subscribe();
        // The sender is not dropped while this is borrowed.
        while timeout(USUAL, reached.wait_for(|reached| *reached >= revision)).await.is_err() {
            self.progress_wanted.notify_one();
        }
    }

    /// Whether every definition up to a revision is known here.
    pub(crate) fn has_reached(&self, revision: Revision) -> bool {
        *self.reached.borrow() >= revision
    }

    /// Waits until somebody wants to know how far this is.
    pub(crate) async fn progress_wanted(&self) {
        self.progress_wanted.notified().await;
    }

    /// No definition has changed up to a revision.
    pub(crate) fn reached(&self, revision: Revision) {
        self.reached.send_if_modified(|reached| {
            let is_later = revision > *reached;
            *reached = revision.max(*reached);
            is_later
        });
    }

    /// Word of every change from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<Revision> {
        self.reached.subscribe()
    }
}
