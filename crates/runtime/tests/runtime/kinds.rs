//! The kinds that the tests work with.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use watchkeeper_client::Condition;

/// A custom resource with everything that controllers care about.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(group = "test.watchkeeper.dev", version = "v1", kind = "Widget", namespaced, status = "WidgetStatus")]
pub(crate) struct WidgetSpec {
    pub(crate) size: u32,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub(crate) struct WidgetStatus {
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
    #[serde(default)]
    pub(crate) seen: u32,
}

pub(crate) fn widget(name: &str, size: u32) -> Widget {
    let mut widget = Widget::new(name, WidgetSpec { size });
    widget.metadata.namespace = Some("default".into());
    widget
}

pub(crate) fn map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let data: BTreeMap<String, String> = data.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            namespace: Some("default".into()),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    }
}
