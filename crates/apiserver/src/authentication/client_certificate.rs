use std::fmt::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};
use watchkeeper_x509::{Certificate, oid};

use super::{Authentication, Authenticator, Identity, Presented};

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
        match Certificate::read(certificate) {
            Ok(read) => Self { identity: identity(certificate, &read), not_after: read.validity.not_after },
            Err(_) => Self { identity: None, not_after: UNIX_EPOCH },
        }
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

/// The user is the common name, the groups are the organizations. A certificate without a common name is nobody's, and so is
/// one with a name that is no text, which Go does not read at all.
fn identity(encoded: &[u8], certificate: &Certificate<'_>) -> Option<Identity> {
    let subject = &certificate.subject;
    if subject.attributes.iter().any(|attribute| attribute.value.is_none()) {
        return None;
    }
    // Of several, the last: as Go reads it.
    let user = subject.values(oid::COMMON_NAME).next_back().filter(|user| !user.is_empty())?;
    let mut identity = Identity::new(user, subject.organizations());
    let mut uids = subject.values(oid::KUBERNETES_UID);
    if let Some(uid) = uids.next() {
        // One that is empty or said twice makes the certificate worthless.
        if uid.is_empty() || uids.next().is_some() {
            return None;
        }
        identity.uid = uid.to_owned();
    }
    let mut id = String::from("X509SHA256=");
    for byte in digest(&SHA256, encoded).as_ref() {
        let _ = write!(id, "{byte:02x}"); // writing to a string does not fail
    }
    identity.extra.insert(CREDENTIAL_ID.into(), vec![id]);
    Some(identity)
}

/// Believes the certificates of clients: the common name is the user, the organizations are the groups.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientCertificates;

impl Authenticator for ClientCertificates {
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> Authentication<'a> {
        Box::pin(async move { Ok(presented.certificate.and_then(|shown| shown.identity.clone())) })
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.identity.as_ref().map(|identity| &identity.user);
        f.debug_struct("ClientCertificate").field("user", &user).finish()
    }
}
