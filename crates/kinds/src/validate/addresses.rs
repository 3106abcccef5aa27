//! Addresses of services and the blocks that they are taken from.

use super::field::{Errors, Field};
use super::names::path_segment;
use crate::address;
use crate::prepare::same;
use serde_json::json;
use watchkeeper_schema::FieldError;

const IMMUTABLE: &str = "field is immutable";

pub(super) fn address(spec: &Field<'_>, errors: &mut Errors) {
    let parent = spec.get("parentRef");
    if !parent.is_set() {
        errors.push(FieldError::required(&parent.at, ""));
        return;
    }
    parent.get("group").dns_subdomain(errors);
    for field in ["resource", "name"] {
        if parent.get(field).required(errors) {
            path_segment(&parent.get(field), errors);
        }
    }
    path_segment(&parent.get("namespace"), errors);
}

pub(super) fn address_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let parent = new.get("parentRef");
    if same(Some(parent.value), Some(old.get("parentRef").value)) {
        return;
    }
    let error = FieldError::invalid(&parent.at, parent.value.clone(), IMMUTABLE);
    let text = |name: &str| json!(parent.get(name).text());
    errors.push(if parent.is_set() {
        error.structure(&[
            ("Group", text("group")),
            ("Resource", text("resource")),
            ("Namespace", text("namespace")),
            ("Name", text("name")),
        ])
    } else {
        error
    });
}

pub(super) fn blocks(spec: &Field<'_>, errors: &mut Errors) {
    let blocks = spec.get("cidrs");
    let count = blocks.items().count();
    match count {
        0 => return errors.push(FieldError::required(&blocks.at, "at least one CIDR required")),
        1 | 2 => {}
        _ => {
            let error = FieldError::invalid(&blocks.at, spec.value.clone(), "may only hold up to 2 values");
            return errors.push(error.structure(&[("CIDRs", blocks.value.clone())]));
        }
    }
    for block in blocks.items() {
        if let Some(problem) = address::block_problem(block.text()) {
            block.invalid(problem, errors);
        }
    }
    let versions: Vec<_> = blocks.items().map(|block| address::is_version_6(block.text())).collect();
    if count == 2 && versions[0] == versions[1] && versions[0].is_some() {
        let detail =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        blocks.invalid(detail, errors);
    }
}

/// Blocks stay; one of the other version may join.
pub(super) fn blocks_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let blocks = new.get("cidrs");
    let [after, before] = [&blocks, &old.get("cidrs")].map(|blocks| blocks.items().collect::<Vec<_>>());
    match (before.len(), after.len()) {
        (1, 2) => {
            if after[0].value != before[0].value {
                after[0].invalid(IMMUTABLE, errors);
            }
            self::blocks(new, errors);
        }
        (before_count, after_count) if before_count == after_count => {
            for (after, _) in after.iter().zip(&before).filter(|(after, before)| after.value != before.value)
            {
                after.invalid(IMMUTABLE, errors);
            }
        }
        _ => blocks.invalid(IMMUTABLE, errors),
    }
}
