//! The keys that tokens are signed and verified with.

use std::path::Path;

use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED,
    ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey, VerificationAlgorithm,
};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::{PemObject, SectionKind};
use serde_json::{Value, json};
use watchkeeper_go::base64::RAW_URL;
use watchkeeper_x509::{Certificate, PublicKey, PublicKeyInfo, der, oid};

use super::KeyError;
use crate::front::pem;

/// A signature algorithm of JSON Web Tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Es256,
    Es384,
    Rs256,
}

impl Algorithm {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
        }
    }
}

/// A key that signs.
pub(super) struct Signer {
    pair: Pair,
    pub(super) verifier: Verifier,
}

enum Pair {
    Ecdsa(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// A key that verifies what its other half has signed.
#[derive(Clone)]
pub(super) struct Verifier {
    /// A hash of the key, by which tokens name it.
    pub(super) id: String,
    pub(super) algorithm: Algorithm,
    /// The key alone, as the algorithm wants it.
    public: Vec<u8>,
    /// The key, as a JSON Web Key.
    pub(super) document: Value,
}

impl Signer {
    /// A new key, and its text form.
    pub(super) fn generate() -> Result<(Self, String), KeyError> {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let document = document.map_err(|_| KeyError::Generate)?;
        let signer = ecdsa(document.as_ref()).map_err(|_| KeyError::Generate)?;
        let text = pem::key(&PrivatePkcs8KeyDer::from(document.as_ref().to_vec()));
        Ok((signer, text))
    }

    /// The first private key of a file.
    pub(super) fn read(file: &Path) -> Result<Self, KeyError> {
        for (kind, bytes) in sections(file)? {
            if let Some(signer) = private(kind, &bytes) {
                return signer.map_err(|reason| KeyError::File { file: file.into(), reason });
            }
        }
        Err(KeyError::File { file: file.into(), reason: "holds no private key in PEM".into() })
    }

    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ecdsa(pair) => {
                pair.sign(&random, message).ok().map(|signature| signature.as_ref().to_vec())
            }
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}

impl Verifier {
    /// All keys of a file.
    pub(super) fn read_all(file: &Path) -> Result<Vec<Self>, KeyError> {
        let bad = |reason: String| KeyError::File { file: file.into(), reason };
        let mut verifiers = Vec::new();
        for (kind, bytes) in sections(file)? {
            let verifier = match kind {
                SectionKind::PublicKey => Self::of_info(&bytes),
                SectionKind::Certificate => match Certificate::read(&bytes) {
                    Ok(certificate) => Self::of_info(certificate.public_key),
                    Err(_) => Err("holds a certificate that cannot be read".into()),
                },
                kind => match private(kind, &bytes) {
                    Some(signer) => signer.map(|signer| signer.verifier),
                    None => continue,
                },
            };
            verifiers.push(verifier.map_err(bad)?);
        }
        match verifiers.is_empty() {
            true => Err(bad("holds no key in PEM".into())),
            false => Ok(verifiers),
        }
    }

    /// A key in its general form, as certificates have it.
    fn of_info(info: &[u8]) -> Result<Self, String> {
        let bad = || "holds a public key that is neither RSA nor ECDSA P-256 or P-384".to_owned();
        let PublicKeyInfo { bytes, key } = PublicKeyInfo::read(info).map_err(|_| bad())?;
        let id = RAW_URL.encode(digest(&SHA256, info));
        let number = |bytes: &[u8]| RAW_URL.encode(bytes);
        let (algorithm, mut document) = match key {
            PublicKey::Rsa { modulus, exponent } => {
                (Algorithm::Rs256, json!({"kty": "RSA", "n": number(modulus), "e": number(exponent)}))
            }
            PublicKey::Ec { curve, point: [4, point @ ..] } => {
                let (algorithm, curve) = match (curve, point.len()) {
                    (oid::P256, 64) => (Algorithm::Es256, "P-256"),
                    (oid::P384, 96) => (Algorithm::Es384, "P-384"),
                    _ => return Err(bad()),
                };
                let (x, y) = point.split_at(point.len() / 2);
                (algorithm, json!({"kty": "EC", "crv": curve, "x": number(x), "y": number(y)}))
            }
            _ => return Err(bad()),
        };
        document["use"] = "sig".into();
        document["kid"] = id.as_str().into();
        document["alg"] = algorithm.name().into();
        Ok(Self { id, algorithm, public: bytes.to_vec(), document })
    }

    pub(super) fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        let with: &dyn VerificationAlgorithm = match self.algorithm {
            Algorithm::Es256 => &ECDSA_P256_SHA256_FIXED,
            Algorithm::Es384 => &ECDSA_P384_SHA384_FIXED,
            Algorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        };
        algorithm == self.algorithm.name()
            && UnparsedPublicKey::new(with, &self.public).verify(message, signature).is_ok()
    }
}

/// The parts of a PEM file.
fn sections(file: &Path) -> Result<Vec<(SectionKind, Vec<u8>)>, KeyError> {
    let bad = |reason: String| KeyError::File { file: file.into(), reason };
    let text = std::fs::read(file).map_err(|error| bad(error.to_string()))?;
    let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    sections.map_err(|_| bad("is not PEM".into()))
}

/// The private key in a part of a file, if it holds one.
fn private(kind: SectionKind, bytes: &[u8]) -> Option<Result<Signer, String>> {
    match kind {
        SectionKind::RsaPrivateKey => {
            Some(RsaKeyPair::from_der(bytes).map_err(|error| error.to_string()).and_then(rsa))
        }
        SectionKind::EcPrivateKey => {
            // The same key with its curve named outside of it.
            let wrapped = |curve: &[u8]| {
                let algorithm = der::sequence(&[&der::object_id(oid::EC_PUBLIC_KEY), &der::object_id(curve)]);
                der::sequence(&[&der::unsigned(&[]), &algorithm, &der::octets(bytes)])
            };
            Some(ecdsa(&wrapped(oid::P256)).or_else(|_| ecdsa(&wrapped(oid::P384))))
        }
        SectionKind::PrivateKey => Some(ecdsa(bytes).or_else(|_| {
            RsaKeyPair::from_pkcs8(bytes)
                .map_err(|error| format!("holds a key that is neither RSA nor ECDSA P-256 or P-384: {error}"))
                .and_then(rsa)
        })),
        _ => None,
    }
}

fn rsa(pair: RsaKeyPair) -> Result<Signer, String> {
    let info = PublicKeyInfo::write_rsa(pair.public_key().as_ref());
    Ok(Signer { pair: Pair::Rsa(pair), verifier: Verifier::of_info(&info)? })
}

fn ecdsa(pkcs8: &[u8]) -> Result<Signer, String> {
    let random = SystemRandom::new();
    let curves: [(&'static EcdsaSigningAlgorithm, &[u8]); 2] =
        [(&ECDSA_P256_SHA256_FIXED_SIGNING, oid::P256), (&ECDSA_P384_SHA384_FIXED_SIGNING, oid::P384)];
    for (algorithm, curve) in curves {
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &random) {
            let info = PublicKeyInfo::write_ec(curve, pair.public_key().as_ref());
            return Ok(Signer { pair: Pair::Ecdsa(pair), verifier: Verifier::of_info(&info)? });
        }
    }
    Err("holds a key that is neither RSA nor ECDSA P-256 or P-384".into())
}
