//! Devices, and claims to them, but for the expressions that select devices.

use super::field::{Errors, Field};
use super::names::driver;
use crate::prepare::same;
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{dns_label_problems, dns_subdomain_problems};

const IMMUTABLE: &str = "field is immutable";
const LONGEST_POOL: i64 = 253;

pub(super) fn class(spec: &Field<'_>, errors: &mut Errors) {
    selectors(spec, errors);
    for config in spec.get("config").items() {
        configuration(&config, errors);
    }
}

/// What is asked for. `spec` is that of a claim, or of the claims made of a template.
pub(super) fn claim(spec: &Field<'_>, errors: &mut Errors) {
    let devices = spec.get("devices");
    let mut names = HashSet::new();
    for request in devices.get("requests").items() {
        let name = request.get("name");
        label(&name, errors);
        let (any, exactly) = (request.get("firstAvailable"), request.get("exactly"));
        match (!any.is_empty(), exactly.is_set()) {
            (false, false) => {
                let detail = "exactly one of `exactly` or `firstAvailable` is required";
                errors.push(FieldError::required(&request.at, detail));
            }
            (true, true) => {
                let detail =
                    "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
                errors.push(FieldError::invalid(&request.at, serde_json::Value::Null, detail));
            }
            (true, false) => {
                for part in any.items() {
                    label(&part.get("name"), errors);
                    names.insert(format!("{}/{}", name.text(), part.get("name").text()));
                    exact(&part, errors);
                }
            }
            (false, true) => exact(&exactly, errors),
        }
        if !names.insert(name.text().to_owned()) {
            errors.push(FieldError::duplicate(&request.at, name.text()));
        }
    }
    for constraint in devices.get("constraints").items() {
        references(&constraint.get("requests"), &names, errors);
    }
    for config in devices.get("config").items() {
        references(&config.get("requests"), &names, errors);
        configuration(&config, errors);
    }
}

/// How many devices of which class.
fn exact(request: &Field<'_>, errors: &mut Errors) {
    let class = request.get("deviceClassName");
    if class.required(errors) {
        class.dns_subdomain(errors);
    }
    selectors(request, errors);
    let (mode, count) = (request.get("allocationMode"), request.get("count"));
    match mode.text() {
        "All" if count.number().unwrap_or_default() != 0 => {
            count.invalid("must not be specified when allocationMode is 'All'", errors);
        }
        "ExactCount" if count.number().unwrap_or_default() <= 0 => {
            count.invalid("must be greater than zero", errors);
        }
        _ => mode.one_of(&["All", "ExactCount"], errors),
    }
}

fn selectors(holder: &Field<'_>, errors: &mut Errors) {
    for selector in holder.get("selectors").items() {
        if !selector.get("cel").is_set() {
            errors.push(FieldError::required(&selector.get("cel").at, ""));
        }
    }
}

fn configuration(config: &Field<'_>, errors: &mut Errors) {
    let opaque = config.get("opaque");
    if !opaque.is_set() {
        return errors.push(FieldError::required(&opaque.at, ""));
    }
    driver(&opaque.get("driver"), errors);
    let parameters = opaque.get("parameters");
    if !parameters.is_set() {
        errors.push(FieldError::required(&parameters.at, ""));
    }
}

fn references(requests: &Field<'_>, names: &HashSet<String>, errors: &mut Errors) {
    for request in requests.items().filter(|request| !names.contains(request.text())) {
        let detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
        request.invalid(detail, errors);
    }
}

/// A name that has to be there.
fn label(name: &Field<'_>, errors: &mut Errors) {
    dns_label_problems(name.text()).into_iter().for_each(|problem| name.invalid(problem, errors));
}

pub(super) fn slice(spec: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    driver(&spec.get("driver"), errors);
    let pool = spec.get("pool");
    let name = pool.get("name");
    if name.required(errors) {
        if name.text().len() as i64 > LONGEST_POOL {
            errors.push(FieldError::too_long(&name.at, LONGEST_POOL));
        }
        for part in name.text().split('/') {
            for problem in dns_subdomain_problems(part) {
                errors.push(FieldError::invalid(&name.at, part, problem));
            }
        }
    }
    if pool.get("resourceSliceCount").number().unwrap_or_default() <= 0 {
        let count = pool.get("resourceSliceCount");
        errors.push(FieldError::invalid(
            &count.at,
            count.number().unwrap_or_default(),
            "must be greater than zero",
        ));
    }
    pool.get("generation").not_negative(errors);
    if let Some(old) = old {
        for (new, old) in [
            (name, old.get("pool").get("name")),
            (spec.get("driver"), old.get("driver")),
            (spec.get("nodeName"), old.get("nodeName")),
        ] {
            if !same(Some(new.value), Some(old.value)) {
                new.invalid(IMMUTABLE, errors);
            }
        }
    }
    whose(spec, errors);
    let mut names = HashSet::new();
    for device in spec.get("devices").items() {
        let name = device.get("name");
        label(&name, errors);
        if !names.insert(name.text()) {
            errors.push(FieldError::duplicate(&device.at, name.text()));
        }
    }
}

/// Devices are at one node, at some, at all of them, or each says where it is.
fn whose(spec: &Field<'_>, errors: &mut Errors) {
    let node = spec.get("nodeName");
    if node.is_set() && node.is_empty() {
        node.invalid("must be either unset or set to a non-empty string", errors);
    }
    node.dns_subdomain(errors);
    for flag in ["allNodes", "perDeviceNodeSelection"].map(|name| spec.get(name)) {
        if flag.value == false {
            flag.invalid("must be either unset or set to true", errors);
        }
    }
    let set: Vec<&str> = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"]
        .into_iter()
        .filter(|name| !spec.get(name).is_empty() && spec.get(name).value != false)
        .collect();
    let rule = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match set[..] {
        [] => errors.push(FieldError::required(&spec.at, rule)),
        [_] => {}
        _ => {
            let shown = set.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let detail = format!("{rule}, but multiple fields are set");
            errors.push(FieldError::invalid(&spec.at, format!("{{{shown}}}"), detail));
        }
    }
}
