use crate::column::{AGE, NAME, text};
use crate::fields::Fields;
use crate::printer::{Printer, View};
use crate::quantity::canonical;
use serde_json::Value;

pub(super) static NAMESPACE: Printer =
    Printer::new(&[NAME, text("Status", "Whether the namespace is in use or being deleted."), AGE], |view| {
        vec![view.name(), view.object.text_or("status.phase", "Active").into(), view.age()]
    });

pub(super) static CONFIG_MAP: Printer =
    Printer::new(&[NAME, text("Data", "How many entries there are."), AGE], |view| {
        let entries = view.object.len("data") + view.object.len("binaryData");
        vec![view.name(), entries.into(), view.age()]
    });

pub(super) static SECRET: Printer = Printer::new(
    &[NAME, text("Type", "What the secret is for."), text("Data", "How many entries there are."), AGE],
    |view| {
        let kind = view.object.text_or("type", "Opaque");
        vec![view.name(), kind.into(), view.object.len("data").into(), view.age()]
    },
);

pub(super) static RESOURCE_QUOTA: Printer = Printer::new(
    &[
        NAME,
        text("Request", "Used and allowed amounts of what may be requested."),
        text("Limit", "Used and allowed amounts of what limits may add up to."),
        AGE,
    ],
    resource_quota,
);

pub(super) static COMPONENT_STATUS: Printer = Printer::new(
    &[
        NAME,
        text("Status", "Whether the component is healthy."),
        text("Message", "What the component says."),
        text("Error", "What went wrong."),
    ],
    |view| {
        let conditions = view.object.list("conditions").iter();
        let healthy = conditions.into_iter().find(|condition| condition.text("type") == "Healthy");
        let status = match healthy.map(|condition| condition.text("status")) {
            None => "Unknown",
            Some("True") => "Healthy",
            Some(_) => "Unhealthy",
        };
        let say = |name| healthy.map_or("", |condition| condition.text(name));
        vec![view.name(), status.into(), say("message").into(), say("error").into()]
    },
);

fn resource_quota(view: &View<'_>) -> Vec<Value> {
    let quota = view.object;
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (name, hard) in quota.at("status.hard").as_object().into_iter().flatten() {
        let used = quota.at("status.used").as_object().and_then(|used| used.get(name));
        let used = canonical(used.unwrap_or(&Value::Null));
        let column = if name.starts_with("limits.") { &mut limits } else { &mut requests };
        column.push(format!("{name}: {used}/{}", canonical(hard)));
    }
    vec![view.name(), requests.join(", ").into(), limits.join(", ").into(), view.age()]
}
