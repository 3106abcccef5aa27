use crate::kind::row::{STATUS, kind};
use crate::kind::strategy::Fields;
use crate::prepare::object;
use crate::validate::field::{Errors, Field};
use crate::{Kind, NameRule, Subresource};
use serde_json::json;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::dns_1035_label_problems;

pub(crate) const KIND: Kind = kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", "apiservice")
    .categories(&["api-extensions"])
    .cluster_wide()
    .with(&[STATUS])
    .named(NameRule::PathSegment)
    .conditional()
    .upstream_folder("apiregistration.k8s.io/apiservices")
    .prepare_create(prepare_create)
    .validate_name(validate_name)
    .validate_with(validate)
    .validate_subresources(&[(Subresource::Status, validate_status)])
    .status_keeps(&["labels", "annotations", "ownerReferences", "finalizers"])
    .resets(&[(Subresource::Status, &[&["metadata"], &["spec"]])])
    .table(table::TABLE);

/// What this server serves itself is available at once.
fn prepare_create(fields: &mut Fields) {
    let created = fields.get("metadata").map(|metadata| metadata["creationTimestamp"].clone());
    if fields.get("spec").is_none_or(|spec| spec["service"].is_null()) {
        let condition = json!({
            "type": "Available", "status": "True", "reason": "Local", "lastTransitionTime": created,
            "message": "Local APIServices are always available",
        });
        object(fields, "status").insert("conditions".into(), json!([condition]));
    }
}

/// The name is the version and the group that are served, now and after every change.
fn validate_name(object: &Field<'_>, errors: &mut Errors) {
    let (name, spec) = (object.get("metadata").get("name"), object.get("spec"));
    let problems = NameRule::PathSegment.problems(name.text());
    let required = format!("{}.{}", spec.get("version").text(), spec.get("group").text());
    if problems.is_empty() && name.text() != required {
        name.invalid(format!("must be `spec.version+\".\"+spec.group`: {required:?}"), errors);
    }
    problems.into_iter().for_each(|problem| name.invalid(problem, errors));
}

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
    let (group, version) = (spec.get("group"), spec.get("version"));
    if group.is_empty() && version.text() != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(&group.at, detail));
    }
    group.dns_subdomain(errors);
    for problem in dns_1035_label_problems(version.text()) {
        errors.push(FieldError::invalid(&version.at, version.text(), problem));
    }
    for (priority, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = spec.get(priority);
        if !(1..=most).contains(&priority.number().unwrap_or_default()) {
            priority.invalid(format!("must be positive and less than {most}"), errors);
        }
    }
    let (service, bundle, insecure) =
        (spec.get("service"), spec.get("caBundle"), spec.get("insecureSkipTLSVerify"));
    if !service.is_set() {
        if !bundle.is_empty() {
            let length = watchkeeper_go::base64::decode(bundle.text()).map_or(0, |bytes| bytes.len());
            let detail = "local APIServices may not have a caBundle";
            errors.push(FieldError::invalid(&bundle.at, format!("{length} bytes"), detail));
        }
        if insecure.value == true {
            insecure.invalid("local APIServices may not have insecureSkipTLSVerify", errors);
        }
        return;
    }
    for name in ["namespace", "name"] {
        service.get(name).required(errors);
    }
    let port = service.get("port");
    if !(1..=65535).contains(&port.number().unwrap_or_default()) {
        port.invalid("port is not valid: must be between 1 and 65535, inclusive", errors);
    }
    if insecure.value == true && !bundle.is_empty() {
        insecure.invalid("may not be true if caBundle is present", errors);
    }
}

fn validate_status(object: &Field<'_>, _: &Field<'_>, errors: &mut Errors) {
    let status = &object.get("status");
    for condition in status.get("conditions").items() {
        condition.get("status").one_of(&["True", "False", "Unknown"], errors);
    }
}

mod table {
    use serde_json::Value;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Service", "What serves this version of the group."),
            text("Available", "Whether it can be reached."),
            AGE,
        ],
        |view| {
            let service = match view.object.at("spec.service") {
                Value::Null => "Local".into(),
                service => format!("{}/{}", service.text("namespace"), service.text("name")),
            };
            vec![view.name(), service.into(), available(view.object).into(), view.age()]
        },
    );

    fn available(service: &Value) -> String {
        let mut conditions = service.list("status.conditions").iter();
        let Some(condition) = conditions.find(|condition| condition.text("type") == "Available") else {
            return "Unknown".into();
        };
        match (condition.text("status"), condition.text("reason")) {
            (status @ "True", _) | (status, "") => status.into(),
            (status, reason) => format!("{status} ({reason})"),
        }
    }
}
