//! The stored state that a write is based on.

use std::sync::Arc;

use watchkeeper_rbac::{About, Request};
use watchkeeper_storage::{Entry, Revision};

use super::operation::Operation;
use super::request::{Current, Guard, Moment, NamespaceState};
use super::{WriteRequest, Writer};
use crate::conversion::Conversions;
use crate::object::meta;
use crate::resource::{ObjectRef, ROOT};
use crate::status_error::StatusError;

impl Writer {
    /// The time and the registry of one attempt.
    pub(super) fn moment(&self) -> Moment {
        let now = self.clock.now();
        Moment {
            registry: self.registrar.current(),
            now,
            stamp: crate::object::time::stamp(now),
            conversions: Conversions::default(),
        }
    }

    /// The entry of the object, if the operation is based on it.
    pub(super) async fn stored(&self, request: &WriteRequest<'_>) -> Result<Option<Arc<Entry>>, StatusError> {
        // Whether a new object exists already is found out by the commit: everything else about it is told before.
        if matches!(request.operation, Operation::Create(_)) {
            return Ok(None);
        }
        Ok(self.storage.get(&request.target.key(), None).await?.entry)
    }

    /// Has the server's own writes be made in the version in which the object is stored: what the server does about owners,
    /// finalizers and namespaces depends on no webhook.
    pub(super) fn use_stored_version(&self, request: &mut WriteRequest<'_>, entry: Option<&Entry>) {
        let Some(entry) = entry.filter(|_| request.context.author.client().is_none()) else { return };
        if request.target.resource.needs_webhook(entry)
            && let Some(resource) = request.target.resource.as_stored(entry)
        {
            request.target.resource = resource;
        }
    }

    /// Reads the object, or what a new one depends on. Refuses an operation that needs an object if there is none.
    pub(super) async fn read_current(
        &self,
        request: &WriteRequest<'_>,
        entry: Option<Arc<Entry>>,
    ) -> Result<Current, StatusError> {
        let target = &request.target;
        if let Some(entry) = entry {
            let shown = self.converter.entry(&target.resource, Arc::clone(&entry)).await?;
            let object = Some(target.resource.read(&shown)?);
            let guards = definition_guard(request).into_iter().collect();
            let namespace = self.namespace_of_part(request).await?;
            return Ok(Current { object, entry: Some(entry), namespace, guards });
        }
        if request.operation.creates_part() {
            let namespace = self.namespace_of_part(request).await?;
            return Ok(Current { namespace, ..Current::default() });
        }
        request.operation.check_missing(request)?;
        self.check_may_create(request)?;
        let mut current = Current::default();
        if let Some(namespace) = &target.namespace {
            let (state, guard) = self.namespace_of_new(request, namespace).await?;
            current.namespace = state;
            current.guards.extend(guard);
        }
        if let Some((installed, _)) = target.resource.custom_version() {
            if installed.definition.terminating {
                let why = "create not allowed while custom resource definition is terminating";
                return Err(StatusError::forbidden(target.resource.subject(), &target.name, why));
            }
            current.guards.push(Guard { key: installed.key.clone(), modified: installed.revision });
        }
        Ok(current)
    }

    /// Refuses to create an object for a client that was authorized to change it.
    fn check_may_create(&self, request: &WriteRequest<'_>) -> Result<(), StatusError> {
        let WriteRequest { target, operation, context, .. } = request;
        let Some(author) = context.author.client().filter(|_| !matches!(operation, Operation::Create(_)))
        else {
            return Ok(());
        };
        let about = About::Resource {
            group: &target.resource.group,
            resource: &target.resource.plural,
            subresource: "",
            namespace: target.namespace.as_deref().unwrap_or_default(),
            name: &target.name,
        };
        self.access.require(author, &Request { verb: "create", about })
    }

    /// The state of the namespace in which a subresource is created. No commit depends on it: the object is there already.
    async fn namespace_of_part(&self, request: &WriteRequest<'_>) -> Result<NamespaceState, StatusError> {
        match &request.target.namespace {
            Some(namespace) if request.operation.creates_part() => self.namespace(namespace).await,
            _ => Ok(NamespaceState::Irrelevant),
        }
    }

    /// The state of a namespace.
    pub(super) async fn namespace(&self, name: &str) -> Result<NamespaceState, StatusError> {
        let key = namespace_key(name);
        let entry = self.storage.get(&key, None).await?.entry;
        Ok(self.namespace_in(key, entry)?.0)
    }

    /// The state of the namespace of a new object, and the condition that it stays as it is. The commit finds out whether it does, so that those who share
    /// the storage are not asked before. What is refused because of it is refused because of what is there now.
    async fn namespace_of_new(
        &self,
        request: &WriteRequest<'_>,
        name: &str,
    ) -> Result<(NamespaceState, Option<Guard>), StatusError> {
        let key = namespace_key(name);
        if !request.context.dry_run {
            let known = self.namespace_in(key.clone(), self.storage.known(&key).await?.entry)?;
            if matches!(known.0, NamespaceState::Active) {
                return Ok(known);
            }
        }
        let entry = self.storage.get(&key, None).await?.entry;
        self.namespace_in(key, entry)
    }

    fn namespace_in(
        &self,
        key: String,
        entry: Option<Arc<Entry>>,
    ) -> Result<(NamespaceState, Option<Guard>), StatusError> {
        let Some(entry) = entry else { return Ok((NamespaceState::Missing, None)) };
        let Some(namespaces) = self.registrar.current().find("", "v1", "namespaces") else {
            return Err(StatusError::internal("namespaces are not served"));
        };
        let state = match meta::is_deleting(&namespaces.read(&entry)?) {
            true => NamespaceState::Terminating,
            false => NamespaceState::Active,
        };
        Ok((state, Some(Guard { key, modified: entry.modified })))
    }

    /// Brings the resource of a new object up to date, after its CRD or its namespace has changed.
    pub(super) async fn refresh(
        &self,
        target: &mut ObjectRef,
        revision: Revision,
    ) -> Result<(), StatusError> {
        // What another server has written is here once this is answered.
        self.storage.get(ROOT, None).await?;
        self.definitions_in_force(revision).await?;
        let resource = &target.resource;
        let found = self.registrar.current().find(&resource.group, &resource.version, &resource.plural);
        target.resource = found.ok_or_else(|| target.not_found())?;
        Ok(())
    }
}

fn namespace_key(name: &str) -> String {
    format!("{}{name}", crate::resource::prefix("", "namespaces"))
}

/// The condition that the definition of an object that a client changes stays as it is, if it has several versions: none is to be
/// stored in a version that is not stored any more.
fn definition_guard(request: &WriteRequest<'_>) -> Option<Guard> {
    request.context.author.client()?;
    let (installed, _) = request.target.resource.custom_version()?;
    let has_versions = installed.definition.versions.len() > 1;
    has_versions.then(|| Guard { key: installed.key.clone(), modified: installed.revision })
}
