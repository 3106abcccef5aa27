use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;
use watchkeeper_front::private_file;

use super::{Credentials, Error, Identity, MASTERS};

/// What the cluster, the user and the context of our kubeconfigs are called.
const NAME: &str = "watchkeeper";

/// The kubeconfig of the administrator of a server. Holds a secret.
pub struct Kubeconfig {
    text: String,
}

impl Kubeconfig {
    /// For the server at this URL. It holds the token of the administrator, and a client certificate of its own, which is good for a
    /// year: there are programs that know nothing else. Whoever shows both is recognised by the certificate while it lasts, and by
    /// the token afterwards.
    pub fn new(server: &str, credentials: &Credentials) -> Result<Self, Error> {
        let authority = watchkeeper_go::base64::encode(credentials.authority_certificate());
        let Identity { user, .. } = Identity::admin();
        let issued = credentials.issue_client(&user, &[MASTERS.to_owned()])?;
        let [certificate, key] = [issued.certificate, issued.key].map(watchkeeper_go::base64::encode);
        // JSON strings are YAML strings, whatever is in them.
        let (server, token) = (Value::from(server), Value::from(credentials.admin_token()));
        let text = format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: {NAME}\n  cluster:\n    server: {server}\n    certificate-authority-data: {authority}\n\
             users:\n\
             - name: {NAME}\n  user:\n    token: {token}\n    \
             client-certificate-data: {certificate}\n    client-key-data: {key}\n\
             contexts:\n\
             - name: {NAME}\n  context:\n    cluster: {NAME}\n    user: {NAME}\n\
             current-context: {NAME}\n"
        );
        Ok(Self { text })
    }

    /// The file's content.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Writes it, readable for the owner only, as a whole or not at all. Takes the place of an empty file and of a
    /// kubeconfig that knows nothing but `watchkeeper`; anything else is somebody's, and is not touched. A symbolic link is
    /// refused: whoever made it would choose where the token goes.
    pub fn write(&self, file: &Path) -> Result<(), Error> {
        let failed = |reason: String| Error::Kubeconfig { file: file.into(), reason };
        Self::check(file)?;
        private_file::write(file, self.text.as_bytes()).map_err(|error| failed(error.to_string()))
    }

    /// Whether [`write`](Self::write) would take the place of what is there: to say so before there is a server.
    pub fn check(file: &Path) -> Result<(), Error> {
        let failed = |reason: String| Error::Kubeconfig { file: file.into(), reason };
        match fs::symlink_metadata(file) {
            Ok(metadata) if metadata.is_symlink() => {
                return Err(failed(
                    "is a symbolic link, and is not written through: name the file itself".into(),
                ));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error.to_string())),
        }
        let there = fs::read(file).map_err(|error| failed(error.to_string()))?;
        match others(&there) {
            Some(others) => Err(failed(format!("{others}, and is not overwritten: choose another file"))),
            None => Ok(()),
        }
    }
}

/// What in a file is not ours.
fn others(file: &[u8]) -> Option<String> {
    if file.trim_ascii().is_empty() {
        return None;
    }
    let Some(there) = watchkeeper_schema::yaml::decode(file).ok().map(|decoded| decoded.value) else {
        return Some("is not a kubeconfig".into());
    };
    if there["kind"] != "Config" || !there["contexts"].is_array() {
        return Some("is not a kubeconfig".into());
    }
    let lists = ["contexts", "clusters", "users"].map(|list| there[list].as_array());
    let names = lists.into_iter().flatten().flatten().filter_map(|entry| entry["name"].as_str());
    let mut others: Vec<&str> = names.filter(|name| *name != NAME).collect();
    others.dedup();
    match others.as_slice() {
        [] if there["current-context"] == NAME => None,
        [] => Some(format!("is a kubeconfig without the context {NAME}")),
        others => Some(format!("is a kubeconfig that has more than {NAME} in it ({})", others.join(", "))),
    }
}

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kubeconfig")
    }
}
