/// The error of an operator that cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name of the operator is not valid in a cluster.
    #[error(
        "the operator is called {0:?}, which is no DNS label of at most 50 characters: give its package another name"
    )]
    Name(String),
    /// The name of a namespace is invalid.
    #[error("{0:?} is no namespace: it has to be a DNS label of at most 63 characters")]
    Namespace(String),
    /// A definition lacks something that every definition has.
    #[error(
        "definition {name}: {field} is missing or no text: this is no CustomResourceDefinition of apiextensions.k8s.io/v1"
    )]
    Definition {
        /// The name of the definition, or its place.
        name: String,
        /// The field.
        field: &'static str,
    },
    /// A bundle for the Operator Lifecycle Manager cannot install the program. Everything else can be rendered.
    #[error(
        "{name} has no bundle for the Operator Lifecycle Manager: {why}; its chart and manifests install it"
    )]
    Bundle {
        /// The name of the program.
        name: String,
        /// The part of the operator that a bundle does not support.
        why: String,
    },
}
