//! Making objects.

use std::sync::Arc;

use serde_json::Value;
use watchkeeper_storage::{Commit, Entry, Error};

use super::{Guard, Incoming, Manner, Place, Written, encode};
use crate::failure::{Failure, Subject};
use crate::meta;
use crate::resource::Resource;
use crate::server::Server;

/// How often a name is made up before giving up.
const NAMES: usize = 8;

/// How much of `generateName` is used; the rest of a name is made up.
const LONGEST_PREFIX: usize = 58;

impl Server {
    /// Makes an object. The place's name is what the object says, or empty.
    pub(crate) async fn create(
        &self,
        place: &Place,
        incoming: Incoming,
        manner: &Manner,
    ) -> Result<Written, Failure> {
        let Incoming { mut object, warnings } = incoming;
        let resource = &place.resource;
        set_namespace(resource, &mut object, place.namespace.as_deref())?;
        // What is no version is forgotten; a version is refused, if everything else is right.
        let version = meta::version_number(meta::text(&object, "resourceVersion")).unwrap_or_default();
        self.check_escalation(place, &object, None, manner)?;
        let generated = meta::name(&object).is_empty() && !meta::text(&object, "generateName").is_empty();
        self.fill_system_fields(&mut object);
        for attempt in 1.. {
            if generated {
                let name = made_up(meta::text(&object, "generateName"));
                meta::set(&mut object, "name", name);
            }
            let name = meta::name(&object).to_owned();
            let place = Place { name: name.clone(), ..place.clone() };
            match self.create_once(place, object.clone(), version, manner).await {
                Err(failure) if generated && failure.reason == "AlreadyExists" => {
                    if attempt == NAMES {
                        return Err(Failure::no_unique_name(resource.subject(), &name));
                    }
                }
                Err(failure) => return Err(failure),
                Ok(written) => {
                    let mut warnings = warnings;
                    warnings.extend(super::remarks(resource, &written.object, None));
                    return Ok(Written { warnings, ..written });
                }
            }
        }
        unreachable!("the loop returns")
    }

    /// Makes an object whose name is known. Tries again if what it depends on changes meanwhile. The version is the one that the
    /// object came with, 0 for none.
    async fn create_once(
        &self,
        mut place: Place,
        object: Value,
        version: u64,
        manner: &Manner,
    ) -> Result<Written, Failure> {
        for _ in 0..super::ATTEMPTS {
            let resource = Arc::clone(&place.resource);
            let guards = self.guards(&place).await?;
            let mut object = object.clone();
            let turn = self.turn(&resource).await;
            // What admission adds is nobody's.
            self.manage_created(&resource, &mut object, manner);
            crate::admission::admit_new(&resource, &mut object);
            resource.prepare_create(&mut object);
            crate::certificates::name_requester(&resource, &mut object, manner.author.as_deref());
            let reservation = self.allocate(&resource, &mut object, None, manner.dry_run)?;
            let errors = resource.validate(&object);
            if !errors.is_empty() {
                return Err(Failure::invalid(resource.kind_subject(), &place.name, &errors));
            }
            crate::certificates::check_request(&place, &object)?;
            let key = place.key();
            if manner.dry_run {
                if let Some(entry) = self.storage.get(&key, None).await?.entry {
                    return Err(exists(&resource, &place.name, Some(&entry)));
                }
                if version > 0 {
                    meta::set(&mut object, "resourceVersion", version.to_string());
                }
                return Ok(Written { object, revision: None, created: true, warnings: Vec::new() });
            }
            if version > 0 {
                return Err(Failure::untyped("resourceVersion should not be set on objects to be created"));
            }
            if resource.is_definitions() {
                self.judge_names(&resource, &mut object);
            }
            let mut commit = Commit::new().absent(key.as_str());
            for guard in &guards {
                commit = commit.unchanged(guard.key.as_str(), guard.modified);
            }
            let commit = commit.put(key.as_str(), encode(&resource, &object)?);
            match self.commit(&resource, &key, commit, Some(&object), reservation).await {
                Err(Error::Conflict { key: other, revision, .. }) if other != key => {
                    // The definition may have changed, and with it the rules.
                    self.registrar.reach(revision).await;
                    let found = self.registry().find(&resource.group, &resource.version, &resource.plural);
                    place.resource = found.ok_or_else(|| place.not_found())?;
                }
                Err(Error::Conflict { current, .. }) => {
                    return Err(exists(&resource, &place.name, current.as_deref()));
                }
                Err(error) => return Err(error.into()),
                Ok(committed) => {
                    self.after_write(&resource, committed.revision).await;
                    drop(turn);
                    meta::set(&mut object, "resourceVersion", committed.revision.to_string());
                    let revision = Some(committed.revision);
                    return Ok(Written { object, revision, created: true, warnings: Vec::new() });
                }
            }
        }
        Err(Failure::unavailable("what the object depends on changes all the time; try again"))
    }

