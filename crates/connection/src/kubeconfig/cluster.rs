use std::path::Path;

use serde_json::{Map, Value};
use watchkeeper_go::base64;

use super::fields::Fields;
use super::user::resolved;
use crate::tls::{Pem, Trust};

/// The extension that holds what a plugin is told beside the cluster.
const PLUGIN_EXTENSION: &str = "client.authentication.k8s.io/exec";

/// A server and whether to believe it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Cluster {
    pub(super) server: Option<String>,
    pub(super) authority: Option<Pem>,
    pub(super) skips_verification: bool,
    pub(super) server_name: Option<String>,
    pub(super) proxy: Option<String>,
    disables_compression: bool,
    plugin_config: Option<Value>,
}

impl Cluster {
    pub(super) fn read(fields: &Fields<'_>, folder: &Path) -> Result<Self, String> {
        let file = fields.text("certificate-authority")?.map(|file| Pem::File(resolved(folder, &file)));
        let mut plugin_config = None;
        for extension in fields.list("extensions")? {
            let extension = Fields::of(extension, "extensions")?;
            if extension.text("name")?.as_deref() == Some(PLUGIN_EXTENSION) {
                plugin_config = extension.value("extension").cloned();
            }
        }
        Ok(Self {
            server: fields.text("server")?,
            authority: fields.data("certificate-authority-data")?.map(Pem::Data).or(file),
            skips_verification: fields.flag("insecure-skip-tls-verify")?,
            server_name: fields.text("tls-server-name")?,
            proxy: fields.text("proxy-url")?,
            disables_compression: fields.flag("disable-compression")?,
            plugin_config,
        })
    }

    /// Whom to believe.
    pub(super) fn trust(&self, name: &str) -> Result<Trust, String> {
        match (&self.authority, self.skips_verification) {
            (Some(_), true) => Err(format!(
                "cluster {name:?} has a certificate-authority and insecure-skip-tls-verify: one of them has to go"
            )),
            (Some(pem), false) => Ok(Trust::Authorities(pem.clone())),
            (None, true) => Ok(Trust::Everyone),
            (None, false) => Ok(Trust::System),
        }
    }

    /// What a credential plugin is told about it (`provideClusterInfo`).
    pub(super) fn to_plugin(&self) -> Result<Value, String> {
        let mut told = Map::new();
        let mut tell = |name: &str, value: Option<Value>| {
            told.extend(value.map(|value| (name.to_owned(), value)));
        };
        tell("server", self.server.clone().map(Value::from));
        tell("tls-server-name", self.server_name.clone().map(Value::from));
        tell("insecure-skip-tls-verify", self.skips_verification.then_some(true.into()));
        let authority = match &self.authority {
            Some(Pem::Data(data)) => Some(data.clone()),
            Some(Pem::File(file)) => Some(
                std::fs::read(file)
                    .map_err(|error| format!("certificate-authority {}: {error}", file.display()))?,
            ),
            None => None,
        };
        tell("certificate-authority-data", authority.map(|data| base64::encode(data).into()));
        tell("proxy-url", self.proxy.clone().map(Value::from));
        tell("disable-compression", self.disables_compression.then_some(true.into()));
        tell("config", self.plugin_config.clone());
        Ok(Value::Object(told))
    }
}
