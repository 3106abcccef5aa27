use crate::columns::balancer_addresses;
use serde_json::Value;
use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, selector, text, wide};

pub(super) const TABLE: Layout = Layout::new(
    &[
        NAME,
        text("Type", "How the service is reached."),
        text("Cluster-IP", "Its first address inside the cluster."),
        text("External-IP", "Its addresses outside the cluster."),
        text("Port(s)", "Its ports, with node port and protocol."),
        AGE,
        wide("Selector", "The labels of the pods behind it."),
    ],
    |view| {
        let service = view.object;
        let first = service.list("spec.clusterIPs").first().and_then(Value::as_str);
        let address = first.unwrap_or_else(|| service.text_or("spec.clusterIP", "<none>"));
        vec![
            view.name(),
            service_type(service).into(),
            address.into(),
            external_address(service).into(),
            service_ports(service).into(),
            view.age(),
            selector::labels(service.at("spec.selector")).into(),
        ]
    },
);

fn service_type(service: &Value) -> &str {
    service.text_or("spec.type", "ClusterIP")
}

fn external_address(service: &Value) -> String {
    let own = || service.list("spec.externalIPs").iter().filter_map(Value::as_str).map(str::to_owned);
    let (addresses, without): (Vec<String>, _) = match service_type(service) {
        "ClusterIP" | "NodePort" => (own().collect(), "<none>"),
        "LoadBalancer" => (balancer_addresses(service).into_iter().chain(own()).collect(), "<pending>"),
        "ExternalName" => return service.text("spec.externalName").into(),
        _ => return "<unknown>".into(),
    };
    if addresses.is_empty() { without.into() } else { addresses.join(",") }
}

fn service_ports(service: &Value) -> String {
    let port = |port: &Value| {
        let (number, node_port) = (port.int("port"), port.int("nodePort"));
        let protocol = port.text_or("protocol", "TCP");
        if node_port > 0 {
            format!("{number}:{node_port}/{protocol}")
        } else {
            format!("{number}/{protocol}")
        }
    };
    let ports: Vec<String> = service.list("spec.ports").iter().map(port).collect();
    if ports.is_empty() { "<none>".into() } else { ports.join(",") }
}
