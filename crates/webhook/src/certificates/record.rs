//! What is kept in the Secret.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use watchkeeper_front::{Authority, Key, pem};
use watchkeeper_x509::Certificate;

/// The authorities of a program's webhooks: the one that signs, the one that is going to, and the one that did.
///
/// It is one value, and every change of it is one conditional write, so that it is the truth about how far a rotation is,
/// whoever dies.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Record {
    /// Grows by one with every write.
    pub(crate) sequence: u64,
    /// Signs certificates of servers.
    pub(crate) current: Trusted,
    /// Is going to sign, as soon as every configuration shows it.
    pub(crate) next: Option<Trusted>,
    /// Has signed what replicas may still show.
    pub(crate) previous: Option<Trusted>,
    /// When `current` began to sign, in milliseconds since 1970.
    pub(crate) since: u64,
}

/// An authority, in PEM.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Trusted {
    pub(crate) certificate: Arc<str>,
    /// Not of one that signs nothing any more.
    pub(crate) key: Option<Arc<str>>,
}

/// Never the key.
impl fmt::Debug for Trusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trusted").field("has_key", &self.key.is_some()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("sequence", &self.sequence)
            .field("next", &self.next.is_some())
            .field("previous", &self.previous.is_some())
            .finish_non_exhaustive()
    }
}

/// The data of the Secret by their names. Values are as they are, not in base64.
pub(crate) type Data = BTreeMap<String, Vec<u8>>;

impl Trusted {
    /// A new authority.
    pub(crate) fn generate(name: &str, now: SystemTime, life: Duration) -> Result<Self, String> {
        let key = Key::generate().map_err(|error| error.to_string())?;
        let authority = Authority::with_life(name, key, now, life).map_err(|error| error.to_string())?;
        let certificate = pem::certificate(authority.certificate()).into();
        let key = Some(pem::key(authority.into_key().pkcs8()).into());
        Ok(Self { certificate, key })
    }

    /// It as something that signs.
    pub(crate) fn authority(&self) -> Result<Authority, String> {
        let key = self.key.as_deref().ok_or("the authority has no key")?;
        let key = PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes()).map_err(|_| "its key is not in PEM")?;
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes());
        let certificate = certificate.map_err(|_| "its certificate is not in PEM")?;
        Authority::restore(certificate, Key::from_pkcs8(key)?).map_err(|why| format!("its certificate {why}"))
    }

    /// When it counts.
    pub(crate) fn life(&self) -> Result<(SystemTime, SystemTime), String> {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes());
        let certificate = certificate.map_err(|_| "a certificate is not in PEM")?;
        let read = Certificate::read(&certificate).map_err(|_| "a certificate is not one of X.509")?;
        Ok((read.validity.not_before, read.validity.not_after))
    }
}

impl Record {
    /// The first one, or the first after what configurations show of one that was lost.
    pub(crate) fn first(current: Trusted, after: u64, now: SystemTime) -> Self {
        Self { sequence: after.saturating_add(1), current, next: None, previous: None, since: millis(now) }
    }

    /// The authorities that configurations have to show: all there are, in PEM.
    pub(crate) fn bundle(&self) -> String {
        let others = [&self.next, &self.previous].into_iter().flatten();
        std::iter::once(&self.current).chain(others).map(|one| &*one.certificate).collect()
    }

    /// With an authority that is going to sign.
    pub(crate) fn announced(&self, next: Trusted) -> Self {
        Self { sequence: self.sequence.saturating_add(1), next: Some(next), ..self.clone() }
    }

    /// With the next authority as the one that signs.
    pub(crate) fn promoted(&self, now: SystemTime) -> Self {
        let sequence = self.sequence.saturating_add(1);
        let Some(next) = self.next.clone() else { return self.clone() };
        let previous = Some(Trusted { key: None, ..self.current.clone() });
        Self { sequence, current: next, next: None, previous, since: millis(now) }
    }

    /// Without the authority that has signed.
    pub(crate) fn dropped(&self) -> Self {
        Self { sequence: self.sequence.saturating_add(1), previous: None, ..self.clone() }
    }

    /// What the Secret has.
    pub(crate) fn read(data: &Data) -> Result<Self, String> {
        let text = |name: &str| {
            let value = data.get(name).and_then(|value| std::str::from_utf8(value).ok());
            value.ok_or_else(|| format!("{name} is missing"))
        };
        let number = |name: &str| text(name)?.parse().map_err(|_| format!("{name} is no number"));
        let trusted = |name: &str| {
            let certificate = text(&format!("{name}.crt")).ok()?.into();
            Some(Trusted { certificate, key: text(&format!("{name}.key")).ok().map(Into::into) })
        };
        let record = Self {
            sequence: number("sequence")?,
            current: trusted("current").ok_or("current.crt is missing")?,
            next: trusted("next"),
            previous: trusted("previous"),
            since: number("since")?,
        };
        // What cannot sign is no authority.
        record.current.authority().map_err(|why| format!("current: {why}"))?;
        record.next.as_ref().map(Trusted::authority).transpose().map_err(|why| format!("next: {why}"))?;
        Ok(record)
    }

    /// The data of the Secret.
    pub(crate) fn data(&self) -> Data {
        let mut data = Data::from([
            ("sequence".to_owned(), self.sequence.to_string().into_bytes()),
            ("since".to_owned(), self.since.to_string().into_bytes()),
        ]);
        let all = [
            ("current", Some(&self.current)),
            ("next", self.next.as_ref()),
            ("previous", self.previous.as_ref()),
        ];
        for (name, trusted) in all {
            if let Some(Trusted { certificate, key }) = trusted {
                data.insert(format!("{name}.crt"), certificate.as_bytes().to_vec());
                if let Some(key) = key {
                    data.insert(format!("{name}.key"), key.as_bytes().to_vec());
                }
            }
        }
        data
    }
}

/// Milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_what_is_read() {
        let now = SystemTime::now();
        let authority = || Trusted::generate("a", now, Duration::from_secs(1000)).unwrap();
        let first = Record::first(authority(), 0, now);
        let announced = first.announced(authority());
        let promoted = announced.promoted(now);
        for record in [&first, &announced, &promoted, &promoted.dropped()] {
            assert_eq!(Record::read(&record.data()).unwrap(), *record);
        }
        assert_eq!(promoted.previous.as_ref().unwrap().key, None, "what signs no more has no key any more");
        assert_eq!(promoted.current, announced.next.clone().unwrap());
        assert!(announced.bundle().contains(&*first.current.certificate));
        assert!(!format!("{first:?}").contains("PRIVATE"));
    }

    #[test]
    fn what_cannot_sign_is_not_taken() {
        let record = Record::first(
            Trusted::generate("a", SystemTime::now(), Duration::from_secs(1000)).unwrap(),
            0,
            SystemTime::now(),
        );
        for name in ["sequence", "since", "current.crt", "current.key"] {
            let mut data = record.data();
            data.remove(name);
            assert!(Record::read(&data).is_err(), "{name}");
            data.insert(name.to_owned(), b"nonsense".to_vec());
            assert!(Record::read(&data).is_err(), "{name}");
        }
    }
}
