use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;
use watchkeeper_apiserver::{ApiServer, Authorization, Clock};
use watchkeeper_storage::{self as storage, Memory, Storage};

use crate::TestEnv;
use crate::entrance::Entrance;
use crate::env::Behind;
use crate::loopback::Loopback;
use crate::real::{self, Real};
use crate::server::Server;
use crate::wall_clock::WallClock;

/// Options of a [`TestEnv`].
#[derive(Clone)]
#[must_use = "nothing happens before start"]
pub struct TestEnvBuilder {
    options: watchkeeper_apiserver::Options,
    storage: Option<Arc<dyn Storage>>,
    window: storage::Window,
    epoch: SystemTime,
    seed: Option<u64>,
    address: Option<SocketAddr>,
    listening: bool,
    /// What was chosen that a real server does not offer.
    embedded_only: Option<&'static str>,
}

impl Default for TestEnvBuilder {
    fn default() -> Self {
        let mut options = watchkeeper_apiserver::Options::default();
        // A test says who is denied what; making roles for everybody else is not what it is about.
        options.authorization = Authorization::None;
        Self {
            options,
            storage: None,
            window: storage::Window::default(),
            epoch: SystemTime::now(),
            seed: None,
            address: None,
            listening: false,
            embedded_only: None,
        }
    }
}

impl TestEnvBuilder {
    /// Sets the options of the server, except its clock, which is that of the environment.
    pub fn options(mut self, options: watchkeeper_apiserver::Options) -> Self {
        self.options = options;
        self.embedded_only = Some("options");
        self
    }

    /// Checks requests against roles and bindings, as a cluster does: [`connection_as`](TestEnv::connection_as) may then do what
    /// they allow. Without this, everybody may do everything.
    pub fn with_roles(mut self) -> Self {
        self.options.authorization = Authorization::Rbac;
        self
    }

    /// Sets the storage. Default: a new one in memory.
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self.embedded_only = Some("a storage");
        self
    }

    /// Sets how much of the past watches and pages can go back to. Without effect on a [`storage`](Self::storage) that is given.
    pub fn window(mut self, window: storage::Window) -> Self {
        self.window = window;
        self.embedded_only = Some("a window");
        self
    }

    /// Sets the time in objects at the start of the environment. From then on it goes as tokio's does.
    pub fn epoch(mut self, epoch: SystemTime) -> Self {
        self.epoch = epoch;
        self.embedded_only = Some("an epoch");
        self
    }

    /// Seeds the uids and names that the server generates on the thread that starts the environment. With a runtime of
    /// one thread, that is all of it.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self.embedded_only = Some("a seed");
        self
    }

    /// Sets the address at which the server says that it is, in `GET /api` and in the endpoints of the Service `default/kubernetes`.
    pub fn advertised(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self.embedded_only = Some("an address");
        self
    }

    /// Also listens on a port of this machine, for processes other than the test. Not for paused clocks: those do not wait
    /// for sockets.
    pub fn listening(mut self) -> Self {
        self.listening = true;
        self
    }

    /// Starts the environment.
    ///
    /// # Panics
    ///
    /// If the server does not start, or is a [real one](crate#a-real-server) and cannot be as it was chosen.
    pub async fn start(self) -> TestEnv {
        let wall_clock = WallClock::starting_at(self.epoch);
        let listening = self.listening;
        let (server, behind) = match real::servers() {
            Some(servers) => self.real(servers).await,
            None => self.embedded(&wall_clock).await,
        };
        let entrance = Arc::new(Entrance::new(server));
        let loopback = match listening {
            true => match Loopback::start(&entrance).await {
                Ok(loopback) => Some(loopback),
                Err(error) => panic!("the server does not listen: {error}"),
            },
            false => None,
        };
        TestEnv::new(entrance, behind, wall_clock, loopback)
    }

    async fn real(self, servers: PathBuf) -> (Server, Behind) {
        if let Some(choice) = self.embedded_only {
            panic!("a real server does not let tests choose {choice}");
        }
        let roles = matches!(self.options.authorization, Authorization::Rbac);
        match Real::claim(servers, roles).await {
            Ok(server) => {
                let server = Arc::new(server);
                (Server::Real(Arc::clone(&server)), Behind::Real(server))
            }
            Err(error) => panic!("{error}"),
        }
    }

    async fn embedded(self, wall_clock: &WallClock) -> (Server, Behind) {
        if let Some(seed) = self.seed {
            fastrand::seed(seed);
        }
        let mut options = self.options;
        options.clock = {
            let wall_clock = wall_clock.clone();
            Clock::new(move || wall_clock.now())
        };
        let window = self.window;
        let storage = self.storage.unwrap_or_else(|| {
            let start = Instant::now();
            let clock = storage::Clock::new(move || start.elapsed());
            Arc::new(Memory::new(storage::Options { clock, window, ..storage::Options::default() }))
        });
        let address = self.address;
        match started(&storage, &options, address).await {
            Ok(server) => (server, Behind::Embedded { storage, options: Box::new(options), address }),
            Err(error) => panic!("the server did not start: {error}"),
        }
    }
}

/// Starts a server over a storage, which says that it is at an address.
pub(crate) async fn started(
    storage: &Arc<dyn Storage>,
    options: &watchkeeper_apiserver::Options,
    address: Option<SocketAddr>,
) -> Result<Server, watchkeeper_apiserver::Error> {
    let server = ApiServer::start(Arc::clone(storage), options.clone()).await?;
    if address.is_some() {
        server.advertise(address).await?;
    }
    Ok(Server::Embedded(Arc::new(server)))
}
