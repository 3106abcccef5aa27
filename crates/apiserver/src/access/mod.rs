//! Who may do what: every request is authorized here before anything else happens.
//!
//! The roles and bindings of the storage are followed into a [`Policy`](watchkeeper_rbac::Policy), so that a decision reads
//! memory only. Whoever writes a role or a binding hears of it when it is in force.

mod aggregation;
mod bootstrap;
mod escalation;
mod follower;
mod impersonation;

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;
use watchkeeper_rbac::{About, Decision, Policy, Request, RulesOf, User};
use watchkeeper_storage::Revision;

use crate::dispatch::Call;
use crate::failure::Failure;
use crate::front::{ANONYMOUS, Identity, MASTERS};
use crate::request::field_selector::FieldSelector;
use crate::request::list_options::ListOptions;
use crate::request::path::{ResourceTarget, Target};
use crate::request::query::Query;
use crate::server::{Error, Server};
use crate::{denial, health};

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
}

/// What is known about roles and bindings.
pub(crate) struct Access {
    policy: RwLock<Policy>,
    /// The revision up to which all roles and bindings are known here.
    reached: watch::Sender<Revision>,
}

impl Access {
    pub(crate) fn new() -> Self {
        Self { policy: RwLock::default(), reached: watch::channel(0).0 }
    }

    /// All rules that apply to somebody in a namespace.
    pub(crate) fn rules_of(&self, user: &User<'_>, namespace: &str) -> RulesOf {
        self.policy.read().rules_of(user, namespace)
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

/// Reads what is there, makes what is missing, and starts to follow what changes.
pub(crate) async fn start(server: &Arc<Server>) -> Result<(), Error> {
    if server.options.authorization == Authorization::None {
        return Ok(());
    }
    bootstrap::reconcile(server).await?;
    let revision = follower::load(server).await?;
    let mut loaded = Some(revision);
    server.spawn(follower::TASK, move |server| follower::follow(server, loaded.take()));
    if server.options.role_aggregation {
        server.spawn(aggregation::TASK, aggregation::run);
    }
    Ok(())
}

impl Server {
    /// Finds out on whose behalf a request is made, and refuses it unless it is allowed.
    pub(crate) fn authorize(&self, call: &mut Call, target: &Target) -> Result<(), Failure> {
        self.impersonate(call, target)?;
        if is_master(&call.identity) {
            return Ok(());
        }
        let selector = Selected::of(target, &call.query);
        let request = request(call, target, &selector);
        match target {
            // Without roles, nothing else says that these are for everybody.
            Target::Other(path)
                if self.options.authorization == Authorization::None && health::is_public(path) =>
            {
                Ok(())
            }
            _ => self.require(&call.identity, &request),
        }
    }

    /// Refuses what somebody may not do.
    pub(crate) fn require(&self, identity: &Identity, request: &Request<'_>) -> Result<(), Failure> {
        let verdict = self.judge(identity, request);
        if verdict.is_allowed() {
            return Ok(());
        }
        Err(denial::denied(identity, request, &verdict.reason()))
    }

    /// Whether somebody may do something.
    pub(crate) fn judge(&self, identity: &Identity, request: &Request<'_>) -> Verdict {
        match self.options.authorization {
            _ if is_master(identity) => Verdict::Granted,
            Authorization::None if identity.user != ANONYMOUS => Verdict::Granted,
            Authorization::None => Verdict::Judged(Decision::Denied(Vec::new())),
            Authorization::Rbac => {
                Verdict::Judged(self.access.policy.read().decide(&user(identity), request))
            }
        }
    }
}

pub(crate) fn is_master(identity: &Identity) -> bool {
    identity.groups.iter().any(|group| group == MASTERS)
}

pub(crate) fn user(identity: &Identity) -> User<'_> {
    User { name: &identity.user, groups: &identity.groups }
}

/// The name that a list or a watch is limited to by its field selector.
pub(crate) struct Selected(Option<String>);

impl Selected {
    pub(crate) fn of(target: &Target, query: &Query) -> Self {
        let Target::Resource(ResourceTarget { name: None, .. }) = target else { return Self(None) };
        if !query.get("fieldSelector").is_some_and(|fields| fields.contains("metadata.name")) {
            return Self(None);
        }
        let fields: Option<FieldSelector> =
            ListOptions::from_query(query).ok().map(|options| options.field_selector);
        let name = fields.and_then(|fields| fields.required("metadata.name").map(str::to_owned));
        let is_name = |name: &String| !matches!(name.as_str(), "" | "." | "..") && !name.contains(['/', '%']);
        Self(name.filter(is_name))
    }
}

/// What a request asks to do, in the words of rules.
pub(crate) fn request<'a>(call: &'a Call, target: &'a Target, selected: &'a Selected) -> Request<'a> {
    let Target::Resource(target) = target else {
        return Request { verb: method(&call.method), about: About::Path(&call.decoded_path) };
    };
    let verb = target.verb(&call.method, call.query.flag("watch").unwrap_or_default());
    // Only what is read as a list can be limited by a selector.
    let selected = selected.0.as_deref().filter(|_| matches!(verb, "list" | "watch"));
    Request {
        verb,
        about: About::Resource {
            group: &target.group,
            resource: &target.resource,
            subresource: target.subresource.as_deref().unwrap_or_default(),
            namespace: target.namespace.as_deref().unwrap_or_default(),
            name: target.name.as_deref().or(selected).unwrap_or_default(),
        },
    }
}

/// A method as rules about paths name it.
fn method(method: &http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "get",
        "HEAD" => "head",
        "POST" => "post",
        "PUT" => "put",
        "PATCH" => "patch",
        "DELETE" => "delete",
        "OPTIONS" => "options",
        "TRACE" => "trace",
        "CONNECT" => "connect",
        _ => "",
    }
}
