use crate::Kind;
use crate::kind::row::kind;
use crate::validate::field::{Errors, Field};
use crate::validate::{containers, pod};
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "runtimeclass")
    .cluster_wide()
    .conditional()
    .created_on_update()
    .immutable(&["handler"])
    .validate_with(validate)
    .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let handler = object.get("handler");
    if handler.required(errors) {
        handler.dns_label(errors);
    }
    let overhead = object.get("overhead");
    // Amounts are checked as limits of containers are, and are said to be some.
    for (name, amount) in overhead.get("podFixed").entries() {
        let limit = Field { value: amount.value, at: overhead.at.child("limits").key(name) };
        containers::resource(name, &limit, errors);
    }
    let scheduling = object.get("scheduling");
    scheduling.get("nodeSelector").labels(errors);
    let mut seen = Vec::new();
    for toleration in scheduling.get("tolerations").items() {
        pod::toleration(&toleration, errors);
        let key = ["key", "operator", "value", "effect"].map(|name| toleration.get(name).text());
        if seen.contains(&key) {
            let [name, operator, value, effect] = key;
            let seconds = toleration.get("tolerationSeconds").value.clone();
            errors.push(FieldError::duplicate(&toleration.at, toleration.value.clone()).structure(&[
                ("Key", name.into()),
                ("Operator", operator.into()),
                ("Value", value.into()),
                ("Effect", effect.into()),
                ("TolerationSeconds", seconds),
            ]));
        }
        seen.push(key);
    }
}

mod table {
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout = Layout::new(&[NAME, text("Handler", ""), AGE], |view| {
        vec![view.name(), view.object.text("handler").into(), view.age()]
    });
}
