//! Who asks: what is sent with each request to prove it.

mod exec_credential;
mod plugin;
mod token_file;

use std::fmt;
use std::path::PathBuf;

use http::HeaderValue;
use watchkeeper_go::base64;

pub(crate) use plugin::{Interactive, PluginSettings};

use crate::tls::Identity;
use plugin::Plugin;
use token_file::TokenFile;

/// Where credentials come from.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) enum CredentialSettings {
    /// There are none, or only a client certificate.
    #[default]
    None,
    Token(String),
    /// A file that holds a token, and the token to use until it does.
    TokenFile(PathBuf, Option<String>),
    Basic(String, String),
    Plugin(Box<PluginSettings>),
}

/// Provides what proves who asks.
pub(crate) enum Credentials {
    None,
    Fixed(HeaderValue),
    File(TokenFile),
    Plugin(Plugin),
}

/// What proves who asks.
#[derive(Clone, Default)]
pub(crate) struct Proof {
    /// The value of an `Authorization` header.
    pub(crate) authorization: Option<HeaderValue>,
    /// A client certificate from a plugin.
    pub(crate) identity: Option<Identity>,
    /// Which run of a plugin it comes from.
    run: u64,
}

impl Credentials {
    pub(crate) fn new(settings: CredentialSettings) -> Result<Self, String> {
        Ok(match settings {
            CredentialSettings::None => Self::None,
            CredentialSettings::Token(token) => Self::Fixed(bearer(&token).ok_or(NO_TOKEN)?),
            CredentialSettings::TokenFile(file, token) => Self::File(TokenFile::new(file, token)?),
            CredentialSettings::Basic(user, password) => {
                let value = format!("Basic {}", base64::encode(format!("{user}:{password}")));
                Self::Fixed(sensitive(&value).ok_or(NO_TOKEN)?)
            }
            CredentialSettings::Plugin(settings) => Self::Plugin(Plugin::new(*settings)),
        })
    }

    /// What to send now.
    pub(crate) async fn get(&self) -> Result<Proof, String> {
        let authorization = match self {
            Self::None => None,
            Self::Fixed(value) => Some(value.clone()),
            Self::File(file) => Some(file.get()),
            Self::Plugin(plugin) => return plugin.get().await,
        };
        Ok(Proof { authorization, ..Proof::default() })
    }

    /// The server did not accept this. The next request comes with something newer, if there is a way to get it.
    pub(crate) fn refused(&self, proof: &Proof) {
        match self {
            Self::None | Self::Fixed(_) => {}
            Self::File(file) => file.doubt(),
            Self::Plugin(plugin) => plugin.refused(proof.run),
        }
    }
}

/// Nothing of a token is repeated.
const NO_TOKEN: &str = "the token has characters that no token has";

/// The value of an `Authorization` header: never shown by `Debug`.
fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn bearer(token: &str) -> Option<HeaderValue> {
    sensitive(&format!("Bearer {}", token.trim()))
}

impl fmt::Debug for CredentialSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Token(_) => f.write_str("Token"),
            Self::TokenFile(file, _) => write!(f, "TokenFile({})", file.display()),
            Self::Basic(user, _) => write!(f, "Basic({user:?})"),
            Self::Plugin(plugin) => write!(f, "Plugin({:?})", plugin.command),
        }
    }
}
