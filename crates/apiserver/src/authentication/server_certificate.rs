use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use rustls_pki_types::PrivateKeyDer;
use watchkeeper_front::{Authority, CertificateSource, Key, LEAF_LIFE, Purpose, ServerCertificate};

use super::Error;

/// The names by which every server can be reached: from this machine, and as `kubernetes` from inside a cluster.
const NAMES: [&str; 7] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// The certificate of the server, which is issued again in the middle of its life: a server may run for years.
pub(super) struct RenewedCertificate {
    authority: Arc<Authority>,
    key: Arc<Key>,
    names: Vec<String>,
    /// And when the next one is issued.
    current: Mutex<(ServerCertificate, SystemTime)>,
}

impl RenewedCertificate {
    /// Issues it for the usual names and these.
    pub(super) fn issue(authority: Arc<Authority>, key: Arc<Key>, more: &[String]) -> Result<Self, Error> {
        let names = names(more)?;
        let now = SystemTime::now();
        let current = Mutex::new((issue(&authority, &key, &names, now)?, now + LEAF_LIFE / 2));
        Ok(Self { authority, key, names, current })
    }

    fn at(&self, now: SystemTime) -> ServerCertificate {
        let mut current = self.current.lock();
        if now > current.1 {
            match issue(&self.authority, &self.key, &self.names, now) {
                Ok(certificate) => *current = (certificate, now + LEAF_LIFE / 2),
                Err(error) => tracing::warn!(%error, "server certificate could not be renewed"),
            }
        }
        current.0.clone()
    }
}

impl CertificateSource for RenewedCertificate {
    fn certificate(&self, _host: Option<&str>) -> Option<ServerCertificate> {
        Some(self.at(SystemTime::now()))
    }
}

fn issue(
    authority: &Authority,
    key: &Key,
    names: &[String],
    now: SystemTime,
) -> Result<ServerCertificate, watchkeeper_front::Error> {
    let certificate = authority.issue(key, ("watchkeeper", &[]), &Purpose::Server(names), now)?;
    ServerCertificate::new(vec![certificate], PrivateKeyDer::Pkcs8(key.pkcs8().clone_key()))
}

/// All names of a server: the usual ones and these.
pub(super) fn names(more: &[String]) -> Result<Vec<String>, Error> {
    let mut names: Vec<String> = NAMES.map(str::to_owned).to_vec();
    for name in more {
        let lower = name.to_ascii_lowercase();
        if name.is_empty() || !name.is_ascii() || name.contains(|char: char| char <= ' ' || char == '/') {
            let reason = "it is neither a host name nor an address";
            return Err(Error::Name { name: name.clone(), reason });
        }
        if !names.contains(&lower) {
            names.push(lower);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_certificate_is_issued_again_in_the_middle_of_its_life() {
        let now = SystemTime::now();
        let authority = Authority::with_key("test", Key::generate().unwrap(), now).unwrap();
        let (authority, key) = (Arc::new(authority), Arc::new(Key::generate().unwrap()));
        let server = RenewedCertificate::issue(authority, key, &["api.example".into()]).unwrap();
        let first = server.at(now);
        assert_eq!(first, server.at(now + LEAF_LIFE / 3));
        let second = server.at(now + LEAF_LIFE / 3 * 2);
        assert_ne!(first, second);
        assert_eq!(second, server.at(now + LEAF_LIFE));
    }
}
