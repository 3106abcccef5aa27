use crate::kind::row::kind;
use crate::prepare::same;
use crate::validate::field::{Errors, Field};
use crate::validate::names::path_segment;
use crate::validate::update::IMMUTABLE;
use crate::{Kind, NameRule};
use serde_json::json;
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind("networking.k8s.io", "v1", "IPAddress", "ipaddresses", "ipaddress")
    .short(&["ip"])
    .cluster_wide()
    .named(NameRule::Address)
    .validate_with(validate)
    .validate_update(validate_update)
    .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
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

fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (new, old) = (&new.get("spec"), &old.get("spec"));
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

mod table {
    use serde_json::Value;
    use watchkeeper_table::layout::{Fields, Layout, NAME, text};

    /// The age is in the row and has no column: so it is in Kubernetes, and kubectl leaves it out.
    pub(super) const TABLE: Layout =
        Layout::new(&[NAME, text("ParentRef", "The object that the address is for.")], |view| {
            let parent = match view.object.at("spec.parentRef") {
                Value::Null => "<none>".into(),
                parent => {
                    let named = |before: &str, name: &str| match parent.text(name) {
                        "" => String::new(),
                        value => format!("{before}{value}"),
                    };
                    let resource =
                        format!("{}{}", parent.text("resource"), named(".", "group")).to_lowercase();
                    format!("{resource}{}/{}", named("/", "namespace"), parent.text("name"))
                }
            };
            vec![view.name(), parent.into(), view.age()]
        });
}
