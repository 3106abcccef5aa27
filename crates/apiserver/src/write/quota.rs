//! Quotas as part of a commit: what they count is written together with the object.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::MutexGuard;
use watchkeeper_storage::{Commit, Entry, Revision};

use super::admission::resource_quota::{Change, Charge, Evaluator};
use super::admission::{Attributes, Verb};
use super::operation::Operation;
use super::request::{Current, Intent};
use super::{Subresource, WriteContext, WriteRequest, Writer};
use crate::object::meta;
use crate::resource::{ObjectRef, prefix};
use crate::status_error::StatusError;

/// The manager of what quotas count.
const MANAGER: &str = "kube-apiserver";

/// What a commit does to quotas. The turn of the namespace is held meanwhile.
pub(super) struct Charged<'a> {
    _turn: MutexGuard<'a, ()>,
    quotas: Vec<NextQuota>,
}

/// A quota as it will be.
struct NextQuota {
    key: String,
    created: Revision,
    modified: Revision,
    value: Bytes,
    object: Value,
}

impl Charged<'_> {
    /// Adds the quotas to a commit, which depends on them.
    pub(super) fn add_to(&self, commit: Commit) -> Commit {
        self.quotas.iter().fold(commit, |commit, quota| {
            commit.unchanged(quota.key.as_str(), quota.modified).put(quota.key.as_str(), quota.value.clone())
        })
    }
}

impl Writer {
    /// Works out what a write does to the quotas of its namespace; `None` if nothing. Refuses it if there is not enough left.
    pub(super) async fn charge(
        &self,
        request: &WriteRequest<'_>,
        current: &Current,
        intent: Intent,
        object: &Value,
    ) -> Result<Option<Charged<'_>>, StatusError> {
        let target = &request.target;
        let (Some(quota), Some(namespace)) = (&self.admission.quota, &target.namespace) else {
            return Ok(None);
        };
        if intent == Intent::Keep || !quota.are_in(namespace) {
            return Ok(None);
        }
        let Some(evaluator) = Evaluator::of(&target.resource) else { return Ok(None) };
        let attributes = Attributes::of(request, current);
        let verb = match attributes.subresource {
            // An eviction is a deletion.
            "eviction" => Verb::Delete,
            _ => attributes.verb,
        };
        let change = Change {
            evaluator,
            verb,
            subresource: attributes.subresource,
            old: current.object.as_ref(),
            new: Some(object).filter(|_| intent == Intent::Put),
        };
        let charges = || quota.charges(namespace, &change).map_err(|why| attributes.forbidden(&why));
        if charges()?.is_empty() || request.context.dry_run {
            return Ok(None);
        }
        let turn = quota.turn(namespace).await;
        let mut quotas = Vec::new();
        for charge in charges()? {
            quotas.push(self.next_quota(namespace, charge).await?);
        }
        Ok(Some(Charged { _turn: turn, quotas }))
    }

    /// A quota as it is stored with what is used of it.
    async fn next_quota(&self, namespace: &str, charge: Charge) -> Result<NextQuota, StatusError> {
        let Charge { quota, used } = charge;
        let Some(resource) = self.registrar.current().find("", "v1", "resourcequotas") else {
            return Err(StatusError::internal("resourcequotas are not served"));
        };
        let name = meta::name(&quota.object).to_owned();
        let target = ObjectRef { resource, namespace: Some(namespace.to_owned()), name };
        let key = target.key();
        let change = |object: &mut Value| object["status"]["used"] = used.clone();
        let (context, moment) = (WriteContext::of_server(MANAGER), self.moment());
        let request = WriteRequest {
            target,
            subresource: Subresource::Status,
            operation: Operation::Change(&change),
            context: &context,
        };
        let (created, modified) = (quota.created, quota.modified);
        let entry = Entry { key: key.as_str().into(), value: Bytes::new(), created, modified };
        let current = Current {
            object: Some((*quota.object).clone()),
            entry: Some(Arc::new(entry)),
            ..Current::default()
        };
        let draft = self.draft(&request, &current, &moment).await?;
        let planned = self.strategy(&request, &current, &moment, draft)?;
        let encoded = self.encode(&request, planned.object).await?;
        Ok(NextQuota { key, created, modified, value: encoded.value, object: encoded.object })
    }

    /// Has those who come next see the quotas of a commit.
    pub(super) fn charged(&self, charged: Option<Charged<'_>>, revision: Revision) {
        let (Some(charged), Some(quota)) = (charged, &self.admission.quota) else { return };
        for NextQuota { key, created, value, mut object, .. } in charged.quotas {
            meta::set(&mut object, "resourceVersion", revision.to_string());
            let entry = Entry { key: key.into(), value, created, modified: revision };
            quota.listers.resource_quotas.set(&entry, object);
        }
    }

    /// Takes in a quota that has changed before a commit. Whether the commit failed because of it.
    pub(super) fn quota_changed(&self, key: &str, entry: Option<&Entry>, revision: Revision) -> bool {
        let Some(quota) =
            self.admission.quota.as_ref().filter(|_| key.starts_with(&prefix("", "resourcequotas")))
        else {
            return false;
        };
        let resource = self.registrar.current().find("", "v1", "resourcequotas");
        match entry {
            Some(entry) => {
                if let Some(object) = resource.and_then(|resource| resource.read(entry).ok()) {
                    quota.listers.resource_quotas.set(entry, object);
                }
            }
            None => quota.listers.resource_quotas.remove(key, revision),
        }
        true
    }

    /// Waits until a quota that a client has written is enforced.
    pub(super) async fn quota_in_force(&self, request: &WriteRequest<'_>) {
        let target = &request.target;
        let is_by_client =
            request.context.author.client().is_some() && request.subresource == Subresource::Main;
        if let (Some(quota), Some(namespace), true) = (&self.admission.quota, &target.namespace, is_by_client)
        {
            quota.settled(namespace, &target.name).await;
        }
    }
}
