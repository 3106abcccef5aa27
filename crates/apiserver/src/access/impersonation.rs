//! Requests that are made on behalf of somebody else.
//!
//! There are five ways to be allowed to: four that limit who may be impersonated for what (`impersonate:MODE` on the user,
//! and `impersonate-on:MODE:VERB` on what is asked for), and the old one, which allows everything or nothing. They are
//! tried in order; who may not in any way is told what the first of them lacked.

use std::collections::BTreeMap;

use http::HeaderMap;
use watchkeeper_rbac::{About, Request, account_name};

use super::{Access, request};
use crate::authentication::{ANONYMOUS, AUTHENTICATED, Identity, MASTERS, UNAUTHENTICATED};
use crate::request::action::Action;
use crate::status_error::StatusError;

const AUTHENTICATION: &str = "authentication.k8s.io";
const NODE: &str = "system:node:";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// What the names of headers begin with that say more about a user.
const EXTRA: &str = "impersonate-extra-";

/// A way to be allowed to impersonate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The node that a service account runs on.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    /// Anybody who is neither a node nor a service account.
    UserInfo,
    /// Anybody, for anything.
    Legacy,
}

impl Mode {
    const ALL: [Self; 5] =
        [Self::AssociatedNode, Self::ArbitraryNode, Self::ServiceAccount, Self::UserInfo, Self::Legacy];

    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    /// Whether somebody can be impersonated in this way at all.
    fn suits(self, wanted: &Identity, requestor: &Identity) -> bool {
        let name_only = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_name(&wanted.user);
        match self {
            Self::AssociatedNode => {
                let nodes = requestor.extra.get(NODE_NAME).map(Vec::as_slice).unwrap_or_default();
                name_only
                    && account_name(&requestor.user).is_some()
                    && node.is_some_and(|node| matches!(nodes, [known] if known == node))
            }
            Self::ArbitraryNode => name_only && node.is_some(),
            Self::ServiceAccount => name_only && account_name(&wanted.user).is_some(),
            Self::UserInfo => node.is_none() && account_name(&wanted.user).is_none(),
            Self::Legacy => true,
        }
    }
}

impl Access {
    /// The user that the headers of a request name, if its sender may impersonate them.
    pub(super) fn impersonated(
        &self,
        headers: &HeaderMap,
        sender: &Identity,
        action: &Action,
    ) -> Result<Option<Identity>, StatusError> {
        if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
            return Ok(None);
        }
        let Some(wanted) = wanted(headers)? else { return Ok(None) };
        let mut refused = None;
        for mode in Mode::ALL.into_iter().filter(|mode| mode.suits(&wanted, sender)) {
            match self.impersonate_as(mode, sender, action, &wanted) {
                Ok(identity) => return Ok(Some(identity)),
                Err(failure) => {
                    refused.get_or_insert(failure);
                }
            }
        }
        Err(refused.unwrap_or_else(|| StatusError::internal("all impersonation modes failed")))
    }

    fn impersonate_as(
        &self,
        mode: Mode,
        requestor: &Identity,
        action: &Action,
        wanted: &Identity,
    ) -> Result<Identity, StatusError> {
        let (verb, group) = match mode {
            Mode::Legacy => ("impersonate".to_owned(), ""),
            mode => {
                let asked = request(action);
                let verb = format!("impersonate-on:{}:{}", mode.name(), asked.verb);
                self.require(requestor, &Request { verb: &verb, ..asked })?;
                (format!("impersonate:{}", mode.name()), AUTHENTICATION)
            }
        };
        let require = |group, resource, subresource, namespace, name| {
            let about = About::Resource { group, resource, subresource, namespace, name };
            self.require(requestor, &Request { verb: &verb, about })
        };
        let mut identity = wanted.clone();
        match (account_name(&wanted.user), node_name(&wanted.user)) {
            (Some((namespace, name)), _) => {
                if wanted.groups.is_empty() {
                    identity.groups = account_groups(namespace);
                }
                require(group, "serviceaccounts", "", namespace, name)?;
            }
            (None, Some(node)) if mode != Mode::Legacy => {
                identity.groups = vec!["system:nodes".into()];
                let node = if mode == Mode::AssociatedNode { "*" } else { node };
                require(group, "nodes", "", "", node)?;
            }
            _ => require(group, "users", "", "", &wanted.user)?,
        }
        if !wanted.uid.is_empty() {
            require(AUTHENTICATION, "uids", "", "", &wanted.uid)?;
        }
        for name in &wanted.groups {
            if mode != Mode::Legacy && (name.is_empty() || name == MASTERS) {
                let about =
                    About::Resource { group, resource: "groups", subresource: "", namespace: "", name };
                let why = match name.as_str() {
                    "" => "impersonating the empty string group is not allowed",
                    _ => "impersonating the system:masters group is not allowed",
                };
                return Err(crate::access::denial::denied(requestor, &Request { verb: &verb, about }, why));
            }
            require(group, "groups", "", "", name)?;
        }
        for (key, values) in &wanted.extra {
            for value in values {
                require(AUTHENTICATION, "userextras", key, "", value)?;
            }
        }
        Ok(with_everybody(identity))
    }
}

/// The groups that all service accounts of a namespace are in.
pub(crate) fn account_groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Everybody is in one of two groups.
fn with_everybody(mut identity: Identity) -> Identity {
    let is_in = |group: &str| identity.groups.iter().any(|known| known == group);
    let group = match identity.user.as_str() {
        ANONYMOUS => UNAUTHENTICATED,
        _ if is_in(UNAUTHENTICATED) => return identity,
        _ => AUTHENTICATED,
    };
    if !is_in(group) {
        identity.groups.push(group.to_owned());
    }
    identity
}

/// The name of the node that a user is.
fn node_name(user: &str) -> Option<&str> {
    let node = user.strip_prefix(NODE)?;
    watchkeeper_schema::metadata::dns_subdomain_problems(node).is_empty().then_some(node)
}

/// Whom the headers of a request name.
fn wanted(headers: &HeaderMap) -> Result<Option<Identity>, StatusError> {
    let texts = |name: &str| {
        let values = headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect::<Vec<_>>()
    };
    let first = |name: &str| texts(name).into_iter().next().unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.entry(unescaped(key)).or_default().extend(texts(name.as_str()));
        }
    }
    let wanted = Identity {
        user: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: texts("impersonate-group"),
        extra,
    };
    if !wanted.user.is_empty() {
        return Ok(Some(wanted));
    }
    if wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() {
        return Ok(None);
    }
    Err(StatusError::bad_request(format!("requested {} without impersonating a user name", in_go(&wanted))))
}

/// A key in which some bytes are written as `%` and two digits; one that is not is left as it is.
fn unescaped(key: &str) -> String {
    crate::request::unescaped_segment(key).unwrap_or_else(|| key.to_owned())
}

/// A user, as Go prints it.
fn in_go(user: &Identity) -> String {
    let list = |texts: &[String]| match texts {
        [] => "[]string(nil)".to_owned(),
        texts => {
            let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
            format!("[]string{{{}}}", texts.join(", "))
        }
    };
    let extra = match user.extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => {
            let pairs: Vec<String> =
                user.extra.iter().map(|(key, values)| format!("{key:?}:{}", list(values))).collect();
            format!("map[string][]string{{{}}}", pairs.join(", "))
        }
    };
    format!(
        "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{}, Extra:{extra}}}",
        user.user,
        user.uid,
        list(&user.groups)
    )
}
