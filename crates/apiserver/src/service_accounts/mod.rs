//! Tokens of ServiceAccounts: JSON Web Tokens that the server signs and later recognises.
//!
//! A token is good as long as it says, and as long as what it is bound to exists: its ServiceAccount, and perhaps a Pod, a
//! Secret or a Node. That is looked up in the storage with every request, so that a deletion takes effect at once.

mod authenticator;
mod document;
mod key;
mod token;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use key::{Signer, Verifier};

use crate::front::private_file;

pub use authenticator::AccountAuthenticator;
pub(crate) use authenticator::{Accounts, Refusal};

/// Who issues tokens unless something else is said.
const ISSUER: &str = "https://kubernetes.default.svc";

/// The keys that sign and verify tokens of ServiceAccounts. Its secrets do not appear in its `Debug` output.
#[derive(Clone)]
pub struct AccountTokens {
    issuer: String,
    audiences: Vec<String>,
    /// Where others find the public keys, if that was said.
    keys_uri: Option<String>,
    signer: Option<Arc<Signer>>,
    verifiers: Arc<[Verifier]>,
}

/// The error of a key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file could not be read or written, or holds no key that can be used.
    #[error("{}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Others can read or change a file, or what is in its directory.
    #[error(transparent)]
    Exposed(#[from] crate::front::Error),
    /// A key could not be made.
    #[error("a key could not be generated")]
    Generate,
}

impl AccountTokens {
    /// Signs with a new key that is kept nowhere.
    pub fn generate() -> Result<Self, KeyError> {
        Ok(Self::with_signer(Signer::generate()?.0))
    }

    /// Signs with the key in `service-accounts.key` of a directory, which is made if it is not there: ECDSA P-256, in
    /// PEM, readable by its owner only; one that others can read is refused. Without a directory, with a new key that is
    /// kept nowhere.
    pub fn load_or_create(directory: Option<&Path>) -> Result<Self, KeyError> {
        let Some(directory) = directory else { return Self::generate() };
        let file = directory.join("service-accounts.key");
        private_file::open_directory(directory)?;
        if file.exists() {
            private_file::check(&file)?;
            return Self::from_files(Some(&file), &[]);
        }
        let (signer, pem) = Signer::generate()?;
        let written = private_file::write(&file, pem.as_bytes());
        written.map_err(|error| KeyError::File { file, reason: error.to_string() })?;
        Ok(Self::with_signer(signer))
    }

    /// Signs with the private key in one file, and accepts what was signed with any of the keys in the other files: public
    /// keys, certificates or private keys in PEM, any number in each. Without others, what this key signed is accepted;
    /// without a key to sign with, no tokens are issued.
    pub fn from_files(signing: Option<&Path>, verifying: &[PathBuf]) -> Result<Self, KeyError> {
        let signer = signing.map(Signer::read).transpose()?;
        let mut verifiers = Vec::new();
        for file in verifying {
            verifiers.extend(Verifier::read_all(file)?);
        }
        if let (Some(signer), []) = (&signer, verifying) {
            verifiers.push(signer.verifier.clone());
        }
        let mut tokens = Self {
            issuer: String::new(),
            audiences: Vec::new(),
            keys_uri: None,
            signer: signer.map(Arc::new),
            verifiers: verifiers.into(),
        };
        tokens.set_issuer(ISSUER);
        Ok(tokens)
    }

    fn with_signer(signer: Signer) -> Self {
        let verifiers = Arc::from([signer.verifier.clone()]);
        let signer = Some(Arc::new(signer));
        Self { issuer: ISSUER.into(), audiences: vec![ISSUER.into()], keys_uri: None, signer, verifiers }
    }

    /// Sets the issuer of the tokens, a URL, which is then also their audience.
    #[must_use]
    pub fn issued_by(mut self, issuer: &str) -> Self {
        self.set_issuer(issuer);
        self
    }

    /// Sets the HTTPS URL of the public keys. Otherwise they are told the address that the server was
    /// [advertised](crate::ApiServer::advertise) at, or a path below the issuer.
    #[must_use]
    pub fn keys_at(mut self, uri: &str) -> Self {
        self.keys_uri = Some(uri.into());
        self
    }

    fn set_issuer(&mut self, issuer: &str) {
        self.issuer = issuer.into();
        self.audiences = vec![issuer.into()];
    }
}

impl fmt::Debug for AccountTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountTokens").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}
