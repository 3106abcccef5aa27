use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use serde_json::Value;
use watchkeeper_rbac::account_user;
use watchkeeper_storage::Storage;

use super::AccountTokens;
use super::token::{Claims, LEEWAY, Reference};
use crate::access::account_groups;
use crate::authentication::{Authenticator, Identity, Presented};
use crate::object::meta;
use crate::object::time::Clock;
use crate::registry::Registrar;

/// Recognises the tokens of ServiceAccounts.
///
/// A token is good only as long as its account, and what else it is bound to, exists: that is looked up every time.
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
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> BoxFuture<'a, Option<Identity>> {
        Box::pin(async move {
            let token = std::str::from_utf8(presented.token?).ok()?;
            let accounts = self.0.upgrade()?;
            let (identity, _) = accounts.of_token(token, accounts.tokens.audiences()).await?.ok()?;
            Some(identity)
        })
    }
}

impl Accounts {
    /// Whose token this is, and for which of the wanted audiences. `None` if it is no token of a ServiceAccount; the error
    /// says why one that is is not accepted.
    pub(crate) async fn of_token(
        &self,
        token: &str,
        wanted: &[String],
    ) -> Option<Result<(Identity, Vec<String>), String>> {
        let now = self.clock.now();
        let (claims, audiences) = match self.tokens.verify(token, wanted, now)? {
            Ok(verified) => verified,
            Err(reason) => return Some(Err(reason)),
        };
        Some(self.identify(&claims, now).await.map(|identity| (identity, audiences)))
    }

    async fn identify(&self, claims: &Claims, now: SystemTime) -> Result<Identity, String> {
        const GONE: &str = "service account token has been invalidated";
        let namespace = claims.namespace();
        let account = claims.reference("serviceaccount").ok_or("service account token names no account")?;
        let found = self.stored("serviceaccounts", Some(namespace), account.name).await;
        let found = found.ok_or_else(|| format!("serviceaccounts {:?} not found", account.name))?;
        if meta::uid(&found) != account.uid {
            let (is, said) = (meta::uid(&found), account.uid);
            return Err(format!("service account UID ({is}) does not match claim ({said})"));
        }
        if is_long_deleted(&found, now) {
            return Err(format!("service account {namespace}/{} has been deleted", account.name));
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
            let found = self.stored(plural, namespace, name).await.ok_or(GONE)?;
            if meta::uid(&found) != uid {
                let is = meta::uid(&found);
                return Err(format!(
                    "{kind} UID ({is}) does not match service account {kind} ref claim ({uid})"
                ));
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

    async fn stored(&self, plural: &str, namespace: Option<&str>, name: &str) -> Option<Value> {
        let resource = self.registrar.current().find("", "v1", plural)?;
        let entry = self.storage.get(&resource.key(namespace, name), None).await.ok()?.entry?;
        resource.read(&entry).ok()
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
