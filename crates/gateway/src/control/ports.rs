use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use watchkeeper_front::{
    AccessMetrics, ClientAuth, Deadlines, Drained, Front, Limits, Listener as Socket, Tls,
};
use watchkeeper_supervision::Supervisor;

use crate::compile::{Condition, Report, listener_id, with_sockets};
use crate::kinds::ListenerProtocol;
use crate::object::{InputKind, ObjectId};
use crate::proxy::{Certificates, Gate, Shared};
use crate::table::{SocketSettings, Table};

/// How long requests may take to end on a listener that is gone or speaks something else. Streams that go on longer are cut.
const DRAIN: Duration = Duration::from_secs(300);

/// The sockets of a gateway.
pub(super) struct Ports {
    shared: Arc<Shared>,
    supervisor: Supervisor,
    open: HashMap<SocketAddr, Port>,
    /// Sockets of the process before this one, until listeners ask for them.
    inherited: Vec<Socket>,
    failed: BTreeMap<SocketAddr, String>,
    /// Fronts with limits that were changed: their connections stay until they end by themselves.
    retired: Vec<(SocketAddr, Front)>,
    /// Fronts that take no more connections and wait for their requests to end.
    draining: JoinSet<Drained>,
}

struct Port {
    /// The socket once more, so that another front can take its place without anybody being refused.
    socket: Socket,
    front: Front,
    settings: SocketSettings,
    metrics: AccessMetrics,
}

impl Ports {
    pub(super) fn new(shared: Arc<Shared>, supervisor: Supervisor, inherited: Vec<Socket>) -> Self {
        Self {
            shared,
            supervisor,
            open: HashMap::new(),
            inherited,
            failed: BTreeMap::new(),
            retired: Vec::new(),
            draining: JoinSet::new(),
        }
    }

    /// Whether nothing is left to be tried again.
    pub(super) fn is_settled(&self) -> bool {
        self.failed.is_empty()
    }

    /// Opens and closes sockets as the table says. Says whose sockets have changed.
    pub(super) fn follow(&mut self, table: &Table) -> Vec<ObjectId> {
        while self.draining.try_join_next().is_some() {}
        self.retired.retain(|(_, front)| !front.is_finished());
        let before = self.state();
        let gone: Vec<SocketAddr> =
            self.open.keys().filter(|address| table.port(address).is_empty()).copied().collect();
        for address in gone {
            if let Some(port) = self.open.remove(&address) {
                tracing::info!("closed {address}");
                self.draining.spawn(port.front.shutdown(DRAIN));
                self.drain_retired(address);
            }
        }
        self.failed.retain(|address, _| !table.port(address).is_empty());
        for (address, listeners) in table.ports() {
            let Some(first) = listeners.first() else { continue };
            let settings = first.socket;
            if self.open.get(address).is_some_and(|port| port.settings == settings) {
                continue;
            }
            match self.open_port(*address, settings) {
                Ok(port) => {
                    let (bound, protocol) = (port.socket.address(), settings.protocol);
                    self.failed.remove(address);
                    match self.open.insert(*address, port) {
                        // What is spoken is another: who is connected has to connect anew.
                        Some(before) if before.settings.protocol != protocol => {
                            self.draining.spawn(before.front.hand_over(DRAIN));
                            self.drain_retired(*address);
                        }
                        Some(mut before) => {
                            before.front.retire();
                            self.retired.push((*address, before.front));
                        }
                        None => tracing::info!("listening on {bound} ({protocol:?})"),
                    }
                }
                Err(reason) => {
                    if self.failed.insert(*address, reason.clone()).as_ref() != Some(&reason) {
                        tracing::error!("{reason}");
                    }
                }
            }
        }
        let after = self.state();
        let changed = table.ports().filter(|(address, _)| before.get(address) != after.get(address));
        let listeners = changed.flat_map(|(_, listeners)| listeners.iter());
        listeners.map(|listener| listener_id(listener)).collect()
    }

    /// Has the connections of before on an address end.
    fn drain_retired(&mut self, address: SocketAddr) {
        for (_, front) in self.retired.extract_if(.., |(retired, _)| *retired == address) {
            self.draining.spawn(front.shutdown(DRAIN));
        }
    }

    /// The socket of an address that the process before this one had.
    fn inherited(&mut self, address: SocketAddr) -> Option<Socket> {
        let name = socket_name(address);
        let is_it = |socket: &Socket| socket.name() == Some(&name) || socket.address() == address;
        let at = self.inherited.iter().position(is_it)?;
        Some(self.inherited.swap_remove(at))
    }

