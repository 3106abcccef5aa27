use serde::{Deserialize, Serialize};

/// The way in which a program is run in a cluster. The default is that of operators: the only program of an image of its name, without
/// storage, and with no port but that of probes and metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Run {
    /// The component of the application: the label `app.kubernetes.io/component`, and the name of the container.
    pub component: String,
    /// The name of the executable, which is also the default name of the image. Default: that of the description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The arguments before all others. `{name}` and `{namespace}` stand for the name and the namespace of the installation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The option that takes the filter of the log. Without such an option, the variable `RUST_LOG` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_option: Option<String>,
    /// The ports that clients use, besides that of probes and metrics.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ServedPort>,
    /// The memory limit, as a quantity of Kubernetes.
    pub memory: String,
    /// The volume of the program. A program with a volume has one replica.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<Volume>,
    /// A volume in memory that outlives restarts of the container. It is deleted with the Pod, and each replica has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch: Option<Volume>,
}

/// A port that clients use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServedPort {
    /// The name of the port: `https`.
    pub name: String,
    /// The port of the Service.
    pub port: u16,
    /// The port that the program listens on.
    pub target: u16,
}

/// A volume, in storage or in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Volume {
    /// The path at which the volume is mounted.
    pub path: String,
    /// The size, as a quantity of Kubernetes: `1Gi`.
    pub size: String,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            component: "operator".to_owned(),
            program: None,
            arguments: Vec::new(),
            log_option: None,
            ports: Vec::new(),
            memory: "256Mi".to_owned(),
            volume: None,
            scratch: None,
        }
    }
}

impl Run {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
