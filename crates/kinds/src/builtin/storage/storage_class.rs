use crate::Kind;
use crate::kind::row::kind;
use crate::validate::field::{Errors, Field};
use crate::validate::names;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::label_key_problems;

pub(crate) const KIND: Kind = kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", "storageclass")
    .short(&["sc"])
    .cluster_wide()
    .returns_deleted()
    .immutable(&["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"])
    .validate_with(validate)
    .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    names::qualified(&object.get("provisioner"), errors);
    for (key, _) in object.get("parameters").entries().filter(|(key, _)| key.is_empty()) {
        let at = object.get("parameters").at;
        errors.push(FieldError::invalid(&at, key, "field can not be empty."));
    }
    object.get("reclaimPolicy").one_of(&["Delete", "Retain"], errors);
    object.get("volumeBindingMode").one_of(&["Immediate", "WaitForFirstConsumer"], errors);
    for topology in object.get("allowedTopologies").items() {
        for requirement in topology.get("matchLabelExpressions").items() {
            let (key, values) = (requirement.get("key"), requirement.get("values"));
            values.required(errors);
            for problem in label_key_problems(key.text()) {
                errors.push(FieldError::invalid(&key.at, key.text(), problem));
            }
        }
    }
}

mod table {
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    const DEFAULT_CLASS: [&str; 2] =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Provisioner", "What makes volumes of this class."),
            text("ReclaimPolicy", "What becomes of a volume when its claim is gone."),
            text("VolumeBindingMode", "When claims are bound to volumes."),
            text("AllowVolumeExpansion", "Whether volumes can grow."),
            AGE,
        ],
        |view| {
            let class = view.object;
            let mut name = class.text("metadata.name").to_owned();
            if DEFAULT_CLASS.iter().any(|key| class.entry("metadata.annotations", key) == Some("true")) {
                name.push_str(" (default)");
            }
            vec![
                name.into(),
                class.text("provisioner").into(),
                class.set_text_or("reclaimPolicy", "Delete").into(),
                class.set_text_or("volumeBindingMode", "Immediate").into(),
                class.flag("allowVolumeExpansion").into(),
                view.age(),
            ]
        },
    );
}
