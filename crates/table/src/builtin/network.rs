use super::service::balancer_addresses;
use crate::column::{AGE, NAME, text};
use crate::fields::Fields;
use crate::printer::Printer;
use crate::selector;
use serde_json::Value;

pub(super) static INGRESS: Printer = Printer::new(
    &[
        NAME,
        text("Class", "The class of the ingress."),
        text("Hosts", "The hosts that requests are routed for, the first three."),
        text("Address", "The addresses of the load balancer."),
        text("Ports", "The ports that are open."),
        AGE,
    ],
    |view| {
        let ingress = view.object;
        let ports = if ingress.list("spec.tls").is_empty() { "80" } else { "80, 443" };
        let addresses = Vec::from_iter(balancer_addresses(ingress));
        vec![
            view.name(),
            ingress.set_text_or("spec.ingressClassName", "<none>").into(),
            hosts(ingress.list("spec.rules")).into(),
            addresses.join(",").into(),
            ports.into(),
            view.age(),
        ]
    },
);

pub(super) static INGRESS_CLASS: Printer = Printer::new(
    &[
        NAME,
        text("Controller", "What serves ingresses of this class."),
        text("Parameters", "The object that configures the class."),
        AGE,
    ],
    |view| {
        let class = view.object;
        let default = class.entry("metadata.annotations", "ingressclass.kubernetes.io/is-default-class");
        let mut name = class.text("metadata.name").to_owned();
        if default == Some("true") {
            name.push_str(" (default)");
        }
        let parameters = match class.at("spec.parameters") {
            Value::Null => "<none>".into(),
            parameters => {
                let group = parameters.at("apiGroup").as_str().map(|group| format!(".{group}"));
                format!(
                    "{}{}/{}",
                    parameters.text("kind"),
                    group.unwrap_or_default(),
                    parameters.text("name")
                )
            }
        };
        vec![name.into(), class.text("spec.controller").into(), parameters.into(), view.age()]
    },
);

pub(super) static NETWORK_POLICY: Printer = Printer::new(
    &[NAME, text("Pod-Selector", "The labels of the pods that the policy is for."), AGE],
    |view| vec![view.name(), selector::shown(view.object.at("spec.podSelector")).into(), view.age()],
);

pub(super) static SERVICE_CIDR: Printer =
    Printer::new(&[NAME, text("CIDRs", "The ranges that service addresses are taken from."), AGE], |view| {
        let ranges: Vec<&str> = view.object.list("spec.cidrs").iter().filter_map(Value::as_str).collect();
        vec![view.name(), ranges.join(",").into(), view.age()]
    });

/// The age is in the row and has no column: so it is in Kubernetes, and kubectl leaves it out.
pub(super) static IP_ADDRESS: Printer =
    Printer::new(&[NAME, text("ParentRef", "The object that the address is for.")], |view| {
        let parent = match view.object.at("spec.parentRef") {
            Value::Null => "<none>".into(),
            parent => {
                let named = |before: &str, name: &str| match parent.text(name) {
                    "" => String::new(),
                    value => format!("{before}{value}"),
                };
                let resource = format!("{}{}", parent.text("resource"), named(".", "group")).to_lowercase();
                format!("{resource}{}/{}", named("/", "namespace"), parent.text("name"))
            }
        };
        vec![view.name(), parent.into(), view.age()]
    });

/// The first three hosts. How many more there are is counted in rules, with or without a host.
fn hosts(rules: &[Value]) -> String {
    let mut hosts = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= hosts.len() == 3;
        let host = rule.text("host");
        if !more && !host.is_empty() {
            hosts.push(host);
        }
    }
    match hosts.join(",") {
        _ if hosts.is_empty() => "*".into(),
        hosts if more => format!("{hosts} + {} more...", rules.len() - 3),
        hosts => hosts,
    }
}
