//! The write pipeline: the way by which objects change, but for three exceptions.
//!
//! ```text
//!   decode ─▶ WriteRequest { target, subresource, operation, context }
//!                │
//!   ┌────────────▼───────────────────────────────────────────────────────────┐
//!   │ read_current   the stored object; of a new one, its namespace and CRD    │◀─┐
//!   │ next           what the request wants: create, replace, patch, apply, …  │  │
//!   │ ownership      managedFields; what the server adds later is nobody's     │  │
//!   │ mutate         admission plug-ins, in order                              │  │ another
//!   │ strategy       laid into the stored object, prepared, given addresses,   │  │ writer was
//!   │                validated                                                 │  │ faster
//!   │ validate       admission plug-ins, in order; then disruption budgets      │  │
//!   │ commit         quotas; if nothing it depends on has changed meanwhile     │──┘
//!   └────────────┬───────────────────────────────────────────────────────────┘
//!                ▼
//!             Written: in force for reads, roles and CRDs
//! ```
//!
//! Creates, replacements, patches, applies, scales, bindings, evictions, deletions and the server's own writes all take it.
//! The exceptions, of which no plug-in hears: `bootstrap/` commits the objects that every cluster has, before requests are served;
//! `lifecycle/expiry.rs` deletes events whose time is over; over etcd, leases delete them, and `expiry.rs` only what has none.
//! `operation/` is pure; nothing is locked across an await but the names of CRDs and the quotas of a
//! namespace, around a commit.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

pub(crate) mod admission;
mod allocate;
mod certificates;
mod commit;
mod current;
mod decode;
mod disruption;
mod document_order;
mod internal;
mod operation;
mod owner_references;
mod ownership;
mod quota;
mod request;
pub(crate) mod service;
mod strategy;
mod warnings;
mod writer;

use std::pin::pin;
use std::sync::Arc;

use watchkeeper_storage::Entry;

pub(crate) use allocate::is_claim;
pub(crate) use allocate::{Allocator, Holdings, Refusal, Reservation};
pub(crate) use decode::{Incoming, decode, decode_as};
pub(crate) use operation::{
    Applying, Eviction, FOREGROUND, ORPHAN, Operation, Patch, ScaleChange, check_name,
};
pub(crate) use request::{Author, Draft, NamespaceState, WriteContext, WriteRequest, Written};
pub(crate) use watchkeeper_kinds::Subresource;
pub(crate) use writer::{Handles, Writer};

use crate::budget::{self, Claim};
use crate::status_error::StatusError;
use owner_references::Stage;
use request::{Current, Moment, Outcome};

/// How often a write is tried when others are faster. Each time, another writer made progress.
const ATTEMPTS: usize = 100;

impl Writer {
    /// Makes a write. It is tried again when what it was based on has changed before the commit.
    pub(crate) async fn write(&self, mut request: WriteRequest<'_>) -> Result<Written, StatusError> {
        request.operation.check(&request.target)?;
        for attempt in 1..=ATTEMPTS {
            if let Some(name) = request.operation.name() {
                request.target.name = name;
            }
            let (entry, claim) = self.stored_within_budget(&request).await?;
            self.use_stored_version(&mut request, entry.as_deref());
            let outcome = {
                let attempt = pin!(self.attempt(&request, entry, attempt));
                budget::run_here(claim, attempt).await?
            };
            match outcome {
                Outcome::Written(written) => return Ok(written),
                Outcome::Superseded(None) => {}
                Outcome::Superseded(Some(revision)) => self.refresh(&mut request.target, revision).await?,
            }
        }
        Err(request.operation.exhausted(&request.target))
    }

    /// The stored object as it is when there is room for it: one that has changed while it was waited for would only be worked on for
    /// nothing.
    async fn stored_within_budget(
        &self,
        request: &WriteRequest<'_>,
    ) -> Result<(Option<Arc<Entry>>, Option<Claim>), StatusError> {
        let author = request.context.author.client().map(|identity| identity.user.as_str());
        let mut entry = self.stored(request).await?;
        for _ in 0..ATTEMPTS {
            let Some(found) = &entry else { break };
            let Some(claim) = self.budget.stored(author, found).await? else { break };
            let now = self.stored(request).await?;
            if now.as_ref().is_some_and(|now| now.value.len() <= found.value.len().saturating_mul(2)) {
                return Ok((now, Some(claim)));
            }
            // It is gone, or has become another one.
            entry = now;
        }
        Ok((entry, None))
    }

    /// Makes a write based on what is stored now.
    async fn attempt(
        &self,
        request: &WriteRequest<'_>,
        entry: Option<Arc<Entry>>,
        attempt: usize,
    ) -> Result<Outcome, StatusError> {
        let moment = self.moment();
        let current = self.read_current(request, entry).await?;
        let mut draft = self.draft(request, &current, &moment).await?;
        self.admission.mutate(request, &current, &mut draft).await?;
        owner_references::deduplicate(&mut draft.object, Stage::Mutated, &mut draft.warnings);
        if request.operation.creates_part() && current.object.is_none() {
            return Err(request.target.not_found().with_more_warnings(&draft.warnings));
        }
        let is_hooked = draft.is_hooked;
        let said = draft.warnings.clone();
        let planned = self.strategy(request, &current, &moment, draft);
        let mut planned = planned.map_err(|refusal| refusal.with_more_warnings(&said))?;
        self.admission.validate(request, &current, &mut planned).await?;
        if is_hooked {
            request.target.resource.prune(&mut planned.object);
        }
        self.charge_disruption(request, &current, &planned, &moment).await?;
        if let (Operation::Evict(eviction), Some(pod)) = (&request.operation, &current.object) {
            eviction.check_preconditions(request, &current, pod, &planned.asked)?;
        }
        self.commit(request, current, planned, attempt).await
    }
}

impl Writer {
    /// What the request wants, with its author recorded as the owner of what it changes.
    async fn draft(
        &self,
        request: &WriteRequest<'_>,
        current: &Current,
        moment: &Moment,
    ) -> Result<Draft, StatusError> {
        let step = || {
            let mut draft = request.operation.next(request, current, moment)?;
            if matches!(request.operation, Operation::Create(_) | Operation::Replace(_)) {
                owner_references::deduplicate(&mut draft.object, Stage::Sent, &mut draft.warnings);
            }
            ownership::record(request, current, moment, &mut draft);
            Ok(draft)
        };
        // Fields that are owned in other versions are looked at in those.
        self.converter.supply(&request.target.resource, &moment.conversions, step).await
    }
}

/// The resourceVersion of an entry.
fn version(entry: &Entry) -> String {
    entry.modified.to_string()
}

/// The name of a subresource, as owners and admission see it; empty for the object itself.
fn subresource_name(subresource: Subresource) -> &'static str {
    match subresource {
        Subresource::Status => "status",
        Subresource::Finalize => "finalize",
        Subresource::EphemeralContainers => "ephemeralcontainers",
        Subresource::Approval => "approval",
        Subresource::Resize => "resize",
        _ => "",
    }
}
