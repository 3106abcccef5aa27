use crate::column::{AGE, NAME, boolean, integer, text};
use crate::duration::human_seconds;
use crate::fields::Fields;
use crate::printer::Printer;
use serde_json::Value;

pub(super) static LEASE: Printer =
    Printer::new(&[NAME, text("Holder", "Who holds the lease."), AGE], |view| {
        vec![view.name(), view.object.text("spec.holderIdentity").into(), view.age()]
    });

pub(super) static LEASE_CANDIDATE: Printer = Printer::new(
    &[
        NAME,
        text("LeaseName", "The lease that is wanted."),
        text("BinaryVersion", "The version of the candidate."),
        text("EmulationVersion", "The version that the candidate behaves as."),
        AGE,
    ],
    |view| {
        let spec = view.object.at("spec");
        vec![
            view.name(),
            spec.text("leaseName").into(),
            spec.text("binaryVersion").into(),
            spec.text("emulationVersion").into(),
            view.age(),
        ]
    },
);

pub(super) static PRIORITY_CLASS: Printer = Printer::new(
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

pub(super) static RUNTIME_CLASS: Printer = Printer::new(&[NAME, text("Handler", ""), AGE], |view| {
    vec![view.name(), view.object.text("handler").into(), view.age()]
});

pub(super) static API_SERVICE: Printer = Printer::new(
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

pub(super) static CERTIFICATE_SIGNING_REQUEST: Printer = Printer::new(
    &[
        NAME,
        AGE,
        text("SignerName", "Who is asked to sign."),
        text("Requestor", "Who asks."),
        text("RequestedDuration", "How long the certificate should be valid."),
        text("Condition", "How far the request has come."),
    ],
    |view| {
        let request = view.object;
        let duration = request.at("spec.expirationSeconds").as_i64();
        vec![
            view.name(),
            view.age(),
            request.text_or("spec.signerName", "<none>").into(),
            request.text("spec.username").into(),
            duration.map_or_else(|| "<none>".into(), human_seconds).into(),
            progress(request).into(),
        ]
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

fn progress(request: &Value) -> String {
    let has = |kind| request.list("status.conditions").iter().any(|condition| condition.text("type") == kind);
    let decision = match () {
        () if has("Denied") => "Denied",
        () if has("Approved") => "Approved",
        () => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if request.text("status.certificate").is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}
