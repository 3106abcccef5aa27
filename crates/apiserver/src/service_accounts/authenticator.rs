use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use serde_json::Value;
use watchkeeper_rbac::account_user;
use watchkeeper_storage::{Error as StorageError, Storage};

use super::AccountTokens;
use super::token::{Claims, LEEWAY, Reference};
use crate::access::account_groups;
use crate::authentication::{Authentication, Authenticator, Identity, Presented, Unavailable};
use crate::object::meta;
use crate::object::time::Clock;
use crate::registry::Registrar;

/// Recognises the tokens of ServiceAccounts.
///
/// A token is good only as long as its account, and what else it is bound to, exists: that is looked up every time. While the storage
/// cannot be read, nothing is known of any token.
pub struct AccountAuthenticator(Weak<Accounts>);

impl AccountAuthenticator {
    pub(crate) fn new(accounts: &Arc<Accounts>) -> Self {
        Self(Arc::downgrade(accounts))
    }
}

/// The ServiceAccounts of a server and their tokens.
pub(crate) struct Accounts {
    pub(crate) tokens: AccountTokens,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) registrar: Arc<Registrar>,
    pub(crate) clock: Clock,
}

impl Authenticator for AccountAuthenticator {
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> Authentication<'a> {
        Box::pin(async move {
            let token = presented.token.and_then(|token| std::str::from_utf8(token).ok());
            let (Some(token), Some(accounts)) = (token, self.0.upgrade()) else { return Ok(None) };
            match accounts.of_token(token, accounts.tokens.audiences()).await {
                Some(Ok((identity, _))) => Ok(Some(identity)),
                None | Some(Err(Refusal::Invalid(_))) => Ok(None),
                Some(Err(Refusal::Unavailable(error))) => Err(Unavailable(error.to_string())),
            }
        })
    }
}

/// Why a token of a ServiceAccount is not accepted.
pub(crate) enum Refusal {
    /// It is not good, for this reason.
    Invalid(String),
    /// What it stands for could not be looked up: it may be good.
    Unavailable(StorageError),
}

impl From<&str> for Refusal {
    fn from(reason: &str) -> Self {
        Self::Invalid(reason.to_owned())
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self::Invalid(reason)
    }
}

impl From<StorageError> for Refusal {
    fn from(error: StorageError) -> Self {
        Self::Unavailable(error)
    }
}

impl Accounts {
    /// Whose token this is, and for which of the wanted audiences. `None` if it is no token of a ServiceAccount; the error
    /// says why one that is is not accepted.
    pub(crate) async fn of_token(
        &self,
        token: &str,
        wanted: &[String],
    ) -> Option<Result<(Identity, Vec<String>), Refusal>> {
        let now = self.clock.now();
        let (claims, audiences) = match self.tokens.verify(token, wanted, now)? {
            Ok(verified) => verified,
            Err(reason) => return Some(Err(reason.into())),
        };
        Some(self.identify(&claims, now).await.map(|identity| (identity, audiences)))
    }

    async fn identify(&self, claims: &Claims, now: SystemTime) -> Result<Identity, Refusal> {
        const GONE: &str = "service account token has been invalidated";
        let namespace = claims.namespace();
        let account = claims.reference("serviceaccount").ok_or("service account token names no account")?;
        let found = self.stored("serviceaccounts", Some(namespace), account.name).await?;
        let found = found.ok_or_else(|| format!("serviceaccounts {:?} not found", account.name))?;
        if meta::uid(&found) != account.uid {
            let (is, said) = (meta::uid(&found), account.uid);
            return Err(format!("service account UID ({is}) does not match claim ({said})").into());
        }
        if is_long_deleted(&found, now) {
            return Err(format!("service account {namespace}/{} has been deleted", account.name).into());
        }
        let (pod, node) = (claims.reference("pod"), claims.reference("node"));
        let bound = [
            ("secret", "secrets", Some(namespace), claims.reference("secret")),
            ("pod", "pods", Some(namespace), pod),
            // With a pod, the node is only told, and may be gone.
            ("node", "nodes", None, node.filter(|_| pod.is_none())),
        ];
        for (kind, plural, namespace, reference) in bound {
            let Some(Reference { name, uid }) = reference else { continue };
            let found = self.stored(plural, namespace, name).await?.ok_or(GONE)?;
            if meta::uid(&found) != uid {
                let is = meta::uid(&found);
                return Err(format!(
                    "{kind} UID ({is}) does not match service account {kind} ref claim ({uid})"
                )
                .into());
            }
            if is_long_deleted(&found, now) {
                return Err(GONE.into());
            }
        }
        let mut identity = Identity::new(account_user(namespace, account.name), account_groups(namespace));
        identity.uid = account.uid.to_owned();
        identity.extra = extra(claims, pod, node);
        Ok(identity)
    }

    async fn stored(
        &self,
        plural: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, StorageError> {
        let Some(resource) = self.registrar.current().find("", "v1", plural) else { return Ok(None) };
        let found = self.storage.get(&resource.key(namespace, name), None).await?;
        Ok(found.entry.and_then(|entry| resource.read(&entry).ok()))
    }
}

/// What a token says beyond whose it is.
fn extra(
    claims: &Claims,
    pod: Option<Reference<'_>>,
    node: Option<Reference<'_>>,
) -> BTreeMap<String, Vec<String>> {
    let mut extra = BTreeMap::new();
    let mut add = |key: &str, value: String| {
        extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value]);
    };
    if !claims.id().is_empty() {
        add("credential-id", format!("JTI={}", claims.id()));
    }
    if let Some(pod) = pod {
        add("pod-name", pod.name.to_owned());
        add("pod-uid", pod.uid.to_owned());
    }
    if let Some(node) = node {
        add("node-name", node.name.to_owned());
        if !node.uid.is_empty() {
            add("node-uid", node.uid.to_owned());
        }
    }
    extra
}

/// Whether an object was deleted so long ago that its token is worth nothing, although something holds it.
fn is_long_deleted(object: &Value, now: SystemTime) -> bool {
    let deleted = crate::object::time::parse(meta::text(object, "deletionTimestamp"));
    deleted.is_some_and(|deleted| deleted + LEEWAY < now)
}
