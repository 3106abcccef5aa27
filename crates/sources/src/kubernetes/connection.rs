use std::fmt;
use std::path::Path;

use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};

/// A connection to the API server of a Kubernetes cluster: where it is, and who asks.
///
/// A handle, cheap to clone; clones share their TCP connections. Nothing is sent before something is asked for.
///
/// Requests are not repeated by the connection itself. Whoever reads or writes over it sees the first answer, also one that
/// asks to wait, and a write that was not answered is not sent twice unseen.
///
/// ```no_run
/// use watchkeeper_sources::kubernetes::{ConnectError, Connection};
/// # async fn example() -> Result<(), ConnectError> {
/// let here = Connection::infer().await?;
/// let staging = Connection::from_kubeconfig("/etc/staging/kubeconfig", Some("admin")).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Connection {
    client: Client,
}

/// Why there is no connection: no cluster is configured, or not one that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot find out which cluster to talk to: {reason}; looked at {looked_at}")]
pub struct ConnectError {
    reason: String,
    looked_at: String,
}

/// Where [`Connection::infer`] looks.
const USUAL_PLACES: &str = "$KUBECONFIG, ~/.kube/config and the service account of a pod";

impl Connection {
    /// The cluster that the environment names, as kubectl finds it: `$KUBECONFIG`, `~/.kube/config`, or else that of the pod that
    /// this process runs in.
    pub async fn infer() -> Result<Self, ConnectError> {
        let failed = |error: &dyn fmt::Display| ConnectError::new(error, USUAL_PLACES);
        let config = Config::infer().await.map_err(|error| failed(&error))?;
        client(config).map(Self::from).map_err(|error| failed(&error))
    }

    /// The cluster of a context in `$KUBECONFIG` or `~/.kube/config`.
    pub async fn from_context(context: &str) -> Result<Self, ConnectError> {
        let looked_at = "$KUBECONFIG and ~/.kube/config";
        let kubeconfig = Kubeconfig::read().map_err(|error| ConnectError::new(&error, looked_at))?;
        Self::of(kubeconfig, Some(context), looked_at).await
    }

    /// The cluster of a context in a kubeconfig file; without a context, of its current one.
    pub async fn from_kubeconfig(
        file: impl AsRef<Path>,
        context: Option<&str>,
    ) -> Result<Self, ConnectError> {
        let looked_at = file.as_ref().display().to_string();
        let kubeconfig =
            Kubeconfig::read_from(file).map_err(|error| ConnectError::new(&error, &looked_at))?;
        Self::of(kubeconfig, context, &looked_at).await
    }

    /// The cluster of the pod that this process runs in, as the pod's service account.
    pub fn in_cluster() -> Result<Self, ConnectError> {
        let looked_at = "the service account of a pod";
        let config = Config::incluster().map_err(|error| ConnectError::new(&error, looked_at))?;
        client(config).map(Self::from).map_err(|error| ConnectError::new(&error, looked_at))
    }

    async fn of(
        kubeconfig: Kubeconfig,
        context: Option<&str>,
        looked_at: &str,
    ) -> Result<Self, ConnectError> {
        let options =
            KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .map_err(|error| ConnectError::new(&error, looked_at))?;
        client(config).map(Self::from).map_err(|error| ConnectError::new(&error, looked_at))
    }

    /// The namespace of the context, or of the pod; `default` if there is none.
    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// What requests go through. No part of the stable API.
    #[doc(hidden)]
    pub fn transport(&self) -> &Client {
        &self.client
    }
}

impl ConnectError {
    fn new(reason: &dyn fmt::Display, looked_at: &str) -> Self {
        Self { reason: reason.to_string(), looked_at: looked_at.to_owned() }
    }
}

/// For programs that have a client of the `kube` crate already. No part of the stable API: another version of that crate is
/// another type.
#[doc(hidden)]
impl From<Client> for Connection {
    fn from(client: Client) -> Self {
        Self { client }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("default_namespace", &self.default_namespace())
            .finish_non_exhaustive()
    }
}

/// A client of the `kube` crate that does not repeat requests by itself. No part of the stable API.
///
/// The client that kube makes by default repeats a request up to fifteen times when the server says 429, 503 or 504, within one
/// call, and tells nobody. A feed over such a client works, but what the server says about its load does not come through:
/// throttling shows as [`Unavailable`](watchkeeper_core::Error::Unavailable) after a minute without an answer, and the reader's
/// own back-off comes on top.
#[doc(hidden)]
pub fn client(mut config: Config) -> Result<Client, kube_client::Error> {
    config.default_retry = false;
    Client::try_from(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const KUBECONFIG: &str = r"
apiVersion: v1
kind: Config
current-context: here
clusters:
- {name: c, cluster: {server: 'http://127.0.0.1:1'}}
users:
- {name: u, user: {token: secret}}
contexts:
- {name: here, context: {cluster: c, user: u}}
- {name: shop, context: {cluster: c, user: u, namespace: shop}}
";

    #[tokio::test]
    async fn a_context_of_a_kubeconfig_says_where_the_cluster_is_and_which_namespace_is_meant() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(KUBECONFIG.as_bytes()).unwrap();
        let current = Connection::from_kubeconfig(file.path(), None).await.unwrap();
        assert_eq!(current.default_namespace(), "default");
        let shop = Connection::from_kubeconfig(file.path(), Some("shop")).await.unwrap();
        assert_eq!(shop.default_namespace(), "shop");
        assert_eq!(format!("{shop:?}"), r#"Connection { default_namespace: "shop", .. }"#);
    }

    #[tokio::test]
    async fn what_is_missing_is_named_with_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(KUBECONFIG.as_bytes()).unwrap();
        let path = file.path().display().to_string();
        let error = Connection::from_kubeconfig(file.path(), Some("bank")).await.unwrap_err().to_string();
        assert!(error.contains("bank") && error.contains(&path), "{error}");
        let nowhere = format!("{path}-nowhere");
        let error = Connection::from_kubeconfig(&nowhere, None).await.unwrap_err().to_string();
        assert!(error.contains(&nowhere), "{error}");
    }
}
