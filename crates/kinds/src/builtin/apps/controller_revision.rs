use crate::Kind;
use crate::kind::row::kind;
use crate::validate::field::{Errors, Field};
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind =
    kind("apps", "v1", "ControllerRevision", "controllerrevisions", "controllerrevision")
        .immutable(&["data"])
        .validate_with(validate)
        .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    object.get("revision").not_negative(errors);
    if !object.get("data").is_set() {
        errors.push(FieldError::required(&object.get("data").at, "data is mandatory"));
    }
}

mod table {
    use serde_json::Value;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Controller", "What the revision belongs to."),
            text("Revision", "The number of the revision."),
            AGE,
        ],
        |view| {
            let revision = view.object.int("revision");
            vec![view.name(), controller(view.object).into(), revision.into(), view.age()]
        },
    );

    /// The owner that is the controller, as `kind.group/name`.
    fn controller(object: &Value) -> String {
        let mut owners = object.list("metadata.ownerReferences").iter();
        let Some(owner) = owners.find(|owner| owner.flag("controller")) else {
            return "<none>".into();
        };
        let (kind, name) = (owner.text("kind").to_lowercase(), owner.text("name"));
        match owner.text("apiVersion").split_once('/') {
            Some((group, _)) if !group.is_empty() => format!("{kind}.{}/{name}", group.to_lowercase()),
            _ if kind.is_empty() => name.into(),
            _ => format!("{kind}/{name}"),
        }
    }
}
