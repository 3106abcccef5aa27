use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// Stands between a client and a server, and does what networks do.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    mode: watch::Sender<Mode>,
    /// Held once by every connection, and once here.
    open: Arc<()>,
    task: AbortHandle,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mode {
    /// Connections of earlier ones are closed.
    epoch: u64,
    /// New connections are closed at once.
    refusing: bool,
    /// What the server says is not passed on.
    mute: bool,
}

impl Proxy {
    /// A proxy in front of a port of the loopback address.
    ///
    /// # Errors
    ///
    /// If there is no port left.
    pub async fn to(port: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mode = watch::Sender::new(Mode::default());
        let open = Arc::new(());
        let task =
            tokio::spawn(accept(listener, port, mode.subscribe(), Arc::downgrade(&open))).abort_handle();
        Ok(Self { address, mode, open, task })
    }

    /// Where it listens.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        Arc::strong_count(&self.open) - 1
    }

    /// Closes all connections. New ones are possible.
    pub fn cut(&self) {
        self.mode.send_modify(|mode| mode.epoch += 1);
    }

    /// Closes all connections, and takes no more until it is told to.
    pub fn refuse(&self, refusing: bool) {
        self.mode.send_modify(|mode| {
            mode.refusing = refusing;
            mode.epoch += u64::from(refusing);
        });
    }

    /// Holds back what the server says; what clients say still arrives.
    pub fn mute(&self, mute: bool) {
        self.mode.send_modify(|mode| mode.mute = mute);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, port: u16, mode: watch::Receiver<Mode>, open: Weak<()>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        if !mode.borrow().refusing {
            let (relayed, open) = (relay(client, port, mode.clone()), open.upgrade());
            connections.spawn(async move {
                relayed.await;
                drop(open);
            });
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn relay(client: TcpStream, port: u16, mut mode: watch::Receiver<Mode>) {
    let epoch = mode.borrow().epoch;
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let answers = mode.clone();
    tokio::select! {
        () = pass(from_client, to_server, None) => {}
        () = pass(from_server, to_client, Some(answers)) => {}
        // All is dropped, and so closed.
        _ = mode.wait_for(|mode| mode.epoch != epoch) => {}
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut mode: Option<watch::Receiver<Mode>>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let Ok(length @ 1..) = from.read(&mut buffer).await else { return };
        if let Some(mode) = &mut mode
            && mode.wait_for(|mode| !mode.mute).await.is_err()
        {
            return;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
