//! The way from a client to a server, which can be closed for that client alone.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use watchkeeper::Connection;
use watchkeeper_connection::Config;

/// Carries bytes between a port of its own and the server's. Ends with what it carries when it is dropped.
pub(crate) struct Road {
    address: SocketAddr,
    /// `None` while the road is closed: connections are closed as soon as they come.
    travellers: Arc<Mutex<Option<JoinSet<()>>>>,
    _gate: JoinSet<()>,
}

impl Road {
    /// To the server of this configuration.
    pub(crate) async fn to(config: &Config) -> Self {
        let target = config.url().trim_start_matches("https://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let travellers = Arc::new(Mutex::new(Some(JoinSet::new())));
        let open = Arc::clone(&travellers);
        let mut gate = JoinSet::new();
        gate.spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let target = target.clone();
                if let Some(travellers) = &mut *open.lock() {
                    travellers.spawn(async move {
                        if let Ok(mut far) = TcpStream::connect(target).await {
                            let _ = copy_bidirectional(&mut near, &mut far).await;
                        }
                    });
                }
            }
        });
        Self { address, travellers, _gate: gate }
    }

    /// A connection that goes this way.
    pub(crate) fn connection(&self, config: Config) -> Connection {
        Connection::new(config.at(&format!("https://{}", self.address)).unwrap()).unwrap()
    }

    /// Breaks all connections and lets none through.
    pub(crate) fn close(&self) {
        *self.travellers.lock() = None;
    }

    /// Lets connections through again.
    pub(crate) fn open(&self) {
        *self.travellers.lock() = Some(JoinSet::new());
    }
}
