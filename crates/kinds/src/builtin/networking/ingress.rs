use crate::Kind;
use crate::kind::row::{STATUS, kind};
use crate::validate::field::{Errors, Field};
use crate::validate::names::typed_reference;
use serde_json::Value;
use std::net::IpAddr;
use watchkeeper_schema::metadata::{dns_label_problems, dns_subdomain_problems};
use watchkeeper_schema::{FieldError, Path};

pub(crate) const KIND: Kind = kind("networking.k8s.io", "v1", "Ingress", "ingresses", "ingress")
    .short(&["ing"])
    .with(&[STATUS])
    .generation()
    .upstream_folder("ingress")
    .validate_with(validate)
    .warn(warning)
    .table(table::TABLE);

/// The annotation that names a class on old ingresses.
const CLASS: &str = "kubernetes.io/ingress.class";

fn warning(ingress: &Value, old: Option<&Value>) -> Option<&'static str> {
    let is_old = old.is_none() && !ingress["metadata"]["annotations"][CLASS].is_null();
    is_old.then_some(
        "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead",
    )
}

/// What the path of an exact or a prefix match may not contain, and what it may not end with.
const NOT_WITHIN: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const NOT_AT_END: [&str; 2] = ["/..", "/."];
const NO_WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

fn validate(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
    let (rules, backend) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.is_empty() && !backend.is_set() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(&spec.at, Value::Null, detail));
    }
    if backend.is_set() {
        self::backend(&backend, errors);
    }
    for rule in rules.items() {
        let host = rule.get("host");
        if host.text().parse::<IpAddr>().is_ok() {
            host.invalid("must be a DNS name, not an IP address", errors);
        } else {
            self::host(&host, errors);
        }
        let http = rule.get("http");
        if http.is_set() && http.get("paths").required(errors) {
            http.get("paths").items().for_each(|path| ingress_path(&path, errors));
        }
    }
    for tls in spec.get("tls").items() {
        tls.get("hosts").items().for_each(|host| self::host(&host, errors));
        tls.get("secretName").dns_subdomain(errors);
    }
    let class = spec.get("ingressClassName");
    class.dns_subdomain(errors);
    let noted = object.get("metadata").get("annotations").get(CLASS);
    if old.is_none() && noted.is_set() && class.is_set() && noted.text() != class.text() {
        let at = Path::root().child("annotations").child(CLASS);
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid(&at, noted.text(), detail));
    }
}

/// A name of a host, perhaps with a wildcard for its first label.
fn host(host: &Field<'_>, errors: &mut Errors) {
    if !host.text().contains('*') {
        return host.dns_subdomain(errors);
    }
    let rest = host.text().strip_prefix("*.").unwrap_or_default();
    if !dns_subdomain_problems(rest).is_empty() {
        host.invalid(NO_WILDCARD, errors);
    }
}

fn ingress_path(path: &Field<'_>, errors: &mut Errors) {
    let (text, kind) = (path.get("path"), path.get("pathType"));
    if !kind.is_set() {
        errors.push(FieldError::required(&kind.at, "pathType must be specified"));
        return;
    }
    match kind.text() {
        "Exact" | "Prefix" => {
            if !text.text().starts_with('/') {
                text.invalid("must be an absolute path", errors);
            }
            for part in NOT_WITHIN.into_iter().filter(|part| text.text().contains(part)) {
                text.invalid(format!("must not contain '{part}'"), errors);
            }
            for end in NOT_AT_END.into_iter().filter(|end| text.text().ends_with(end)) {
                text.invalid(format!("cannot end with '{end}'"), errors);
            }
        }
        "ImplementationSpecific" if !text.is_empty() && !text.text().starts_with('/') => {
            text.invalid("must be an absolute path", errors);
        }
        _ => kind.one_of(&["Exact", "ImplementationSpecific", "Prefix"], errors),
    }
    backend(&path.get("backend"), errors);
}

fn backend(backend: &Field<'_>, errors: &mut Errors) {
    let (service, resource) = (backend.get("service"), backend.get("resource"));
    if !service.is_set() {
        match resource.is_set() {
            true => typed_reference(&resource, errors),
            false => {
                let detail = "resource or service backend is required";
                errors.push(FieldError::invalid(&backend.at, "", detail));
            }
        }
        return;
    }
    if backend.get("resource").is_set() {
        let detail = "cannot set both resource and service backends";
        errors.push(FieldError::invalid(&backend.at, "", detail));
        return;
    }
    let name = service.get("name");
    if name.required(errors) {
        dns_label_problems(name.text()).into_iter().for_each(|problem| name.invalid(problem, errors));
    }
    let port = service.get("port");
    let has_number = port.get("number").number().is_some_and(|number| number != 0);
    match (port.get("name").is_empty(), has_number) {
        (true, false) => errors.push(FieldError::required(&backend.at, "port name or number is required")),
        (true, true) => port.get("number").port(errors),
        (false, false) => port.get("name").port_or_name(errors),
        (false, true) => {
            errors.push(FieldError::invalid(&backend.at, "", "cannot set both port name & port number"));
        }
    }
}

mod table {
    use crate::columns::balancer_addresses;
    use serde_json::Value;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout = Layout::new(
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
}
