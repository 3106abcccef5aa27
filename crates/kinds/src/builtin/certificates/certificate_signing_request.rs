use crate::kind::row::{APPROVAL, STATUS, field, kind};
use crate::kind::strategy::Fields;
use crate::prepare::{keep, same};
use crate::validate::field::{Errors, Field};
use crate::validate::names::signer;
use crate::{Kind, NameRule, Subresource, pem};
use serde_json::Value;
use std::collections::HashSet;
use watchkeeper_go::base64;
use watchkeeper_schema::{FieldError, Path};

pub(crate) const KIND: Kind = kind(
    "certificates.k8s.io",
    "v1",
    "CertificateSigningRequest",
    "certificatesigningrequests",
    "certificatesigningrequest",
)
.short(&["csr"])
.cluster_wide()
.with(&[APPROVAL, STATUS])
.named(NameRule::Any)
.selectable(&[field("spec.signerName", "")])
.prepare_update(|new, old| keep(new, Some(old), "spec"))
.prepare_status_update(keep_decisions)
.validate_with(|object, _, errors| request(object, errors))
.validate_update(|new, old, errors| changes(Subresource::Main, new, old, errors))
.validate_subresources(&[(Subresource::Status, validate_status), (Subresource::Approval, validate_approval)])
.resets(&[
    (Subresource::Main, &[&["spec"], &["status"]]),
    (Subresource::Status, &[&["spec"], &["status", "conditions"]]),
    (Subresource::Approval, &[&["spec"], &["status", "certificate"]]),
])
.table(table::TABLE);

/// What a certificate can be for, sorted.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// Decisions on a request for a certificate are as before, if there are as many.
fn keep_decisions(new: &mut Fields, old: &Fields) {
    fn of_type<'a>(status: Option<&'a mut Value>, kind: &'a str) -> impl Iterator<Item = &'a mut Value> {
        let conditions = status.and_then(|status| status.get_mut("conditions")).and_then(Value::as_array_mut);
        conditions.into_iter().flatten().filter(move |condition| condition["type"] == kind)
    }
    let mut before = old.get("status").cloned();
    for kind in ["Approved", "Denied"] {
        let known: Vec<Value> = of_type(before.as_mut(), kind).map(|condition| condition.clone()).collect();
        if of_type(new.get_mut("status"), kind).count() == known.len() {
            of_type(new.get_mut("status"), kind).zip(known).for_each(|(condition, known)| *condition = known);
        }
    }
}

/// A request, whichever of its parts is written.
fn request(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let request = spec.get("request");
    let bytes = base64::decode(request.text()).unwrap_or_default();
    if let Err(problem) = pem::certificate_request(&bytes) {
        request.invalid(problem, errors);
    }
    let usages = spec.get("usages");
    usages.required(errors);
    for usage in usages.items() {
        usage.one_of(&USAGES, errors);
    }
    let mut seen = HashSet::new();
    for usage in usages.items().filter(|usage| !seen.insert(usage.text())) {
        errors.push(FieldError::duplicate(&usage.at, usage.text()));
    }
    let name = spec.get("signerName");
    if name.text() == LEGACY {
        name.invalid("the legacy signerName is not allowed via this API version", errors);
    } else {
        signer(&name, errors);
    }
    let seconds = spec.get("expirationSeconds");
    if seconds.number().is_some_and(|seconds| seconds < 600) {
        seconds.invalid("may not specify a duration less than 600 seconds (10 minutes)", errors);
    }
    let status = object.get("status");
    conditions(&status.get("conditions"), errors);
    let certificate = status.get("certificate");
    let bytes = base64::decode(certificate.text()).unwrap_or_default();
    if let Some(problem) = pem::certificates_problem(&bytes).filter(|_| !bytes.is_empty()) {
        errors.push(FieldError::invalid(&certificate.at, "<certificate data>", problem));
    }
}

fn conditions(conditions: &Field<'_>, errors: &mut Errors) {
    let (mut seen, mut decided) = (HashSet::new(), None);
    for condition in conditions.items() {
        let (kind, status) = (condition.get("type"), condition.get("status"));
        kind.required(errors);
        if status.required(errors) {
            let is_final = matches!(kind.text(), "Approved" | "Denied" | "Failed");
            status.one_of(if is_final { &["True"] } else { &["False", "True", "Unknown"] }, errors);
        }
        if matches!(kind.text(), "Approved" | "Denied") {
            if decided.is_some_and(|decided| decided != kind.text()) {
                let detail = "Approved and Denied conditions are mutually exclusive";
                errors.push(FieldError::invalid(&conditions.at, kind.text(), detail));
            }
            decided = Some(kind.text());
        }
        if !seen.insert(kind.text()) {
            errors.push(FieldError::duplicate(&kind.at, kind.text()));
        }
    }
}

fn validate_status(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    request(new, errors);
    changes(Subresource::Status, new, old, errors);
}

fn validate_approval(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    request(new, errors);
    changes(Subresource::Approval, new, old, errors);
}

/// What may not change: a decision is final, and only its own door leads to it, and so it is with the certificate.
fn changes(part: Subresource, new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let at = Path::root().child("status").child("conditions");
    for kind in ["Approved", "Denied", "Failed"] {
        if of_type(new, kind).len() < of_type(old, kind).len() {
            let detail = format!("updates may not remove a condition of type {kind:?}");
            errors.push(FieldError::forbidden(&at, detail));
        }
    }
    for kind in ["Approved", "Denied"].into_iter().filter(|_| part != Subresource::Approval) {
        let (after, before) = (of_type(new, kind), of_type(old, kind));
        let change = match after.len().cmp(&before.len()) {
            std::cmp::Ordering::Greater => "add",
            std::cmp::Ordering::Equal if after != before => "modify",
            _ => continue,
        };
        let detail = format!("updates may not {change} a condition of type {kind:?}");
        errors.push(FieldError::forbidden(&at, detail));
    }
    let [after, before] = [new, old].map(|object| object.get("status").get("certificate"));
    if !same(Some(after.value), Some(before.value)) {
        if part != Subresource::Status {
            errors.push(FieldError::forbidden(&after.at, "updates may not set certificate content"));
        } else if !before.is_empty() {
            errors.push(FieldError::forbidden(
                &after.at,
                "updates may not modify existing certificate content",
            ));
        }
    }
}

fn of_type<'a>(object: &Field<'a>, kind: &str) -> Vec<&'a Value> {
    let conditions = object.get("status").get("conditions");
    conditions
        .items()
        .filter(|condition| condition.get("type").text() == kind)
        .map(|condition| condition.value)
        .collect()
}

mod table {
    use serde_json::Value;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, human_seconds, text};

    pub(super) const TABLE: Layout = Layout::new(
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

    fn progress(request: &Value) -> String {
        let has =
            |kind| request.list("status.conditions").iter().any(|condition| condition.text("type") == kind);
        let decision = match () {
            () if has("Denied") => "Denied",
            () if has("Approved") => "Approved",
            () => "Pending",
        };
        let failed = if has("Failed") { ",Failed" } else { "" };
        let issued = if request.text("status.certificate").is_empty() { "" } else { ",Issued" };
        format!("{decision}{failed}{issued}")
    }
}
