//! Who may do what: every request is authorized here before anything else happens.
//!
//! The roles and bindings of the storage are followed into a [`Policy`](watchkeeper_rbac::Policy), so that a decision reads
//! memory only. Whoever writes a role or a binding hears of it when it is in force.

pub(crate) mod denial;
mod escalation;
mod impersonation;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use parking_lot::{RwLock, RwLockReadGuard};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use watchkeeper_rbac::{About, Decision, Policy, Request, RulesOf, User};
use watchkeeper_storage::Revision;

use crate::authentication::{ANONYMOUS, Identity, MASTERS};
use crate::request::action::{Action, PageAction, ResourceAction};
use crate::request::is_public;
use crate::status_error::StatusError;

pub(crate) use impersonation::account_groups;

/// The group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// Whether requests are checked against roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Authorization {
    /// Requests need a role that allows them, as in a cluster; the roles that every cluster has are made at the start. The
    /// group `system:masters` may do everything.
    #[default]
    Rbac,
    /// Everybody with credentials may do everything; roles are kept and not looked at.
    None,
    /// Everybody may do everything, and the roles that every cluster has are there: kube-apiserver with `AlwaysAllow`, which serves
    /// nobody without credentials.
    AlwaysAllow,
}

/// What is known about roles and bindings.
pub(crate) struct Access {
    authorization: Authorization,
    policy: RwLock<Policy>,
    /// The revision up to which all roles and bindings are known here.
    reached: watch::Sender<Revision>,
    /// The revision of the last change.
    changed: watch::Sender<Revision>,
    /// Somebody waits for a revision that may have changed no role.
    progress_wanted: Notify,
}

/// How long a role that has changed takes to be known, at most, nearly always.
const USUAL: Duration = Duration::from_millis(20);

impl Access {
    pub(crate) fn new(authorization: Authorization) -> Self {
        Self {
            authorization,
            policy: RwLock::default(),
            reached: watch::channel(0).0,
            changed: watch::channel(0).0,
            progress_wanted: Notify::new(),
        }
    }

    pub(crate) fn authorization(&self) -> Authorization {
        self.authorization
    }

    /// Takes in the roles and bindings of a revision.
    pub(crate) fn replace(&self, policy: Policy, revision: Revision) {
        *self.policy.write() = policy;
        self.reached.send_replace(revision);
        self.changed.send_replace(revision);
    }

    /// Takes in a change that was made at a revision.
    pub(crate) fn update(&self, revision: Revision, change: impl FnOnce(&mut Policy)) {
        change(&mut self.policy.write());
        self.reached.send_replace(revision);
        self.changed.send_replace(revision);
    }

    /// Reads the roles and bindings.
    pub(crate) fn policy(&self) -> RwLockReadGuard<'_, Policy> {
        self.policy.read()
    }

    /// Waits until every role and binding up to a revision is known here.
    pub(crate) async fn reach(&self, revision: Revision) {
        let mut reached = self.reached.subscribe();
        while *reached.borrow() < revision {
            self.progress_wanted.notify_one();
            // The sender is not dropped while this is borrowed.
            let _ = timeout(USUAL, reached.wait_for(|reached| *reached >= revision)).await;
        }
    }

    /// Waits until somebody wants to know how far this is.
    pub(crate) async fn progress_wanted(&self) {
        self.progress_wanted.notified().await;
    }

    /// No role and no binding has changed up to a revision.
    pub(crate) fn reached(&self, revision: Revision) {
        self.reached.send_if_modified(|reached| {
            let is_later = revision > *reached;
            *reached = revision.max(*reached);
            is_later
        });
    }

    /// Word of every change from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<Revision> {
        self.changed.subscribe()
    }

    /// All rules that apply to somebody in a namespace.
    pub(crate) fn rules_of(&self, user: &User<'_>, namespace: &str) -> RulesOf {
        self.policy.read().rules_of(user, namespace)
    }

    /// Refuses what somebody may not do.
    pub(crate) fn require(&self, identity: &Identity, request: &Request<'_>) -> Result<(), StatusError> {
        let verdict = self.judge(identity, request);
        if verdict.is_allowed() {
            return Ok(());
        }
        Err(denial::denied(identity, request, &verdict.reason()))
    }

    /// Whether somebody may do something.
    pub(crate) fn judge(&self, identity: &Identity, request: &Request<'_>) -> Verdict {
        match self.authorization {
            _ if is_master(identity) => Verdict::Granted,
            Authorization::AlwaysAllow => Verdict::Granted,
            Authorization::None if identity.user != ANONYMOUS => Verdict::Granted,
            Authorization::None => Verdict::Judged(Decision::Denied(Vec::new())),
            Authorization::Rbac => Verdict::Judged(self.policy.read().decide(&user(identity), request)),
        }
    }
}

