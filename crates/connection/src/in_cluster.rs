//! The cluster of the pod that this process runs in.

use std::env;
use std::fs;
use std::path::Path;

use crate::credentials::CredentialSettings;
use crate::server::Server;
use crate::tls::{Pem, TlsSettings, Trust};
use crate::{Config, ConnectError};

/// Where pods have what their service account needs.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

const LOOKED_AT: &str = "the service account of a pod";

impl Config {
    /// The cluster of the pod that this process runs in, as the pod's service account.
    ///
    /// # Errors
    ///
    /// If this is not a pod, or its service account has no token.
    pub fn in_cluster() -> Result<Self, ConnectError> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let (host, port) = (variable("KUBERNETES_SERVICE_HOST"), variable("KUBERNETES_SERVICE_PORT"));
        read(host, port, Path::new(SERVICE_ACCOUNT)).map_err(|reason| ConnectError::new(reason, LOOKED_AT))
    }
}

fn read(host: Option<String>, port: Option<String>, folder: &Path) -> Result<Config, String> {
    let (Some(host), Some(port)) = (host, port) else {
        return Err(
            "this is not a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set".into()
        );
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let url = if port == "443" { format!("https://{host}") } else { format!("https://{host}:{port}") };
    let server = Server::parse(&url, true)?;
    let (token, authority) = (folder.join("token"), folder.join("ca.crt"));
    for file in [&token, &authority] {
        fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    // A pod may have a token of a projected volume and no namespace.
    let namespace = fs::read_to_string(folder.join("namespace")).unwrap_or_default();
    let namespace = match namespace.trim() {
        "" => "default",
        namespace => namespace,
    };
    Ok(Config {
        tls: TlsSettings { trust: Trust::Authorities(Pem::File(authority)), ..TlsSettings::default() },
        credentials: CredentialSettings::TokenFile(token, None),
        default_namespace: namespace.to_owned(),
        ..Config::of(server)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_knows_its_server_its_namespace_and_its_token() {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in [("token", "t"), ("ca.crt", "c"), ("namespace", "shop\n")] {
            fs::write(folder.path().join(file), text).unwrap();
        }
        let config =
            |host: &str, port: &str| read(Some(host.into()), Some(port.into()), folder.path()).unwrap();
        let pod = config("10.0.0.1", "443");
        assert_eq!((pod.url().as_str(), pod.default_namespace()), ("https://10.0.0.1", "shop"));
        assert_eq!(pod.credentials, CredentialSettings::TokenFile(folder.path().join("token"), None));
        assert_eq!(config("10.0.0.1", "6443").url(), "https://10.0.0.1:6443");
        assert_eq!(config("fd00::1", "6443").url(), "https://[fd00::1]:6443");
        assert_eq!(config("fd00::1", "443").url(), "https://[fd00::1]");
        fs::remove_file(folder.path().join("namespace")).unwrap();
        assert_eq!(config("10.0.0.1", "443").default_namespace(), "default");
    }

    #[test]
    fn what_a_pod_has_and_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            read(None, Some("443".into()), folder.path()).unwrap_err().contains("KUBERNETES_SERVICE_HOST")
        );
        let error = read(Some("a".into()), Some("443".into()), folder.path()).unwrap_err();
        assert!(error.contains(&folder.path().join("token").display().to_string()), "{error}");
        fs::write(folder.path().join("token"), "t").unwrap();
        assert!(read(Some("a".into()), Some("443".into()), folder.path()).unwrap_err().contains("ca.crt"));
    }
}
