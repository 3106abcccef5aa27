use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use watchkeeper_apiserver::Clock;
use watchkeeper_apiserver::front::{
    ClientCertificates, Credentials, Error, Front, Identity, Kubeconfig, Limits, Options, Tokens,
};

use crate::entrance::{Entrance, Listening};

/// How long requests may take to end when the server goes away.
const PATIENCE: Duration = Duration::from_millis(50);

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
        let front = listen(any, &credentials, entrance).await.map_err(|error| error.to_string())?;
        let address = front.https_address();
        let kubeconfig = directory.path().join("kubeconfig");
        let config = Kubeconfig::new(&format!("https://{address}"), &credentials);
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
            front.shutdown(PATIENCE).await;
        }
    }

    /// Listens where it did before.
    pub(crate) async fn resume(&mut self, entrance: &Arc<Entrance>) -> Result<(), String> {
        if self.front.is_none() {
            let front = listen(self.address, &self.credentials, entrance).await;
            self.front = Some(front.map_err(|error| error.to_string())?);
        }
        Ok(())
    }
}

async fn listen(
    address: SocketAddr,
    credentials: &Credentials,
    entrance: &Arc<Entrance>,
) -> Result<Front, Error> {
    let mut tokens = Tokens::new();
    tokens.add(credentials.admin_token(), Identity::admin());
    let options = Options {
        https: address,
        http: None,
        names: Vec::new(),
        authenticators: vec![Box::new(ClientCertificates), Box::new(tokens)],
        limits: Limits::default(),
        clock: Clock::default(),
    };
    Front::start(options, credentials, Arc::new(Listening(Arc::clone(entrance)))).await
}
