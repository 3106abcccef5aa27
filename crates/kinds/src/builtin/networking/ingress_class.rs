use crate::Kind;
use crate::kind::row::kind;
use crate::validate::field::{Errors, Field};
use crate::validate::names::{domain_prefixed, typed_reference};
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind =
    kind("networking.k8s.io", "v1", "IngressClass", "ingressclasses", "ingressclass")
        .cluster_wide()
        .generation()
        .immutable(&["spec.controller"])
        .validate_with(validate)
        .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
    let (controller, parameters) = (spec.get("controller"), spec.get("parameters"));
    if controller.required(errors) {
        domain_prefixed(&controller, errors);
    }
    if !parameters.is_set() {
        return;
    }
    typed_reference(&parameters, errors);
    let (scope, namespace) = (parameters.get("scope"), parameters.get("namespace"));
    if !scope.is_set() {
        errors.push(FieldError::required(&scope.at, ""));
    }
    scope.one_of(&["Cluster", "Namespace"], errors);
    match scope.text() {
        "Namespace" if namespace.is_empty() => {
            errors.push(FieldError::required(&namespace.at, "`parameters.scope` is set to 'Namespace'"));
        }
        "Namespace" => namespace.dns_label(errors),
        "Cluster" => {
            namespace.forbidden_if_set("`parameters.scope` is set to 'Cluster'", errors);
        }
        _ => {}
    }
}

mod table {
    use serde_json::Value;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Controller", "What serves ingresses of this class."),
            text("Parameters", "The object that configures the class."),
            AGE,
        ],
        |view| {
            let class = view.object;
            let default = class.entry("metadata.annotations", "ingressclass.kubernetes.io/is-default-class");
            let mut name = class.text("metadata.name").to_owned();
            if default == Some("true") {
                name.push_str(" (default)");
            }
            let parameters = match class.at("spec.parameters") {
                Value::Null => "<none>".into(),
                parameters => {
                    let group = parameters.at("apiGroup").as_str().map(|group| format!(".{group}"));
                    format!(
                        "{}{}/{}",
                        parameters.text("kind"),
                        group.unwrap_or_default(),
                        parameters.text("name")
                    )
                }
            };
            vec![name.into(), class.text("spec.controller").into(), parameters.into(), view.age()]
        },
    );
}
