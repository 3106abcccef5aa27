//! Devices, and claims to them, but for the expressions that select devices.

use super::field::{Errors, Field};
use super::names::driver;
use crate::default::text;
use crate::kind::strategy::{Fields, Fill};
use serde_json::Value;
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::dns_label_problems;

/// What is asked for. `spec` is that of a claim, or of the claims made of a template.
pub(crate) fn claim(spec: &Field<'_>, errors: &mut Errors) {
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
                errors.push(FieldError::invalid(&request.at, Value::Null, detail));
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

pub(crate) fn selectors(holder: &Field<'_>, errors: &mut Errors) {
    for selector in holder.get("selectors").items() {
        if !selector.get("cel").is_set() {
            errors.push(FieldError::required(&selector.get("cel").at, ""));
        }
    }
}

pub(crate) fn configuration(config: &Field<'_>, errors: &mut Errors) {
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
pub(crate) fn label(name: &Field<'_>, errors: &mut Errors) {
    dns_label_problems(name.text()).into_iter().for_each(|problem| name.invalid(problem, errors));
}

/// The defaults of the types that claims are made of.
pub(crate) const TYPE_DEFAULTS: &[(&str, Fill)] =
    &[("ExactDeviceRequest", default_request), ("DeviceSubRequest", default_request)];

/// Who asks for a number of devices and does not say how many asks for one.
fn default_request(request: &mut Fields) {
    let counts = matches!(text(request, "allocationMode"), "" | "ExactCount");
    if counts && request.get("count").is_none_or(|count| count.is_null() || count == 0) {
        request.insert("count".into(), 1.into());
    }
}
