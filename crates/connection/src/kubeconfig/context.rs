use super::fields::Fields;
use super::user::User;
use super::{Kubeconfig, KubeconfigError};
use crate::Config;
use crate::proxy::Proxy;
use crate::server::Server;
use crate::tls::{TlsSettings, Trust};

/// A cluster, a user and a namespace.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Context {
    cluster: Option<String>,
    user: Option<String>,
    namespace: Option<String>,
}

impl Context {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, String> {
        Ok(Self {
            cluster: fields.text("cluster")?,
            user: fields.text("user")?,
            namespace: fields.text("namespace")?,
        })
    }
}

impl Config {
    /// The cluster of a context of a kubeconfig; without a name, of its current one.
    ///
    /// # Errors
    ///
    /// If there is no such context, or it does not say how to reach a server. Tokens and certificates in files are read when the
    /// connection is made.
    pub fn from_kubeconfig(kubeconfig: &Kubeconfig, context: Option<&str>) -> Result<Self, KubeconfigError> {
        kubeconfig.config(context)
    }
}

impl Kubeconfig {
    fn config(&self, context: Option<&str>) -> Result<Config, KubeconfigError> {
        let contexts = || self.contexts().map(str::to_owned).collect();
        let name = context.or(self.current_context.as_deref());
        let name = name.ok_or_else(|| KubeconfigError::NoCurrentContext { contexts: contexts() })?;
        let context = self.contexts.get(name);
        let context = context
            .ok_or_else(|| KubeconfigError::NoContext { name: name.to_owned(), contexts: contexts() })?;
        self.of(name, context).map_err(KubeconfigError::Unusable)
    }

    fn of(&self, name: &str, context: &Context) -> Result<Config, String> {
        let Context { cluster, user, namespace } = context;
        let cluster_name = cluster.as_deref().ok_or_else(|| format!("context {name:?} names no cluster"))?;
        let cluster = self.clusters.get(cluster_name).ok_or_else(|| {
            format!("context {name:?} names the cluster {cluster_name:?}, which is not in the kubeconfig")
        })?;
        let url =
            cluster.server.as_deref().ok_or_else(|| format!("cluster {cluster_name:?} has no server"))?;
        // As in kubectl, a user that is not there is nobody.
        let nobody = User::default();
        let user_name = user.as_deref().unwrap_or_default();
        let user = self.users.get(user_name).unwrap_or(&nobody);
        let tls = TlsSettings {
            trust: cluster.trust(cluster_name)?,
            identity: user.identity(user_name)?,
            server_name: cluster.server_name.clone(),
        };
        let server = Server::parse(url, tls.trust != Trust::System || tls.identity.is_some())?;
        let mut config = Config::of(server);
        // As in kubectl, secrets are not sent without TLS.
        let credentials = user.credentials(user_name, cluster)?;
        if config.server.is_tls {
            config.credentials = credentials;
        }
        config.tls = tls;
        config.proxy = cluster.proxy.as_deref().map(Proxy::parse).transpose()?;
        config.impersonation = user.impersonation(user_name)?;
        if let Some(namespace) = namespace {
            config.default_namespace = namespace.clone();
        }
        Ok(config)
    }
}
