use crate::Kind;
use crate::kind::row::kind;
use crate::prepare::same;
use crate::validate::addresses::reachable;
use crate::validate::field::{Errors, Field};
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{dns_subdomain_problems, label_key_problems};

pub(crate) const KIND: Kind = kind("", "v1", "Endpoints", "endpoints", "endpoints")
    .short(&["ep"])
    .created_on_update()
    .upstream_folder("services/endpoints")
    .validate_with(validate)
    .deprecated("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
    .table(table::TABLE);
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// New endpoints, or those that replace `old`: what was there before and stays is not looked at again.
fn validate(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let subsets = object.get("subsets");
    if old.is_some_and(|old| same(Some(old.get("subsets").value), Some(subsets.value))) {
        return;
    }
    for subset in subsets.items() {
        let (ready, others) = (subset.get("addresses"), subset.get("notReadyAddresses"));
        if ready.is_empty() && others.is_empty() {
            let detail = "must specify `addresses` or `notReadyAddresses`";
            errors.push(FieldError::required(&subset.at, detail));
        }
        ready.items().chain(others.items()).for_each(|address| subset_address(&address, errors));
        let ports = subset.get("ports");
        let is_one_of_many = ports.items().count() > 1;
        ports.items().for_each(|port| subset_port(&port, is_one_of_many, errors));
    }
}

fn subset_address(address: &Field<'_>, errors: &mut Errors) {
    let ip = address.get("ip");
    ip.ip(errors);
    address.get("hostname").dns_label(errors);
    address.get("nodeName").if_set(dns_subdomain_problems, errors);
    reachable(&ip, errors);
}

fn subset_port(port: &Field<'_>, is_one_of_many: bool, errors: &mut Errors) {
    let (name, protocol) = (port.get("name"), port.get("protocol"));
    if is_one_of_many {
        name.required(errors);
    }
    name.dns_label(errors);
    port.get("port").port(errors);
    if protocol.required(errors) {
        protocol.one_of(&PROTOCOLS, errors);
    }
    port.get("appProtocol").if_set(label_key_problems, errors);
}

mod table {
    use crate::columns::at_most;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, View, text};

    pub(super) const TABLE: Layout =
        Layout::new(&[NAME, text("Endpoints", "Addresses and ports, the first three."), AGE], |view| {
            vec![view.name(), endpoints(view).into(), view.age()]
        });

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
                all.extend(addresses.clone().map(|ip| {
                    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
                }));
            }
        }
        at_most(3, ",", &all)
    }
}
