use std::fmt;
use std::time::{Duration, SystemTime};

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use watchkeeper_x509::{Certificate, PublicKeyInfo, alternative_name, der, extension, name, oid, time};

use crate::Error;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// The validity of the certificate of an [`Authority`]: ten years.
pub const AUTHORITY_LIFE: Duration = DAY.saturating_mul(3650);
/// The validity of certificates that an [`Authority`] issues: a year.
pub const LEAF_LIFE: Duration = DAY.saturating_mul(365);
/// Clocks of clients may be behind ours.
const LEEWAY: Duration = Duration::from_secs(3600);

/// An ECDSA P-256 key, as it is stored and as it signs.
pub struct Key {
    pkcs8: PrivatePkcs8KeyDer<'static>,
    pair: EcdsaKeyPair,
}

impl Key {
    /// A new key.
    pub fn generate() -> Result<Self, Error> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new());
        let document = document.map_err(|_| Error::Cryptography("a key could not be generated".into()))?;
        Self::from_pkcs8(document.as_ref().to_vec().into()).map_err(Error::Cryptography)
    }

    /// The key in these bytes. The error says what is wrong with them.
    pub fn from_pkcs8(pkcs8: PrivatePkcs8KeyDer<'static>) -> Result<Self, String> {
        let (algorithm, bytes) = (&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.secret_pkcs8_der());
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, bytes, &SystemRandom::new());
        let pair = pair.map_err(|error| format!("not an ECDSA P-256 key in PKCS #8: {error}"))?;
        Ok(Self { pkcs8, pair })
    }

    /// The key as it is stored. A secret.
    pub fn pkcs8(&self) -> &PrivatePkcs8KeyDer<'static> {
        &self.pkcs8
    }

    fn public_key_info(&self) -> Vec<u8> {
        PublicKeyInfo::write_ec(oid::P256, self.pair.public_key().as_ref())
    }

    /// A short hash of the public key, by which certificates name the key that signed them.
    fn id(&self) -> Vec<u8> {
        digest(&SHA256, self.pair.public_key().as_ref()).as_ref()[..20].to_vec()
    }
}

/// The purpose of a certificate.
#[derive(Clone, Copy, Debug)]
pub enum Purpose<'a> {
    /// A server that is reached by these names and addresses.
    Server(&'a [String]),
    /// A client.
    Client,
}

/// A certificate authority: signs certificates that those who trust its own certificate accept.
///
/// The certificates are X.509 v3. They are written here and not by a library because a client certificate names each
/// of its groups as one more organization, and the builders for Rust allow only one.
pub struct Authority {
    certificate: CertificateDer<'static>,
    key: Key,
    /// Its name, encoded, as its certificate has it.
    subject: Vec<u8>,
    key_id: Option<Vec<u8>>,
    end: SystemTime,
}

impl Authority {
    /// Makes an authority with this name and key, and a new self-signed certificate.
    pub fn with_key(common_name: &str, key: Key, now: SystemTime) -> Result<Self, Error> {
        Self::with_life(common_name, key, now, AUTHORITY_LIFE)
    }

    /// Makes an authority as [`with_key`](Self::with_key) does, with a validity other than [`AUTHORITY_LIFE`].
    pub fn with_life(common_name: &str, key: Key, now: SystemTime, life: Duration) -> Result<Self, Error> {
        let subject = name([(oid::COMMON_NAME, common_name)]);
        let end = now + life;
        let certificate = Contents {
            issuer: &subject,
            subject: &subject,
            life: (now - LEEWAY, end),
            key: &key,
            extensions: vec![
                extension(oid::BASIC_CONSTRAINTS, true, &der::sequence(&[&der::boolean(true)])),
                // Signs certificates, lists of revoked ones, and handshakes.
                extension(oid::KEY_USAGE, true, &der::bits(1, &[0x86])),
                extension(oid::SUBJECT_KEY_ID, false, &der::octets(&key.id())),
            ],
        }
        .sign(&key)?;
        Ok(Self { certificate, subject, key_id: Some(key.id()), key, end })
    }

