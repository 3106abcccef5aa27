use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use http::{HeaderMap, HeaderName, HeaderValue};

use super::cluster::Cluster;
use super::fields::Fields;
use crate::credentials::{CredentialSettings, Interactive, PluginSettings};
use crate::tls::{Identity, Pem};

/// Who asks, and as whom.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct User {
    token: Option<String>,
    token_file: Option<PathBuf>,
    username: Option<String>,
    password: Option<String>,
    certificate: Option<Pem>,
    key: Option<Pem>,
    plugin: Option<Plugin>,
    has_auth_provider: bool,
    impersonation: Impersonation,
}

/// An `exec` plugin, as far as it does not depend on the cluster.
#[derive(Clone, PartialEq, Eq)]
struct Plugin {
    settings: PluginSettings,
    interactive_mode: Option<String>,
    wants_cluster: bool,
}

#[derive(Clone, Default, PartialEq, Eq)]
struct Impersonation {
    user: Option<String>,
    uid: Option<String>,
    groups: Vec<String>,
    extra: Vec<(String, Vec<String>)>,
}

/// A path that is relative to the file that it is in.
pub(super) fn resolved(folder: &Path, path: &str) -> PathBuf {
    folder.join(path)
}

impl User {
    pub(super) fn read(fields: &Fields<'_>, folder: &Path) -> Result<Self, String> {
        let file = |name: &str| Ok::<_, String>(fields.text(name)?.map(|file| resolved(folder, &file)));
        let pem = |data: &str, name: &str| {
            Ok::<_, String>(fields.data(data)?.map(Pem::Data).or(file(name)?.map(Pem::File)))
        };
        let plugin = match fields.value("exec") {
            Some(_) => {
                Some(Plugin::read(&fields.object("exec", &format!("exec of {}", fields.what()))?, folder)?)
            }
            None => None,
        };
        let extra = fields.object("as-user-extra", &format!("as-user-extra of {}", fields.what()))?;
        let extra = extra.names().map(|name| Ok((name.clone(), extra.texts(name)?)));
        Ok(Self {
            token: fields.text("token")?,
            token_file: file("tokenFile")?,
            username: fields.text("username")?,
            password: fields.text("password")?,
            certificate: pem("client-certificate-data", "client-certificate")?,
            key: pem("client-key-data", "client-key")?,
            plugin,
            has_auth_provider: fields.value("auth-provider").is_some(),
            impersonation: Impersonation {
                user: fields.text("as")?,
                uid: fields.text("as-uid")?,
                groups: fields.texts("as-groups")?,
                extra: extra.collect::<Result<_, String>>()?,
            },
        })
    }

    /// What proves who asks.
    pub(super) fn credentials(&self, name: &str, cluster: &Cluster) -> Result<CredentialSettings, String> {
        if self.has_auth_provider {
            return Err(format!(
                "user {name:?} has an auth-provider, which Kubernetes has removed: use an exec plugin or a token"
            ));
        }
        let basic = self.username.is_some() || self.password.is_some();
        if basic && self.token.is_some() {
            return Err(format!(
                "user {name:?} has a token and a username or password: one of them has to go"
            ));
        }
        Ok(match (&self.token, &self.token_file, &self.plugin) {
            (token, Some(file), _) => CredentialSettings::TokenFile(file.clone(), token.clone()),
            (Some(token), None, _) => CredentialSettings::Token(token.clone()),
            _ if basic => CredentialSettings::Basic(
                self.username.clone().unwrap_or_default(),
                self.password.clone().unwrap_or_default(),
            ),
            (None, None, Some(plugin)) => {
                CredentialSettings::Plugin(Box::new(plugin.settings(name, cluster)?))
            }
            (None, None, None) => CredentialSettings::None,
        })
    }

