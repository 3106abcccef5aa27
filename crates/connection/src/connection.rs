use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use watchkeeper_wire::Status;

use crate::link::Link;
use crate::{Body, Config, ConnectError, Error, Kubeconfig, KubeconfigError, RequestError, Transport};

/// How large an answer may be that is read at once.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// Where [`Connection::infer`] looks.
const USUAL_PLACES: &str = "$KUBECONFIG, ~/.kube/config and the service account of a pod";

/// A connection to the API server of a Kubernetes cluster: where it is, and who asks.
///
/// A handle, cheap to clone; clones share their TCP connections. Nothing is sent before something is asked for, and credential
/// plugins are not run before.
///
/// Requests are not repeated by the connection itself. Whoever reads or writes over it sees the first answer, also one that
/// asks to wait, and a write that was not answered is not sent twice unseen.
///
/// ```no_run
/// use watchkeeper_connection::{ConnectError, Connection};
/// # async fn example() -> Result<(), ConnectError> {
/// let here = Connection::infer().await?;
/// let staging = Connection::from_kubeconfig("/etc/staging/kubeconfig", Some("admin")).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Connection {
    transport: Arc<dyn Transport>,
    default_namespace: Arc<str>,
    locality: Locality,
}

/// The place of an API server, as seen from here; and so, whether it can come back by itself, as it does to webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Locality {
    /// The API server is in this process, or behind something that this process made.
    Process,
    /// The API server is on this machine, judged by its loopback address. It may also be the near end of a tunnel, or of a cluster in containers.
    Machine,
    /// This process runs in a pod of its cluster.
    Pod,
    /// The API server is anywhere else.
    Elsewhere,
}

impl Connection {
    /// The cluster that the environment names, as kubectl finds it: `$KUBECONFIG`, `~/.kube/config`, or else that of the pod that
    /// this process runs in.
    ///
    /// # Errors
    ///
    /// If none of them names a cluster, or a file that is there cannot be used.
    pub async fn infer() -> Result<Self, ConnectError> {
        let failed = |error: KubeconfigError| ConnectError::new(error, USUAL_PLACES);
        match Kubeconfig::from_environment().map_err(failed)?.filter(|kubeconfig| !kubeconfig.is_empty()) {
            Some(kubeconfig) => {
                let config = Config::from_kubeconfig(&kubeconfig, None).map_err(failed)?;
                Self::open(config, USUAL_PLACES)
            }
            None if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => Self::in_cluster(),
            None => Err(ConnectError::new("there is no kubeconfig, and this is not a pod", USUAL_PLACES)),
        }
    }

    /// The cluster of a context in `$KUBECONFIG` or `~/.kube/config`.
    ///
    /// # Errors
    ///
    /// If there is no such context, or it cannot be used.
    pub async fn from_context(context: &str) -> Result<Self, ConnectError> {
        let looked_at = "$KUBECONFIG and ~/.kube/config";
        let failed = |error: KubeconfigError| ConnectError::new(error, looked_at);
        let kubeconfig = Kubeconfig::from_environment().map_err(failed)?;
        let kubeconfig = kubeconfig.ok_or_else(|| ConnectError::new("there is no kubeconfig", looked_at))?;
        Self::open(Config::from_kubeconfig(&kubeconfig, Some(context)).map_err(failed)?, looked_at)
    }

    /// The cluster of a context in a kubeconfig file; without a context, of its current one.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or there is no such context, or it cannot be used.
    pub async fn from_kubeconfig(
        file: impl AsRef<Path>,
        context: Option<&str>,
    ) -> Result<Self, ConnectError> {
        let looked_at = file.as_ref().display().to_string();
        let failed = |error: KubeconfigError| ConnectError::new(error, &looked_at);
        let kubeconfig = Kubeconfig::read(file.as_ref()).map_err(failed)?;
        Self::open(Config::from_kubeconfig(&kubeconfig, context).map_err(failed)?, &looked_at)
    }

    /// The cluster of the pod that this process runs in, as the pod's service account.
    ///
    /// # Errors
    ///
    /// If this is not a pod, or its service account has no token.
    pub fn in_cluster() -> Result<Self, ConnectError> {
        let connection = Self::open(Config::in_cluster()?, "the service account of a pod")?;
        Ok(Self { locality: Locality::Pod, ..connection })
    }

    /// The cluster that a [`Config`] describes. The files that it names are read.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or does not hold what it should.
    pub fn new(config: Config) -> Result<Self, ConnectError> {
        let url = config.url();
        Self::open(config, &url)
    }

    fn open(config: Config, looked_at: &str) -> Result<Self, ConnectError> {
        let default_namespace = config.default_namespace.as_str().into();
        let locality = if config.server.is_loopback() { Locality::Machine } else { Locality::Elsewhere };
        let link = Link::new(config).map_err(|reason| ConnectError::new(reason, looked_at))?;
        Ok(Self { transport: Arc::new(link), default_namespace, locality })
    }

    /// A connection that goes another way than over a socket: for tests, mostly.
    pub fn over(transport: impl Transport, default_namespace: &str) -> Self {
        let (transport, default_namespace) = (Arc::new(transport), default_namespace.into());
        Self { transport, default_namespace, locality: Locality::Process }
    }

    /// A connection whose requests go through this, with the namespace of this one. To put something in front of a
    /// connection, see [`Transport`].
    #[must_use]
    pub fn with_transport(&self, transport: impl Transport) -> Self {
        Self { transport: Arc::new(transport), ..self.clone() }
    }

    /// The place of the API server.
    pub fn locality(&self) -> Locality {
        self.locality
    }

    /// The namespace of the context, or of the pod; `default` if there is none.
    pub fn default_namespace(&self) -> &str {
        &self.default_namespace
    }

    /// Sends a request and waits for the head of its answer, whatever the answer is. The URI is a path with its query.
    ///
    /// # Errors
    ///
    /// If there is no answer.
    pub async fn send(&self, request: Request<impl Into<Bytes>>) -> Result<Response<Body>, Error> {
        self.transport.send(request.map(Into::into)).await
    }

    /// Sends a request and reads its answer to the end, 256 MiB at most.
    ///
    /// # Errors
    ///
    /// If there is no answer, or one that does not say success.
    pub async fn request(&self, request: Request<impl Into<Bytes>>) -> Result<Bytes, RequestError> {
        let (parts, body) = self.send(request).await?.into_parts();
        let body = match Limited::new(body, MAX_ANSWER).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(RequestError::TooLarge(MAX_ANSWER)),
            Err(error) => {
                return Err(error.downcast::<Error>().map_or_else(Error::Broken, |error| *error).into());
            }
        };
        if parts.status.is_success() {
            return Ok(body);
        }
        let retry_after =
            parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let status = Status::read(&body).with_code(parts.status.as_u16()).with_retry_after(retry_after);
        Err(RequestError::Refused(status))
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("default_namespace", &self.default_namespace())
            .finish_non_exhaustive()
    }
}
