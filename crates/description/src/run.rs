use serde::{Deserialize, Serialize};

/// How a program is run in a cluster. The default is how operators are run: as the only program of an image of their name, without
/// storage, and reached by nobody but probes and scrapers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Run {
    /// What it is among the parts of an application: the label `app.kubernetes.io/component`, and the name of its container.
    pub component: String,
    /// The name of the executable, which is also the default name of the image. Default: that of the description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Arguments before all others. `{name}` and `{namespace}` stand for the name that it is installed under and its namespace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The option that takes the filter of the log. Without one, the variable `RUST_LOG` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_option: Option<String>,
    /// The ports that clients use, besides that of probes and metrics.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ServedPort>,
    /// How much memory it may have, as Kubernetes writes quantities.
    pub memory: String,
    /// What it keeps. A program that keeps something has one replica.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<Volume>,
    /// What it keeps in memory for the next run of itself in the same Pod: it is gone with the Pod, and each replica has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch: Option<Volume>,
}

/// A port that clients use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServedPort {
    /// Its name: `https`.
    pub name: String,
    /// The port of the Service.
    pub port: u16,
    /// The port that the program listens on.
    pub target: u16,
}

/// A volume of its own, or a part of memory that is mounted as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Volume {
    /// Where it is mounted.
    pub path: String,
    /// How large it is, as Kubernetes writes quantities: `1Gi`.
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