    /// The certificate to show.
    pub(super) fn identity(&self, name: &str) -> Result<Option<Identity>, String> {
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                Ok(Some(Identity { certificate: certificate.clone(), key: key.clone() }))
            }
            (Some(_), None) => Err(format!("user {name:?} has a client-certificate and no client-key")),
            (None, _) => Ok(None),
        }
    }

    /// The headers that say whom to act as.
    pub(super) fn impersonation(&self, name: &str) -> Result<HeaderMap, String> {
        let Impersonation { user, uid, groups, extra } = &self.impersonation;
        let mut headers = HeaderMap::new();
        let Some(user) = user else {
            return match uid.is_none() && groups.is_empty() && extra.is_empty() {
                true => Ok(headers),
                false => Err(format!("user {name:?} has as-uid, as-groups or as-user-extra without as")),
            };
        };
        let mut add = |header: &str, value: &str| {
            let wrong = || format!("user {name:?}: {header:?} cannot be sent");
            let header = HeaderName::from_bytes(header.as_bytes()).map_err(|_| wrong())?;
            headers.append(header, HeaderValue::from_str(value).map_err(|_| wrong())?);
            Ok::<_, String>(())
        };
        add("impersonate-user", user)?;
        if let Some(uid) = uid {
            add("impersonate-uid", uid)?;
        }
        for group in groups {
            add("impersonate-group", group)?;
        }
        for (key, values) in extra {
            for value in values {
                add(&format!("impersonate-extra-{}", escaped(key)), value)?;
            }
        }
        Ok(headers)
    }
}

/// A key in the name of a header: in lower case, and what no name of a header can have as percent-escapes.
fn escaped(key: &str) -> String {
    let mut out = String::new();
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => out.push(byte.into()),
            b'A'..=b'Z' => out.push(byte.to_ascii_lowercase().into()),
            b'!' | b'#' | b'$' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|'
            | b'~' => {
                out.push(byte.into());
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

impl Plugin {
    fn read(fields: &Fields<'_>, folder: &Path) -> Result<Self, String> {
        let what = fields.what();
        let api_version = fields.text("apiVersion")?.unwrap_or_default();
        // A name without a folder is looked for in $PATH.
        let command = match fields.text("command")?.unwrap_or_default() {
            path if path.contains(MAIN_SEPARATOR) => resolved(folder, &path).display().to_string(),
            name => name,
        };
        let mut env = Vec::new();
        for variable in fields.list("env")? {
            let variable = Fields::of(variable, &format!("{what}: env"))?;
            let name =
                variable.text("name")?.ok_or_else(|| format!("{what}: env: a variable has no name"))?;
            env.push((name, variable.text("value")?.unwrap_or_default()));
        }
        let settings = PluginSettings {
            api_version,
            command,
            args: fields.texts("args")?,
            env,
            interactive: Interactive::IfAvailable,
            install_hint: printable(&fields.text("installHint")?.unwrap_or_default()),
            cluster: None,
        };
        Ok(Self {
            settings,
            interactive_mode: fields.text("interactiveMode")?,
            wants_cluster: fields.flag("provideClusterInfo")?,
        })
    }

    /// What it is run with, if it can be. A plugin of somebody else may be as wrong as it likes.
    fn settings(&self, name: &str, cluster: &Cluster) -> Result<PluginSettings, String> {
        let PluginSettings { api_version, command, .. } = &self.settings;
        if command.is_empty() {
            return Err(format!("user {name:?}: its exec plugin has no command"));
        }
        if !matches!(
            api_version.as_str(),
            "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1"
        ) {
            return Err(format!(
                "user {name:?}: the apiVersion of its exec plugin is {api_version:?}, expected \
                 client.authentication.k8s.io/v1 or v1beta1"
            ));
        }
        let interactive = match self.interactive_mode.as_deref() {
            // It was not there in the beginning.
            None if api_version.ends_with("/v1beta1") => Interactive::IfAvailable,
            Some("IfAvailable") => Interactive::IfAvailable,
            Some("Never") => Interactive::Never,
            Some("Always") => Interactive::Always,
            _ => {
                return Err(format!(
                    "user {name:?}: the interactiveMode of its exec plugin: expected Never, IfAvailable or Always"
                ));
            }
        };
        let cluster = if self.wants_cluster { Some(cluster.to_plugin()?) } else { None };
        Ok(PluginSettings { interactive, cluster, ..self.settings.clone() })
    }
}

/// Without what a terminal would obey.
fn printable(text: &str) -> String {
    text.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_extra_fields_are_escaped_as_names_of_headers() {
        assert_eq!(escaped("example.com/Team A"), "example.com%2Fteam%20a");
        assert_eq!(escaped("ü%"), "%C3%BC%25");
    }
}
