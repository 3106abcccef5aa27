use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

use crate::Error;

/// How many connections wait until they are accepted.
const BACKLOG: i32 = 4096;

/// A TCP socket that listens.
///
/// It was bound by this process, or by another one from which it was inherited. As long as any process has it, clients can
/// connect and wait to be accepted: so a server can be replaced without one of them being refused.
pub struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) name: Option<String>,
}

impl Listener {
    /// Binds an address. Port 0 lets the system choose one.
    pub fn bind(address: SocketAddr) -> Result<Self, Error> {
        let bound = || {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            let socket = TcpListener::from(socket);
            socket.local_addr().map(|address| Self { socket, address, name: None })
        };
        bound().map_err(|error: io::Error| Error::Listen { address, reason: error.to_string() })
    }

    /// A socket that was bound elsewhere in this process.
    pub fn from_std(socket: TcpListener) -> io::Result<Self> {
        let address = socket.local_addr()?;
        Ok(Self { socket, address, name: None })
    }

    /// Names the socket, so that a process that inherits it knows its purpose.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same with this name if it has none.
    pub(crate) fn or_named(mut self, name: &str) -> Self {
        self.name.get_or_insert_with(|| name.to_owned());
        self
    }

    /// The name of the socket, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The address of the socket, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Clones the handle of the socket, which listens until both handles are dropped.
    pub fn try_clone(&self) -> Result<Self, Error> {
        let (address, name) = (self.address, self.name.clone());
        let socket = self.socket.try_clone();
        let socket = socket.map_err(|error| Error::Listen { address, reason: error.to_string() })?;
        Ok(Self { socket, address, name })
    }

    /// The socket, for the runtime that this is called in.
    pub(crate) fn into_socket(self) -> Result<tokio::net::TcpListener, Error> {
        let Self { socket, address, .. } = self;
        let ready = socket.set_nonblocking(true).and_then(|()| tokio::net::TcpListener::from_std(socket));
        ready.map_err(|error| Error::Listen { address, reason: error.to_string() })
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("address", &self.address).field("name", &self.name).finish()
    }
}
