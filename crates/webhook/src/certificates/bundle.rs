use std::time::SystemTime;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use watchkeeper_front::pem;
use watchkeeper_x509::Certificate;

/// The authorities that a configuration shows, each once. Without I/O.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bundle(Vec<CertificateDer<'static>>);

impl Bundle {
    /// The certificates of a text in PEM. What cannot be read is left out.
    pub(crate) fn read(text: &str) -> Self {
        let mut bundle = Self::default();
        bundle.add(CertificateDer::pem_slice_iter(text.as_bytes()).filter_map(Result::ok));
        bundle
    }

    fn add(&mut self, certificates: impl IntoIterator<Item = CertificateDer<'static>>) {
        for certificate in certificates {
            if !self.0.contains(&certificate) {
                self.0.push(certificate);
            }
        }
    }

    pub(crate) fn has(&self, certificate: &CertificateDer<'static>) -> bool {
        self.0.contains(certificate)
    }

    /// Whether it has all authorities of another one.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        other.0.iter().all(|certificate| self.0.contains(certificate))
    }

    /// With those of another one that have not expired.
    pub(crate) fn and(mut self, other: &Self, now: SystemTime) -> Self {
        let counts =
            |certificate: &&CertificateDer<'static>| life(certificate).is_none_or(|(_, end)| end > now);
        self.add(other.0.iter().filter(counts).cloned());
        self
    }

    /// In PEM.
    pub(crate) fn text(&self) -> String {
        self.0.iter().map(pem::certificate).collect()
    }
}

/// When a certificate counts.
pub(crate) fn life(certificate: &CertificateDer<'_>) -> Option<(SystemTime, SystemTime)> {
    let validity = Certificate::read(certificate).ok()?.validity;
    Some((validity.not_before, validity.not_after))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::record::Trusted;
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn authority(begin: SystemTime) -> Bundle {
        Bundle::read(&Trusted::generate("a", begin, 10 * DAY).unwrap().certificate)
    }

    #[test]
    fn authorities_are_added_once_and_left_out_when_they_have_expired() {
        let now = SystemTime::now();
        let (old, new) = (authority(now - DAY), authority(now));
        let both = new.clone().and(&old, now);
        assert!(both.contains(&old) && both.contains(&new) && !old.contains(&new));
        assert_eq!(both.clone().and(&both, now), both);
        assert_eq!(Bundle::read(&both.text()), both);
        assert_eq!(new.clone().and(&old, now + 9 * DAY + DAY / 2), new);
        assert_eq!(Bundle::read("nonsense"), Bundle::default());
    }
}
