use crate::kind::row::{STATUS, kind};
use crate::validate::field::{Errors, Field};
use crate::validate::update::IMMUTABLE;
use crate::{Kind, Subresource, address};
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", "servicecidr")
    .cluster_wide()
    .with(&[STATUS])
    .validate_with(validate)
    .validate_update(validate_update)
    .status_keeps(&["labels", "annotations", "ownerReferences", "finalizers"])
    .resets(&[(Subresource::Status, &[&["metadata"], &["spec"]])])
    .metadata_checks(1, 0)
    .table(table::TABLE);

fn validate(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    if old.is_none() {
        blocks(&object.get("spec"), errors);
    }
}

fn blocks(spec: &Field<'_>, errors: &mut Errors) {
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
fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (new, old) = (&new.get("spec"), &old.get("spec"));
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

mod table {
    use serde_json::Value;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[NAME, text("CIDRs", "The ranges that service addresses are taken from."), AGE],
        |view| {
            let ranges: Vec<&str> = view.object.list("spec.cidrs").iter().filter_map(Value::as_str).collect();
            vec![view.name(), ranges.join(",").into(), view.age()]
        },
    );
}
