//! The gateway of `up`: its kinds, an example route, and the gateway itself.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use watchkeeper::client::Client;
use watchkeeper::prelude::{Connection, Manager};
use watchkeeper_gateway::kinds::{
    GatewayBackend, GatewayListener, GatewayListenerSpec, GatewayPolicy, GatewayRoute, GatewayRouteSpec,
};
use watchkeeper_gateway::{From, Gateway, Options};

use crate::failure::Failure;
use crate::gateway::part;
use crate::monitor::Part;

/// Where it listens, if nobody else is there.
const PORT: u16 = 8080;
/// How long it may take until it serves. After that, it says so when it does.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often to look whether the kinds are there.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How long requests may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// Adds the kinds of the gateway to a manager.
fn kinds(manager: Manager) -> Manager {
    manager
        .install::<GatewayListener>()
        .install::<GatewayRoute>()
        .install::<GatewayBackend>()
        .install::<GatewayPolicy>()
}

/// A gateway that runs, with what brought its kinds.
pub(super) struct Running {
    gateway: Gateway,
    kinds: watchkeeper::runtime::Running,
    said: String,
}

/// Brings the kinds, puts an example there if there is nothing, and starts.
pub(super) async fn start(manager: Manager, connection: Connection) -> Result<Running, Failure> {
    let installed = kinds(manager).start().await.map_err(Failure::running)?;
    let begin = Instant::now();
    while let Some((check, why)) = installed.not_ready().first() {
        if begin.elapsed() > READY_TIMEOUT {
            return Err(Failure::running(format!(
                "the gateway is not ready after {READY_TIMEOUT:?}: {check}: {why}"
            )));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    example(&Client::new(connection.clone())).await?;
    let from = vec![From::Kubernetes(connection)];
    let gateway = Gateway::start(Options { from, ..Options::default() }).map_err(Failure::running)?;
    let mut handle = gateway.handle().clone();
    let ready = tokio::time::timeout(READY_TIMEOUT, handle.ready()).await;
    let said = match (ready, handle.ports().into_values().find_map(Result::ok)) {
        (Ok(()), Some(address)) => {
            format!("http://{address}/hello   change it: kubectl edit gatewayroute hello")
        }
        (Ok(()), None) => "no GatewayListener: it listens nowhere".to_owned(),
        (Err(_), _) => format!("not ready: {}", handle.readiness().1.join("; ")),
    };
    Ok(Running { gateway, kinds: installed, said })
}

impl Running {
    /// What can be seen of it.
    pub(super) fn part(&self) -> Part {
        part(self.gateway.handle())
    }

    /// Where it serves, in words.
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    pub(super) async fn stop(self) {
        self.gateway.stop(GRACE).await;
        self.kinds.stop().await;
    }
}

/// A listener and a route for `/hello`, unless there are listeners or routes.
async fn example(client: &Client) -> Result<(), Failure> {
    let live = client.live();
    let listeners = live.list::<GatewayListener>().await.map_err(Failure::running)?;
    let routes = live.list::<GatewayRoute>().await.map_err(Failure::running)?;
    if !listeners.is_empty() || !routes.is_empty() {
        return Ok(());
    }
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).map_or(0, |_| PORT);
    let spec: GatewayListenerSpec =
        serde_json::from_value(serde_json::json!({"port": port})).map_err(Failure::running)?;
    let mut listener = GatewayListener::new("web", spec);
    listener.metadata.namespace = Some("default".into());
    client.create(&listener).await.map_err(Failure::running)?;
    let spec: GatewayRouteSpec = serde_json::from_value(serde_json::json!({"rules": [{
        "matches": [{"path": {"prefix": "/hello"}}],
        "filters": {"respond": {"body": "Hello from the gateway.\n"}},
    }]}))
    .map_err(Failure::running)?;
    let mut route = GatewayRoute::new("hello", spec);
    route.metadata.namespace = Some("default".into());
    client.create(&route).await.map_err(Failure::running)?;
    Ok(())
}