    fn open_port(&mut self, address: SocketAddr, settings: SocketSettings) -> Result<Port, String> {
        let said = |error: watchkeeper_front::Error| error.to_string();
        let (socket, metrics) = match self.open.get(&address) {
            Some(port) => (port.socket.try_clone().map_err(said)?, port.metrics.clone()),
            None => {
                let socket = match self.inherited(address) {
                    Some(socket) => socket,
                    None => Socket::bind(address).map_err(said)?,
                };
                (socket.named(socket_name(address)), AccessMetrics::default())
            }
        };
        let shared = &self.shared;
        let limits = match settings.connections {
            Some(connections) => Limits::of_connections(connections),
            None => Limits::default(),
        };
        // Clients of a gateway are strangers, most of them: all connections are for them.
        let limits = Limits {
            strangers: limits.connections,
            strangers_per_address: limits.connections,
            streams: settings.streams.unwrap_or(limits.streams),
            ..limits
        };
        let deadlines = Deadlines {
            first_request: settings.headers,
            stranger_idle: settings.idle,
            http1_idle: settings.idle,
            http2_idle: settings.idle,
            ..Deadlines::default()
        };
        let builder = Front::builder(Gate { address, shared: Arc::clone(shared) })
            .limits(limits)
            .deadlines(deadlines)
            .metrics(&metrics)
            .supervisor(self.supervisor.clone())
            .task(format!("listener {address}"));
        let builder = match settings.proxy_protocol {
            true => builder.proxy_protocol(proxies(address, Arc::clone(shared))),
            false => builder,
        };
        let listener = socket.try_clone().map_err(said)?;
        let builder = match settings.protocol {
            ListenerProtocol::HTTP => builder.http_and_h2c(listener),
            ListenerProtocol::HTTPS => {
                let certificates = Certificates { address, shared: Arc::clone(shared) };
                builder.https(listener, Tls::new(certificates, &ClientAuth::Off).map_err(said)?)
            }
        };
        Ok(Port { socket, front: builder.start().map_err(said)?, settings, metrics })
    }

    /// Where sockets are, by the address that listeners name, or why there is none.
    pub(super) fn state(&self) -> BTreeMap<SocketAddr, Result<SocketAddr, String>> {
        let open = self.open.iter().map(|(address, port)| (*address, Ok(port.socket.address())));
        open.chain(self.failed.iter().map(|(address, reason)| (*address, Err(reason.clone())))).collect()
    }

    /// The sockets once more, for a process that is to go on with them.
    pub(super) fn sockets(&self) -> Vec<Socket> {
        self.open.values().filter_map(|port| port.socket.try_clone().ok()).collect()
    }

    pub(super) fn metrics(&self) -> Vec<(SocketAddr, AccessMetrics)> {
        self.open.iter().map(|(address, port)| (*address, port.metrics.clone())).collect()
    }

    /// Ends: requests that run may end within this time.
    pub(super) async fn stop(&mut self, ending: Ending) -> Drained {
        let mut tasks = JoinSet::new();
        let retired = self.retired.drain(..).map(|(_, front)| front);
        for front in self.open.drain().map(|(_, port)| port.front).chain(retired) {
            tasks.spawn(async move {
                match ending {
                    Ending::Stop(grace) => front.shutdown(grace).await,
                    Ending::HandOver(grace) => front.hand_over(grace).await,
                }
            });
        }
        let mut drained = Drained::Clean;
        while let Some(ended) = tasks.join_next().await {
            if !matches!(ended, Ok(Drained::Clean)) {
                drained = Drained::CutOff;
            }
        }
        self.draining.abort_all();
        while self.draining.join_next().await.is_some() {}
        drained
    }
}

/// How a gateway ends, and how long requests may take for that.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// Who connects is refused.
    Stop(Duration),
    /// Another process has the sockets and accepts.
    HandOver(Duration),
}

/// What a process that inherits the socket of an address knows it by. Names have no colons.
fn socket_name(address: SocketAddr) -> String {
    format!("listener_{}", address.to_string().replace(':', "_"))
}

/// Who may say where clients are: the proxies that the listeners of an address trust, or everybody if they name none.
fn proxies(address: SocketAddr, shared: Arc<Shared>) -> impl Fn(IpAddr) -> bool {
    move |ip| {
        let table = shared.table();
        let listeners = table.port(&address);
        listeners.iter().all(|listener| listener.trusted.is_empty())
            || listeners.iter().any(|listener| listener.trusted.contain(ip))
    }
}

/// What became of a listener, with what became of its socket.
pub(super) fn with_socket(
    mut report: Report,
    table: &Table,
    ports: &BTreeMap<SocketAddr, Result<SocketAddr, String>>,
) -> Report {
    if report.id.kind == InputKind::Gateway {
        return with_sockets(report, table, ports);
    }
    if report.id.kind != InputKind::Listener || !report.programmed.is_true {
        return report;
    }
    let mut listeners = table
        .ports()
        .flat_map(|(address, listeners)| listeners.iter().map(move |listener| (address, &listener.key)));
    let address = listeners.find(|(_, key)| **key == report.id.key).map(|(address, _)| *address);
    if let Some(Err(reason)) = address.and_then(|address| ports.get(&address)) {
        report.programmed = Condition { is_true: false, reason: "AddressNotUsable", message: reason.clone() };
    }
    report
}