    /// Makes an authority of an existing certificate and its key. The error says why that is impossible.
    pub fn restore(certificate: CertificateDer<'static>, key: Key) -> Result<Self, &'static str> {
        let parsed = Certificate::read(&certificate).map_err(|_| "not an X.509 certificate")?;
        if parsed.public_key != key.public_key_info() {
            return Err("is not the certificate of the key beside it");
        }
        if !parsed.is_authority {
            return Err("is not the certificate of an authority");
        }
        let key_id = parsed.subject_key_id.map(<[u8]>::to_vec);
        let (subject, end) = (parsed.subject.encoded.to_vec(), parsed.validity.not_after);
        Ok(Self { subject, key_id, key, certificate, end })
    }

    /// The certificate of the authority, which clients have to trust.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The end of the validity of the certificate.
    pub fn end(&self) -> SystemTime {
        self.end
    }

    /// The key of the authority.
    pub fn into_key(self) -> Key {
        self.key
    }

    /// Issues a certificate for the holder of `key`: the user is the common name, the groups are the organizations.
    pub fn issue(
        &self,
        key: &Key,
        subject: (&str, &[String]),
        purpose: &Purpose<'_>,
        now: SystemTime,
    ) -> Result<CertificateDer<'static>, Error> {
        self.issue_for(key, subject, purpose, now, LEAF_LIFE)
    }

    /// Issues a certificate as [`issue`](Self::issue) does, with a validity other than [`LEAF_LIFE`].
    pub fn issue_for(
        &self,
        key: &Key,
        (user, groups): (&str, &[String]),
        purpose: &Purpose<'_>,
        now: SystemTime,
        life: Duration,
    ) -> Result<CertificateDer<'static>, Error> {
        let organizations = groups.iter().map(|group| (oid::ORGANIZATION, group.as_str()));
        let subject = name(organizations.chain([(oid::COMMON_NAME, user)]));
        let used_for = match purpose {
            Purpose::Server(_) => oid::SERVER_AUTH,
            Purpose::Client => oid::CLIENT_AUTH,
        };
        let mut extensions = vec![
            extension(oid::BASIC_CONSTRAINTS, true, &der::sequence(&[])),
            extension(oid::KEY_USAGE, true, &der::bits(7, &[0x80])),
            extension(oid::EXTENDED_KEY_USAGE, false, &der::sequence(&[&der::object_id(used_for)])),
        ];
        if let Some(id) = &self.key_id {
            let id = der::sequence(&[&der::tagged(der::implicit(0), id)]);
            extensions.push(extension(oid::AUTHORITY_KEY_ID, false, &id));
        }
        if let Purpose::Server(names) = purpose {
            let names: Vec<u8> = names.iter().flat_map(|name| alternative_name(name)).collect();
            extensions.push(extension(oid::ALTERNATIVE_NAMES, false, &der::sequence(&[&names])));
        }
        let life = (now - LEEWAY, now + life);
        Contents { issuer: &self.subject, subject: &subject, life, key, extensions }.sign(&self.key)
    }
}

/// What a certificate says.
struct Contents<'a> {
    issuer: &'a [u8],
    subject: &'a [u8],
    life: (SystemTime, SystemTime),
    key: &'a Key,
    extensions: Vec<Vec<u8>>,
}

impl Contents<'_> {
    fn sign(&self, signer: &Key) -> Result<CertificateDer<'static>, Error> {
        let random = SystemRandom::new();
        let failed = |_| Error::Cryptography("the system gave no random numbers".into());
        let mut serial = [0; 16];
        random.fill(&mut serial).map_err(failed)?;
        serial[0] = serial[0] & 0x7f | 0x40;

        let algorithm = der::sequence(&[&der::object_id(oid::ECDSA_WITH_SHA256)]);
        let to_be_signed = der::sequence(&[
            &der::tagged(der::explicit(0), &der::unsigned(&[2])), // v3
            &der::unsigned(&serial),
            &algorithm,
            self.issuer,
            &der::sequence(&[&time::write(self.life.0), &time::write(self.life.1)]),
            self.subject,
            &self.key.public_key_info(),
            &der::tagged(der::explicit(3), &der::tagged(der::SEQUENCE, &self.extensions.concat())),
        ]);
        let signature = signer.pair.sign(&random, &to_be_signed).map_err(failed)?;
        Ok(der::sequence(&[&to_be_signed, &algorithm, &der::bits(0, signature.as_ref())]).into())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("end", &self.end).finish_non_exhaustive()
    }
}
