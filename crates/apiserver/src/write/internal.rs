//! The server's own writes. They take the same way as those of clients, with [`Author::Server`](super::Author).

use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::admission::{Attributes, Verb};
use super::operation::{Operation, create};
use super::{
    Draft, Incoming, NamespaceState, Subresource, WriteContext, WriteRequest, Writer, Written, ownership,
};
use crate::object::meta;
use crate::request::delete_options::DeleteOptions;
use crate::resource::{ObjectRef, Resource};
use crate::status_error::StatusError;

/// The manager of the fields that the server writes, unless one of its parts has a name of its own.
const MANAGER: &str = "watchkeeper";

/// How many objects of a collection are deleted at a time.
const TOGETHER: usize = 64;

impl Writer {
    /// Creates an object of a built-in resource.
    pub(crate) async fn create(
        &self,
        group: &str,
        version: &str,
        plural: &str,
        namespace: Option<&str>,
        object: Value,
    ) -> Result<Written, StatusError> {
        self.create_as(MANAGER, group, version, plural, namespace, object).await
    }

    /// Creates an object under the name of a part of the server.
    pub(crate) async fn create_as(
        &self,
        manager: &str,
        group: &str,
        version: &str,
        plural: &str,
        namespace: Option<&str>,
        object: Value,
    ) -> Result<Written, StatusError> {
        let Some(resource) = self.registrar.current().find(group, version, plural) else {
            return Err(StatusError::internal(format!("{plural} are not served")));
        };
        let context = &WriteContext::of_server(manager);
        let incoming = Incoming::of(&resource, object, Vec::new(), context.field_validation)?;
        let target = ObjectRef { resource, namespace: namespace.map(str::to_owned), name: String::new() };
        self.write(WriteRequest::new(target, Operation::Create(incoming), context)).await
    }

    /// Changes an object, or a subresource of it. An object that does not exist is no failure.
    pub(crate) async fn modify(
        &self,
        target: &ObjectRef,
        subresource: Subresource,
        change: impl Fn(&mut Value) + Send + Sync,
    ) -> Result<(), StatusError> {
        self.modify_as(MANAGER, target, subresource, change).await
    }

    /// Changes an object under the name of a part of the server. An object that does not exist is no failure.
    pub(crate) async fn modify_as(
        &self,
        manager: &str,
        target: &ObjectRef,
        subresource: Subresource,
        change: impl Fn(&mut Value) + Send + Sync,
    ) -> Result<(), StatusError> {
        let context = &WriteContext::of_server(manager);
        let (target, operation) = (target.clone(), Operation::Change(&change));
        found(self.write(WriteRequest { target, subresource, operation, context }).await).map(drop)
    }

    /// Deletes an object. One that does not exist is no failure.
    pub(crate) async fn delete(
        &self,
        target: &ObjectRef,
        options: &DeleteOptions,
    ) -> Result<(), StatusError> {
        self.delete_as(target, options, &WriteContext::of_server(MANAGER)).await.map(drop)
    }

    /// Deletes objects on behalf of a client, many at a time: their commits share syncs. Those that do not exist are skipped. Returns
    /// the warnings for the client.
    pub(crate) async fn delete_all(
        &self,
        targets: Vec<ObjectRef>,
        options: &DeleteOptions,
        context: &WriteContext,
    ) -> Result<Vec<String>, StatusError> {
        let context = &WriteContext { of_collection: true, ..context.clone() };
        let deletions =
            targets.into_iter().map(|target| async move { self.delete_as(&target, options, context).await });
        stream::iter(deletions).buffered(TOGETHER).try_concat().await
    }

    async fn delete_as(
        &self,
        target: &ObjectRef,
        options: &DeleteOptions,
        context: &WriteContext,
    ) -> Result<Vec<String>, StatusError> {
        found(self.write(WriteRequest::new(target.clone(), Operation::Delete(options), context)).await)
    }

    /// Removes a finalizer from an object. An object that does not exist is no failure.
    pub(crate) async fn remove_finalizer(
        &self,
        target: &ObjectRef,
        finalizer: &str,
    ) -> Result<(), StatusError> {
        let change = |object: &mut Value| {
            let left = meta::finalizers(object).into_iter().filter(|name| *name != finalizer);
            let left = left.map(str::to_owned).collect();
            meta::set_finalizers(object, left);
        };
        self.modify(target, Subresource::Main, change).await
    }

    /// A new object as it is stored, for a commit that creates several at once. Admission is not asked.
    pub(crate) fn new_stored(
        &self,
        resource: &Resource,
        object: Value,
        manager: &str,
    ) -> Result<Value, StatusError> {
        let (moment, context) = (self.moment(), WriteContext::of_server(manager));
        let Incoming { mut object, .. } =
            Incoming::of(resource, object, Vec::new(), context.field_validation)?;
        create::set_system_fields(&mut object, &moment);
        ownership::record_created(resource, &mut object, manager, &moment);
        resource.prepare_create(&mut object);
        Ok(object)
    }

    /// Has admission complete and judge a request that stores nothing: CONNECT, a token, a review.
    pub(crate) async fn admit(
        &self,
        verb: Verb,
        target: &ObjectRef,
        subresource: &str,
        context: &WriteContext,
        object: Value,
    ) -> Result<Draft, StatusError> {
        let namespace = match &target.namespace {
            // What is not stored are questions, whose answers tell nothing about the namespace.
            Some(namespace) if verb == Verb::Create && target.resource.is_stored() => {
                self.namespace(namespace).await?
            }
            _ => NamespaceState::Irrelevant,
        };
        let old = None;
        let attributes =
            Attributes { verb, target, subresource, old, namespace, context, name_is_generated: false };
        self.admission.admit(&attributes, object).await
    }

    /// Records the owner of an object that is answered and not stored.
    pub(crate) fn record_owner(&self, resource: &Resource, object: &mut Value, context: &WriteContext) {
        ownership::record_created(resource, object, &context.manager, &self.moment());
    }
}

/// The warnings of a write. Takes an object that does not exist for one that needs nothing.
fn found(written: Result<Written, StatusError>) -> Result<Vec<String>, StatusError> {
    match written {
        Err(failure) if failure.reason == "NotFound" => Ok(Vec::new()),
        written => written.map(|written| written.warnings),
    }
}
