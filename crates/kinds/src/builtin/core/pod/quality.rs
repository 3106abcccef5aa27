use crate::decimal;
use crate::decimal::Quantity;
use serde_json::Value;
use std::cmp::Ordering;

const COUNTED: [&str; 2] = ["cpu", "memory"];

/// The class of service of a pod: guaranteed if every container has limits and asks for no less, best effort if none
/// asks for anything.
pub(super) fn class(spec: &Value) -> &'static str {
    let resources: Vec<&Value> = match spec.get("resources").filter(|own| own.is_object()) {
        Some(own) => vec![own],
        None => containers(spec).map(|container| &container["resources"]).collect(),
    };
    let asks = |list: &str| {
        resources.iter().any(|resources| COUNTED.iter().any(|name| amount(&resources[list][name]).is_some()))
    };
    if !asks("requests") && !asks("limits") {
        return "BestEffort";
    }
    let is_guaranteed = resources.iter().all(|resources| {
        COUNTED.iter().all(|name| {
            let (limit, request) = (amount(&resources["limits"][name]), amount(&resources["requests"][name]));
            limit.is_some_and(|limit| {
                request.is_some_and(|request| limit.compare(&request) == Some(Ordering::Equal))
            })
        })
    });
    if is_guaranteed { "Guaranteed" } else { "Burstable" }
}

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    ["containers", "initContainers"].into_iter().flat_map(|list| spec[list].as_array().into_iter().flatten())
}

/// An amount above zero.
fn amount(value: &Value) -> Option<Quantity> {
    let quantity = decimal::parse(value.as_str()?).ok()??;
    (!quantity.is_negative() && quantity.whole() != Some(0)).then_some(quantity)
}
