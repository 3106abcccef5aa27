use std::fmt::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use ring::digest::{SHA256, digest};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Authenticator, Identity, Presented};

/// Where kube-apiserver looks for the uid of a user in the subject of a certificate.
const UID: &str = "1.3.6.1.4.1.57683.2";
/// Under this key an identity says which credential it was shown.
pub(super) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The certificate that a client showed when it connected, after it was verified.
pub struct ClientCertificate {
    identity: Option<Identity>,
    /// The last second in which it counts.
    not_after: SystemTime,
}

impl ClientCertificate {
    /// Reads a certificate. Verifying it is not its business.
    pub(super) fn read(certificate: &[u8]) -> Self {
        let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
            return Self { identity: None, not_after: UNIX_EPOCH };
        };
        let end = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or_default();
        let not_after = UNIX_EPOCH.checked_add(Duration::from_secs(end)).unwrap_or(UNIX_EPOCH);
        Self { identity: identity(certificate, &parsed), not_after }
    }

    /// Whom it names, whether or not it has expired.
    pub(super) fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Whether it counts no more. The handshake looks at that once; connections may outlive certificates, and sessions
    /// are resumed without looking.
    pub(super) fn is_expired(&self, now: SystemTime) -> bool {
        now > self.not_after
    }
}

/// The user is the common name, the groups are the organizations. A certificate without a common name is nobody's.
fn identity(certificate: &[u8], parsed: &X509Certificate<'_>) -> Option<Identity> {
    let subject = parsed.subject();
    // Of several, the last: as Go reads it.
    let user = subject.iter_common_name().last()?.as_str().ok()?;
    if user.is_empty() {
        return None;
    }
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok());
    let mut identity = Identity::new(user, groups);
    let mut uids = subject.iter_attributes().filter(|attribute| attribute.attr_type().to_id_string() == UID);
    if let Some(uid) = uids.next() {
        // One that is empty or said twice makes the certificate worthless.
        identity.uid = uid.as_str().ok().filter(|uid| !uid.is_empty())?.to_owned();
        if uids.next().is_some() {
            return None;
        }
    }
    let mut id = String::from("X509SHA256=");
    for byte in digest(&SHA256, certificate).as_ref() {
        let _ = write!(id, "{byte:02x}"); // writing to a string does not fail
    }
    identity.extra.insert(CREDENTIAL_ID.into(), vec![id]);
    Some(identity)
}

/// Believes the certificates of clients: the common name is the user, the organizations are the groups.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientCertificates;

impl Authenticator for ClientCertificates {
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> BoxFuture<'a, Option<Identity>> {
        Box::pin(async move { presented.certificate?.identity.clone() })
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.identity.as_ref().map(|identity| &identity.user);
        f.debug_struct("ClientCertificate").field("user", &user).finish()
    }
}
