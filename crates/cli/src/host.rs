use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use tokio::runtime::{self, Runtime};
use watchkeeper_apiserver::authentication::{
    ClientCertificates, Credentials, Error, Options, Tokens, check_plain_http, listen,
};
use watchkeeper_apiserver::front::{Front, Limits, Listener};
use watchkeeper_apiserver::{AccountTokens, ApiServer, Options as ServerOptions};
use watchkeeper_storage::Storage;

use crate::failure::Failure;
use crate::monitor::Part;

/// What a server is made of before it listens.
pub(crate) struct Plan {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) credentials: Credentials,
    /// Tokens that are accepted besides that of the administrator.
    pub(crate) tokens: Tokens,
    pub(crate) accounts: AccountTokens,
    pub(crate) options: ServerOptions,
    pub(crate) https: Socket,
    pub(crate) http: Option<Socket>,
    /// How many connections there may be.
    pub(crate) limits: Limits,
    /// More names that clients use for this server.
    pub(crate) names: Vec<String>,
    /// The address in the endpoints of the Service default/kubernetes, if it is not that of `https`.
    pub(crate) advertised: Option<IpAddr>,
}

/// Where a server listens.
pub(crate) enum Socket {
    /// On this address.
    Address(SocketAddr),
    /// On a socket that somebody else has bound.
    Inherited(Listener),
}

impl Socket {
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Address(address) => *address,
            Self::Inherited(listener) => listener.address(),
        }
    }

    fn listener(self) -> Result<Listener, Error> {
        match self {
            Self::Address(address) => Ok(Listener::bind(address)?),
            Self::Inherited(listener) => Ok(listener),
        }
    }
}

/// An API server that listens.
pub(crate) struct Host {
    pub(crate) server: Arc<ApiServer>,
    pub(crate) front: Front,
    pub(crate) credentials: Credentials,
    /// How a client on this machine reaches it.
    pub(crate) url: String,
}

/// How many tasks a thread of the server runs before it looks again for requests that have come in. The default of tokio is 61:
/// while large answers are sent, requests that have just come in would wait for all of these.
const TASKS_BETWEEN_LOOKS: u32 = 8;

/// The threads that a server runs on.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let mut builder = runtime::Builder::new_multi_thread();
    builder.enable_all().event_interval(TASKS_BETWEEN_LOOKS).build().map_err(Failure::running)
}

impl Host {
    /// Starts the server, and has it listen.
    pub(crate) async fn start(plan: Plan) -> Result<Self, Failure> {
        watchkeeper_memory::start_trimming().map_err(Failure::running)?;
        let Plan { storage, credentials, mut tokens, accounts, mut options, .. } = plan;
        let Plan { https, http, limits, names, advertised, .. } = plan;
        tokens.add(credentials.admin_token(), credentials.admin());
        let tokens = Arc::new(tokens);
        options.certificate_authority = Some(credentials.authority_certificate());
        options.account_tokens = Some(accounts);
        options.tokens = Some(Arc::clone(&tokens));
        let clock = options.clock.clone();
        let server = Arc::new(ApiServer::start(storage, options).await.map_err(Failure::running)?);
        let accounts = server.account_authenticator();
        http.as_ref().map_or(Ok(()), |http| check_plain_http(http.address())).map_err(failure)?;
        let https = https.listener().map_err(failure)?;
        let tls = credentials.tls(&https, &names).map_err(failure)?;
        let listening = https.address();
        let options = Options {
            https: (https, tls),
            http: http.map(Socket::listener).transpose().map_err(failure)?,
            authenticators: vec![Box::new(ClientCertificates), Box::new(tokens), Box::new(accounts)],
            limits,
            clock,
            anonymous: true,
        };
        let front = listen(options, Arc::clone(&server)).map_err(failure)?;
        server.show_access(front.metrics());
        let advertised = advertised.unwrap_or_else(|| own_address(listening.ip()));
        let advertised = SocketAddr::new(advertised, listening.port());
        server.advertise(Some(advertised)).await.map_err(Failure::running)?;
        let url = format!("https://{}", reachable(listening));
        Ok(Self { server, front, credentials, url })
    }
}

/// What can be seen of a server, without credentials.
pub(crate) fn part(server: &Arc<ApiServer>) -> Part {
    let (counted, asked) = (Arc::clone(server), Arc::clone(server));
    Part {
        name: "watchkeeper-apiserver".to_owned(),
        metrics: Box::new(move || counted.metrics()),
        ready: Box::new(move || asked.readiness()),
    }
}

/// Whether the front failed at what it was given, or at the world.
fn failure(error: Error) -> Failure {
    match error {
        Error::NotLoopback { .. } | Error::Name { .. } => Failure::input(error),
        _ => Failure::running(error),
    }
}

/// The address by which others find a server that listens on this one: of a server on all addresses or on the loopback address, that of the host
/// on its way to others, as kube-apiserver takes it. Without such a way, there is none but the one given.
pub(crate) fn own_address(listening: IpAddr) -> IpAddr {
    if !listening.is_unspecified() && !listening.is_loopback() {
        return listening;
    }
    // Nothing is sent: connecting a datagram socket only chooses the way. The address is one for documentation.
    let (any, elsewhere): (SocketAddr, SocketAddr) = match listening {
        IpAddr::V4(_) => ((Ipv4Addr::UNSPECIFIED, 0).into(), (Ipv4Addr::new(192, 0, 2, 1), 9).into()),
        IpAddr::V6(_) => {
            let documentation = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
            ((Ipv6Addr::UNSPECIFIED, 0).into(), (documentation, 9).into())
        }
    };
    let way = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(elsewhere)?;
        socket.local_addr()
    });
    way.map_or(listening, |found| found.ip())
}

/// How a client on this machine reaches a listener: one on all addresses has no address of its own.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}
