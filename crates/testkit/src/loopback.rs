use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use watchkeeper_apiserver::Clock;
use watchkeeper_apiserver::authentication::{
    self, ClientCertificates, Credentials, Error, Identity, Kubeconfig, Options, Tokens,
};
use watchkeeper_apiserver::front::{Front, Limits, Listener};

use crate::entrance::{Entrance, Listening};

/// How long requests may take to end when the server goes away.
const TIMEOUT: Duration = Duration::from_millis(50);

/// The server on a socket of this machine, for processes other than the test.
pub(crate) struct Loopback {
    front: Option<Front>,
    credentials: Credentials,
    address: SocketAddr,
    kubeconfig: PathBuf,
    _directory: TempDir,
}

impl Loopback {
    pub(crate) async fn start(entrance: &Arc<Entrance>) -> Result<Self, String> {
        let directory = TempDir::new().map_err(|error| error.to_string())?;
        let credentials = Credentials::load_or_create(None).map_err(|error| error.to_string())?;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::bind(any).map_err(|error| error.to_string())?;
        let address = listener.address();
        let front = listen(listener, &credentials, entrance).map_err(|error| error.to_string())?;
        let kubeconfig = directory.path().join("kubeconfig");
        let config = Kubeconfig::new(&format!("https://{address}"), &credentials);
        let config = config.map_err(|error| error.to_string())?;
        config.write(&kubeconfig).map_err(|error| error.to_string())?;
        Ok(Self { front: Some(front), credentials, address, kubeconfig, _directory: directory })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Takes no more connections, and ends those that there are.
    pub(crate) async fn stop(&mut self) {
        if let Some(front) = self.front.take() {
            front.shutdown(TIMEOUT).await;
        }
    }

    /// Listens where it did before.
    pub(crate) async fn resume(&mut self, entrance: &Arc<Entrance>) -> Result<(), String> {
        if self.front.is_none() {
            let listener = Listener::bind(self.address).map_err(|error| error.to_string())?;
            let front = listen(listener, &self.credentials, entrance);
            self.front = Some(front.map_err(|error| error.to_string())?);
        }
        Ok(())
    }
}

fn listen(listener: Listener, credentials: &Credentials, entrance: &Arc<Entrance>) -> Result<Front, Error> {
    let mut tokens = Tokens::new();
    tokens.add(credentials.admin_token(), Identity::admin());
    let tls = credentials.tls(&listener, &[])?;
    let options = Options {
        https: (listener, tls),
        http: None,
        authenticators: vec![Box::new(ClientCertificates), Box::new(tokens)],
        limits: Limits::default(),
        clock: Clock::default(),
        anonymous: true,
    };
    authentication::listen(options, Listening(Arc::clone(entrance)))
}