/// Whether something is allowed, and what is said about it.
pub(crate) enum Verdict {
    /// Nothing more needs to be said.
    Granted,
    Judged(Decision),
}

impl Verdict {
    pub(crate) fn is_allowed(&self) -> bool {
        match self {
            Self::Granted => true,
            Self::Judged(decision) => decision.is_allowed(),
        }
    }

    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Granted => String::new(),
            Self::Judged(decision) => decision.reason(),
        }
    }
}

impl Access {
    /// Finds out on whose behalf a request is made, and refuses it unless it is allowed.
    pub(crate) fn authorize(
        &self,
        headers: &HeaderMap,
        sender: Arc<Identity>,
        action: Action,
    ) -> Result<(Arc<Identity>, Authorized<Action>), StatusError> {
        let identity = match self.impersonated(headers, &sender, &action)? {
            Some(impersonated) => Arc::new(impersonated),
            None => sender,
        };
        let is_public = match &action {
            // Without roles, nothing else says that these are for everybody.
            Action::Page(page) => self.authorization == Authorization::None && is_public(&page.path),
            Action::Resource(_) => false,
        };
        if !is_public && !is_master(&identity) {
            self.require(&identity, &request(&action))?;
        }
        Ok((identity, Authorized(action)))
    }
}

pub(crate) fn is_master(identity: &Identity) -> bool {
    identity.groups.iter().any(|group| group == MASTERS)
}

pub(crate) fn user(identity: &Identity) -> User<'_> {
    User { name: &identity.user, groups: &identity.groups }
}

/// What somebody may do: they were asked for it, and it was allowed. Nothing else is ever done for a request.
pub(crate) struct Authorized<T = ResourceAction>(T);

impl<T> Authorized<T> {
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

impl std::ops::Deref for Authorized<Action> {
    type Target = Action;

    fn deref(&self) -> &Action {
        &self.0
    }
}

impl Authorized<Action> {
    /// Tells what is done with objects from everything else.
    pub(crate) fn split(self) -> Split {
        match self.0 {
            Action::Resource(action) => Split::Resource(Authorized(action)),
            Action::Page(page) => Split::Page(Authorized(page)),
        }
    }
}

/// What somebody may do, by what it is about.
pub(crate) enum Split {
    Resource(Authorized),
    Page(Authorized<PageAction>),
}

impl Authorized {
    pub(crate) fn action(&self) -> &ResourceAction {
        &self.0
    }
}

/// What a request asks to do, in the words of rules.
pub(crate) fn request(action: &Action) -> Request<'_> {
    match action {
        Action::Page(page) => Request { verb: page.verb, about: About::Path(&page.path) },
        Action::Resource(action) => Request {
            verb: action.verb.text(),
            about: About::Resource {
                group: &action.group,
                resource: &action.resource,
                subresource: action.subresource.as_deref().unwrap_or_default(),
                namespace: action.scope.judged_in(),
                name: action.name.as_deref().or(action.selected.as_deref()).unwrap_or_default(),
            },
        },
    }
}
