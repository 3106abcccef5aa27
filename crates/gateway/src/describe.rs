//! What the gateway says about itself.

use watchkeeper_description::{
    API_VERSION, Description, Metric, Port, Resource, Right, Rights, Run, ServedPort, Verbs, Volume,
};

use crate::ai;
use crate::kinds;
use crate::metrics::METRICS;
use crate::object::InputKind;

/// Where probes and metrics are served in a cluster.
const METRICS_PORT: u16 = 9902;
/// The ports of listeners that the Service of the gateway leads to: name, port of the Service, port of the listener.
const PORTS: [(&str, u16, u16); 2] = [("http", 80, 8080), ("https", 443, 8443)];

/// Where it keeps what it serves in a cluster.
const STATE: &str = "/state";

/// What a gateway of a cluster is, as operators describe themselves: its kinds, its rights, its metrics, and how it is run.
pub fn description() -> Description {
    Description {
        api_version: API_VERSION.to_owned(),
        name: "watchkeeper-gateway".to_owned(),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        about: Some("An API gateway whose routes are custom resources".to_owned()),
        definitions: kinds::documents(),
        controllers: Vec::new(),
        caches: Vec::new(),
        rights: rights(),
        election: None,
        metrics_port: Some(Port { port: METRICS_PORT, option: Some("--metrics-addr".to_owned()) }),
        install_option: None,
        namespaces_option: None,
        metrics: METRICS.iter().chain(ai::METRICS).map(metric).collect(),
        webhooks: Vec::new(),
        webhook_port: None,
        webhook_arguments: Vec::new(),
        run: Run {
            component: "gateway".to_owned(),
            program: Some("watchkeeper".to_owned()),
            // On all addresses of its Pod: that of the Service is not one of them.
            arguments: [
                "gateway",
                "--from=kubernetes",
                "--gateway-addresses=0.0.0.0",
                "--share-budgets",
                &format!("--state={STATE}"),
            ]
            .map(str::to_owned)
            .into(),
            // A gateway that is restarted while no API server answers serves what it served.
            scratch: Some(Volume { path: STATE.to_owned(), size: "32Mi".to_owned() }),
            log_option: Some("--log".to_owned()),
            ports: PORTS
                .map(|(name, port, target)| ServedPort { name: name.to_owned(), port, target })
                .into(),
            ..Run::default()
        },
        grace_seconds: 30,
    }
}

/// It lists and watches what it is made of, and writes the statuses of its own kinds.
fn rights() -> Rights {
    let mut rights = Rights::default();
    for kind in InputKind::ALL {
        let (api_version, name, plural) = kind.names();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: name.to_owned(),
            plural: plural.to_owned(),
            namespaced: kind.is_namespaced(),
        };
        let because = match kind {
            InputKind::Secret => "certificates of listeners, keys of providers of models",
            InputKind::Service | InputKind::EndpointSlice => "backends that are Services",
            InputKind::Namespace => "Gateways for namespaces with certain labels",
            _ => "it is made of them",
        };
        if kind.has_status() {
            let status = Right::of(resource.clone(), Verbs::PATCH, "says what became of them").on("status");
            rights.add(status);
        }
        rights.add(Right::of(resource, Verbs::LIST | Verbs::WATCH, because));
    }
    let budgets = Resource {
        group: kinds::GROUP.to_owned(),
        version: "v1alpha1".to_owned(),
        kind: "LLMBudget".to_owned(),
        plural: "llmbudgets".to_owned(),
        namespaced: true,
    };
    let because = "replicas share budgets of models";
    rights.add(Right::of(budgets, Verbs::GET | Verbs::CREATE | Verbs::UPDATE, because));
    rights
}

fn metric((name, kind, help): &(&str, &str, &str)) -> Metric {
    Metric { name: (*name).to_owned(), kind: (*kind).to_owned(), help: (*help).to_owned() }
}
