//! What field selectors may name.

use super::row::{field, field_at};
use crate::kind::SelectableField;

pub(super) const POD_FIELDS: &[SelectableField] = &[
    field("spec.nodeName", ""),
    field("spec.restartPolicy", ""),
    field("spec.schedulerName", ""),
    field("spec.serviceAccountName", ""),
    field("spec.hostNetwork", "false"),
    field("status.phase", ""),
    field("status.podIP", ""),
    field("status.podIPs", ""),
    field("status.nominatedNodeName", ""),
    field_at("spec.host", "spec.nodeName", ""),
];

pub(super) const CORE_EVENT_FIELDS: &[SelectableField] = &[
    field("involvedObject.kind", ""),
    field("involvedObject.namespace", ""),
    field("involvedObject.name", ""),
    field("involvedObject.uid", ""),
    field("involvedObject.apiVersion", ""),
    field("involvedObject.resourceVersion", ""),
    field("involvedObject.fieldPath", ""),
    field("reason", ""),
    field("reportingComponent", ""),
    field_at("source", "source.component", ""),
    field("type", ""),
];

pub(super) const NEW_EVENT_FIELDS: &[SelectableField] = &[
    field("reason", ""),
    field("regarding.kind", ""),
    field("regarding.namespace", ""),
    field("regarding.name", ""),
    field("regarding.uid", ""),
    field("regarding.apiVersion", ""),
    field("regarding.resourceVersion", ""),
    field("regarding.fieldPath", ""),
    field("reportingController", ""),
    field("type", ""),
];

pub(super) const SLICE_FIELDS: &[SelectableField] = &[field("spec.nodeName", ""), field("spec.driver", "")];
