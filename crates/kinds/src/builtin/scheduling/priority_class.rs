use crate::Kind;
use crate::kind::row::kind;
use crate::validate::field::{Errors, Field};
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind =
    kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "priorityclass")
        .short(&["pc"])
        .cluster_wide()
        .generation_counts(|_, _| false)
        .validate_with(validate)
        .validate_update(validate_update)
        .metadata_checks(1, 0)
        .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let (name, value) = (object.get("metadata").get("name"), object.get("value"));
    if name.text().starts_with("system-") {
        if !matches!(name.text(), "system-node-critical" | "system-cluster-critical") {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {} is not a known system priority class",
                name.text()
            );
            errors.push(FieldError::forbidden(&name.at, detail));
        }
    } else if value.number().is_some_and(|value| value > 1_000_000_000) {
        let detail = "maximum allowed value of a user defined priority is 1000000000";
        errors.push(FieldError::forbidden(&value.at, detail));
    }
    object.get("preemptionPolicy").one_of(&["PreemptLowerPriority", "Never"], errors);
}

fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    if new.get("value").value != old.get("value").value {
        errors.push(FieldError::forbidden(&new.get("value").at, "may not be changed in an update."));
    }
}

mod table {
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, boolean, integer, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            integer("Value", "The priority of pods of this class."),
            boolean("Global-Default", "Whether pods without a class have this one."),
            AGE,
            text("PreemptionPolicy", "Whether pods of this class push others out."),
        ],
        |view| {
            let class = view.object;
            vec![
                view.name(),
                class.int("value").into(),
                class.flag("globalDefault").into(),
                view.age(),
                class.set_text_or("preemptionPolicy", "PreemptLowerPriority").into(),
            ]
        },
    );
}
