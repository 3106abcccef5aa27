//! The gateway of `up`: its kinds, an example route, and the gateway itself.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use watchkeeper::client::Client;
use watchkeeper::prelude::{Connection, Manager};
use watchkeeper_core::Key;
use watchkeeper_gateway::kinds::standard::{self, GatewayClass, GatewayClassSpec};
use watchkeeper_gateway::kinds::{
    AIGatewayConfig, ApiDefinition, ApiSubscription, GatewayBackend, GatewayListener, GatewayListenerSpec,
    GatewayPolicy, GatewayRoute, GatewayRouteSpec, LLMGatewayPolicy, McpRoute, ModelContextMapping,
    PromptTemplate, Tenant,
};
use watchkeeper_gateway::mock::Mock;
use watchkeeper_gateway::{Admin, From, Gateway, Options};

use crate::failure::Failure;
use crate::gateway::{DEFAULT_ADMIN, part};
use crate::monitor::Part;

/// Where it listens, if nobody else is there.
const PORT: u16 = 8080;
/// How long it may take until it serves. After that, it says so when it does.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// The class of Gateway API that is made.
const CLASS: &str = "watchkeeper";
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
        .install::<AIGatewayConfig>()
        .install::<ModelContextMapping>()
        .install::<LLMGatewayPolicy>()
        .install::<PromptTemplate>()
        .install::<McpRoute>()
        .install::<ApiDefinition>()
        .install::<ApiSubscription>()
        .install::<Tenant>()
}

/// A gateway that runs, with what brought its kinds.
pub(super) struct Running {
    gateway: Gateway,
    admin: Admin,
    kinds: watchkeeper::runtime::Running,
    /// A provider of models that has none.
    mock: Mock,
    said: String,
    models: Option<String>,
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
    let client = Client::new(connection.clone());
    standard_kinds(&client).await?;
    example(&client).await?;
    let mock = Mock::start((Ipv4Addr::LOCALHOST, 0).into(), None).map_err(Failure::running)?;
    let has_models = models(&client, &mock).await?;
    let from = vec![From::Kubernetes(connection)];
    let gateway = Gateway::start(Options { from, ..Options::default() }).map_err(Failure::running)?;
    let admin = admin(&gateway)?;
    let explained = match admin.address().to_string() {
        usual if usual == DEFAULT_ADMIN => String::new(),
        other => format!("   explain: --admin {other}"),
    };
    let mut handle = gateway.handle().clone();
    let ready = tokio::time::timeout(READY_TIMEOUT, handle.ready()).await;
    let said = match (ready, handle.ports().into_values().find_map(Result::ok)) {
        (Ok(()), Some(address)) => {
            format!("http://{address}/hello   change it: kubectl edit gatewayroute hello{explained}")
        }
        (Ok(()), None) => "no GatewayListener: it listens nowhere".to_owned(),
        (Err(_), _) => format!("not ready: {}", handle.readiness().1.join("; ")),
    };
    let address = handle.ports().into_values().find_map(Result::ok).filter(|_| has_models);
    let models = address.map(|address| {
        format!(
            "http://{address}/v1   the API of OpenAI, Anthropic and Gemini; the model `assistant` is a mock"
        )
    });
    Ok(Running { gateway, admin, kinds: installed, mock, said, models })
}

/// The admin endpoint: where `watchkeeper gateway explain` looks for it, or if somebody is there already, elsewhere.
fn admin(gateway: &Gateway) -> Result<Admin, Failure> {
    let usual = DEFAULT_ADMIN.parse().map_err(Failure::running)?;
    let started = Admin::start(usual, gateway.handle());
    started
        .or_else(|_| Admin::start((Ipv4Addr::LOCALHOST, 0).into(), gateway.handle()))
        .map_err(Failure::running)
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

    /// Where models are served, in words.
    pub(super) fn models(&self) -> Option<&str> {
        self.models.as_deref()
    }

    pub(super) async fn stop(self) {
        self.gateway.stop(GRACE).await;
        self.admin.stop().await;
        self.mock.stop().await;
        self.kinds.stop().await;
    }
}

/// The kinds of Gateway API, unless there are any already, and a class for the gateway. What is there is not touched: it may be of the project
/// itself, with more fields.
async fn standard_kinds(client: &Client) -> Result<(), Failure> {
    for definition in standard::definitions() {
        let key = Key::new(None, definition.metadata.name.as_deref().unwrap_or_default());
        if client.live().get::<CustomResourceDefinition>(&key).await.map_err(Failure::running)?.is_none() {
            client.create(&definition).await.map_err(Failure::running)?;
        }
        let begin = Instant::now();
        while !is_established(client, &key).await? {
            if begin.elapsed() > READY_TIMEOUT {
                return Err(Failure::running(format!("{key} is not served after {READY_TIMEOUT:?}")));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
    let key = Key::new(None, CLASS);
    if client.live().get::<GatewayClass>(&key).await.map_err(Failure::running)?.is_none() {
        let spec = GatewayClassSpec {
            controller_name: standard::CONTROLLER.to_owned(),
            description: Some("The gateway of watchkeeper".to_owned()),
            parameters_ref: None,
        };
        client.create(&GatewayClass::new(CLASS, spec)).await.map_err(Failure::running)?;
    }
    Ok(())
}

async fn is_established(client: &Client, definition: &Key) -> Result<bool, Failure> {
    let found = client.live().get::<CustomResourceDefinition>(definition).await.map_err(Failure::running)?;
    let conditions = found.as_ref().and_then(|found| found.status.as_ref()?.conditions.as_ref());
    Ok(conditions.into_iter().flatten().any(|each| each.type_ == "Established" && each.status == "True"))
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

/// The name of the example gateway of models, and of its provider: an object with both is ours.
const MODELS: (&str, &str) = ("models", "mock");

/// A gateway of models whose provider is the mock, unless there are others. The mock has another address each time.
async fn models(client: &Client, mock: &Mock) -> Result<bool, Failure> {
    let known = client.live().list::<AIGatewayConfig>().await.map_err(Failure::running)?;
    let is_ours = |config: &AIGatewayConfig| {
        let mut providers = config.spec.providers.iter();
        config.metadata.name.as_deref() == Some(MODELS.0)
            && providers.all(|provider| provider.name == MODELS.1)
    };
    if !known.iter().all(|config| is_ours(config)) {
        return Ok(false);
    }
    let url = format!("http://{}", mock.address());
    let spec = serde_json::json!({"access": "Open", "providers": [{"name": MODELS.1, "dialect": "OpenAI", "url": url}]});
    let mut config = AIGatewayConfig::new(MODELS.0, serde_json::from_value(spec).map_err(Failure::running)?);
    config.metadata.namespace = Some("default".into());
    client.apply(&config).await.map_err(Failure::running)?;
    let spec =
        serde_json::json!({"model": "assistant", "targets": [{"provider": MODELS.1, "model": "echo"}]});
    let mut model =
        ModelContextMapping::new("assistant", serde_json::from_value(spec).map_err(Failure::running)?);
    model.metadata.namespace = Some("default".into());
    client.apply(&model).await.map_err(Failure::running)?;
    Ok(true)
}
