//! What people declare, and what they are told. The schema of the definition is made of these types.

use watchkeeper::prelude::*;

/// A message that is kept in a ConfigMap.
#[watchkeeper::kind(
    group = "gadgets.example.com",
    version = "v1alpha1",
    kind = "Gadget",
    plural = "gadgets",
    // <!cluster>
    namespaced,
    // </!cluster>
    status = "GadgetStatus",
    printcolumn("Message", ".spec.message"),
    printcolumn("Ready", ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq, Eq)]
pub struct GadgetSpec {
    /// The text that is kept.
    #[schemars(length(min = 1, max = 1024))]
    pub message: String,
    // <cluster>
    //= /// The namespace of the ConfigMap.
    //= #[schemars(length(min = 1, max = 63))]
    //= pub namespace: String,
    // </cluster>
}

/// What the operator reports.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct GadgetStatus {
    /// The generation of the spec that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`: the ConfigMap says what is declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