    /// What every new object has.
    fn fill_system_fields(&self, object: &mut Value) {
        for field in ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            meta::remove(object, field);
        }
        meta::set(object, "creationTimestamp", self.options.clock.stamp());
        meta::set(object, "uid", crate::random::uid());
    }

    /// What has to be there for a new object: its namespace, and the definition of its kind.
    async fn guards(&self, place: &Place) -> Result<Vec<Guard>, Failure> {
        let mut guards = Vec::new();
        if let Some(namespace) = &place.namespace {
            guards.push(self.open_namespace(&place.resource, &place.name, namespace).await?);
        }
        if let Some((installed, _)) = place.resource.custom_version() {
            if installed.definition.terminating {
                let why = "create not allowed while custom resource definition is terminating";
                return Err(Failure::forbidden(place.resource.subject(), &place.name, why));
            }
            guards.push(Guard { key: installed.key.clone(), modified: installed.revision });
        }
        Ok(guards)
    }

    /// A namespace that objects can be made in.
    async fn open_namespace(
        &self,
        resource: &Resource,
        name: &str,
        namespace: &str,
    ) -> Result<Guard, Failure> {
        const NAMESPACES: Subject<'_> = Subject { group: "", name: "namespaces" };
        let key = format!("{}{namespace}", crate::resource::prefix("", "namespaces"));
        let Some(entry) = self.storage.get(&key, None).await?.entry else {
            return Err(Failure::not_found(NAMESPACES, namespace));
        };
        let registry = self.registry();
        let Some(namespaces) = registry.find("", "v1", "namespaces") else {
            return Err(Failure::internal("namespaces are not served"));
        };
        let object = namespaces.read(&entry)?;
        if meta::is_deleting(&object) {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let cause = format!("namespace {namespace} is being terminated");
            return Err(Failure::forbidden(resource.subject(), name, &why).cause(
                "NamespaceTerminating",
                cause,
                "metadata.namespace",
            ));
        }
        Ok(Guard { key, modified: entry.modified })
    }

    /// Makes an object on behalf of the server itself.
    pub(crate) async fn create_internal(
        &self,
        group: &str,
        version: &str,
        plural: &str,
        namespace: Option<&str>,
        object: Value,
    ) -> Result<Written, Failure> {
        self.create_by("watchkeeper", group, version, plural, namespace, object).await
    }

    /// Makes an object on behalf of a part of the server, whose fields they are then.
    pub(crate) async fn create_by(
        &self,
        manager: &str,
        group: &str,
        version: &str,
        plural: &str,
        namespace: Option<&str>,
        object: Value,
    ) -> Result<Written, Failure> {
        let Some(resource) = self.registry().find(group, version, plural) else {
            return Err(Failure::internal(format!("{plural} are not served")));
        };
        let manner = Manner { manager: manager.into(), ..Manner::default() };
        let incoming = Incoming::of(&resource, object, Vec::new(), &manner)?;
        let place = Place { resource, namespace: namespace.map(str::to_owned), name: String::new() };
        self.create(&place, incoming, &manner).await
    }

    /// An object as it is stored when a part of the server makes it, for who commits it together with others.
    pub(crate) fn made(&self, resource: &Resource, object: Value, manager: &str) -> Result<Value, Failure> {
        let manner = Manner { manager: manager.into(), ..Manner::default() };
        let Incoming { mut object, .. } = Incoming::of(resource, object, Vec::new(), &manner)?;
        self.fill_system_fields(&mut object);
        self.manage_created(resource, &mut object, &manner);
        resource.prepare_create(&mut object);
        Ok(object)
    }
}

/// Gives an object the namespace it is written in, and refuses one that says it is in another.
pub(super) fn set_namespace(
    resource: &Resource,
    object: &mut Value,
    namespace: Option<&str>,
) -> Result<(), Failure> {
    let said = meta::text(object, "namespace");
    match namespace.filter(|_| resource.namespaced) {
        Some(namespace) if said.is_empty() => meta::set(object, "namespace", namespace),
        Some(namespace) if said == namespace => {}
        None if said.is_empty() => {}
        // `default` is what clients say when they have nothing to say.
        None if said == "default" => meta::remove(object, "namespace"),
        _ => {
            let message =
                "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Failure::bad_request(message));
        }
    }
    Ok(())
}

/// The answer to one who makes what is there already.
fn exists(resource: &Resource, name: &str, current: Option<&Entry>) -> Failure {
    let is_deleting =
        current.and_then(|entry| resource.read(entry).ok()).is_some_and(|object| meta::is_deleting(&object));
    if is_deleting {
        Failure::still_exists(resource.subject(), name)
    } else {
        Failure::already_exists(resource.subject(), name)
    }
}

/// A name that begins with this.
fn made_up(prefix: &str) -> String {
    let end = prefix.char_indices().nth(LONGEST_PREFIX).map_or(prefix.len(), |(at, _)| at);
    format!("{}{}", &prefix[..end], crate::random::suffix())
}
