use super::at_most;
use crate::column::{AGE, NAME, text, wide};
use crate::fields::Fields;
use crate::printer::{Printer, View};
use crate::selector;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) static SERVICE: Printer = Printer::new(
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

pub(super) static ENDPOINTS: Printer =
    Printer::new(&[NAME, text("Endpoints", "Addresses and ports, the first three."), AGE], |view| {
        vec![view.name(), endpoints(view).into(), view.age()]
    });

pub(super) static ENDPOINT_SLICE: Printer = Printer::new(
    &[
        NAME,
        text("AddressType", "What kind of addresses the slice holds."),
        text("Ports", "The ports of each endpoint, the first three."),
        text("Endpoints", "Addresses, the first three."),
        AGE,
    ],
    |view| {
        let slice = view.object;
        let ports: Vec<String> = slice.list("ports").iter().map(slice_port).collect();
        let addresses = slice.list("endpoints").iter().flat_map(|endpoint| endpoint.list("addresses"));
        let addresses: Vec<String> =
            addresses.map(|address| address.as_str().unwrap_or_default().to_owned()).collect();
        vec![
            view.name(),
            slice.text("addressType").into(),
            or_unset(at_most(3, ",", &ports)).into(),
            or_unset(at_most(3, ",", &addresses)).into(),
            view.age(),
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

/// The addresses in the status of a load balancer, sorted.
pub(super) fn balancer_addresses(object: &Value) -> BTreeSet<String> {
    let ingress = object.list("status.loadBalancer.ingress").iter();
    let addresses = ingress.map(|ingress| ingress.text_or("ip", ingress.text("hostname")));
    addresses.filter(|address| !address.is_empty()).map(str::to_owned).collect()
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

fn endpoints(view: &View<'_>) -> String {
    let subsets = view.object.list("subsets");
    if subsets.is_empty() {
        return "<none>".into();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = subset.list("addresses").iter().map(|address| address.text("ip"));
        let ports = subset.list("ports");
        if ports.is_empty() {
            all.extend(addresses.clone().map(str::to_owned));
        }
        for port in ports {
            let port = port.int("port");
            all.extend(
                addresses.clone().map(|ip| {
                    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
                }),
            );
        }
    }
    at_most(3, ",", &all)
}

fn slice_port(port: &Value) -> String {
    match port.at("port").as_i64() {
        Some(number) => number.to_string(),
        None => port.text("name").into(),
    }
}

fn or_unset(text: String) -> String {
    if text.is_empty() { "<unset>".into() } else { text }
}
