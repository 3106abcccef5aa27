//! Which standard holds in a namespace: its labels, and what holds where it has none.

use std::collections::BTreeSet;

use serde_json::Value;
use watchkeeper_schema::{FieldError, Path};

/// What the labels of namespaces begin with.
const PREFIX: &str = "pod-security.kubernetes.io/";

/// How much is allowed. The later, the less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    fn read(text: &str) -> Result<Self, &'static str> {
        match text {
            "privileged" => Ok(Self::Privileged),
            "baseline" => Ok(Self::Baseline),
            "restricted" => Ok(Self::Restricted),
            _ => Err("must be one of privileged, baseline, restricted"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// The release whose rules hold: `v1.N`, or the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    Minor(u32),
    Latest,
}

impl Version {
    fn read(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "must be \"latest\" or \"v1.x\"";
        if text == "latest" {
            return Ok(Self::Latest);
        }
        let digits = text.strip_prefix("v1.").ok_or(WRONG)?;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_plain = is_number && (digits.len() == 1 || !digits.starts_with('0'));
        digits.parse().ok().filter(|_| is_plain).map(Self::Minor).ok_or(WRONG)
    }
}

/// A level as of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standard {
    pub(super) level: Level,
    pub(super) version: Version,
}

impl Standard {
    const PRIVILEGED: Self = Self { level: Level::Privileged, version: Version::Latest };

    fn equals(&self, other: &Self) -> bool {
        self == other || [self, other].iter().all(|standard| standard.level == Level::Privileged)
    }
}

impl std::fmt::Display for Standard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.version {
            Version::Latest => write!(f, "{}:latest", self.level.name()),
            Version::Minor(minor) => write!(f, "{}:v1.{minor}", self.level.name()),
        }
    }
}

/// What is refused, what is recorded, and what is warned of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: Standard,
    pub(super) audit: Standard,
    pub(super) warn: Standard,
}

impl Policy {
    const PRIVILEGED: Self =
        Self { enforce: Standard::PRIVILEGED, audit: Standard::PRIVILEGED, warn: Standard::PRIVILEGED };

    /// Whether everything is allowed and nothing is said.
    pub(super) fn allows_everything(&self) -> bool {
        self.equals(&Self::PRIVILEGED)
    }

    fn equals(&self, other: &Self) -> bool {
        self.enforce.equals(&other.enforce)
            && self.audit.equals(&other.audit)
            && self.warn.equals(&other.warn)
    }

    /// What the labels of a namespace say, and what is wrong with them. A level that cannot be read is the strictest for what is
    /// refused, and the widest for the rest.
    pub(super) fn of(namespace: &Value, default: &Self) -> (Self, Vec<FieldError>) {
        let labels = &namespace["metadata"]["labels"];
        let (mut policy, mut errors) = (*default, Vec::new());
        let read = |label: &str| {
            let label = format!("{PREFIX}{label}");
            labels[&label].as_str().map(|text| (label, text))
        };
        let mut wrong = |(label, text): (String, &str), why: &str| {
            let at = Path::root().child("metadata").child("labels").key(&label);
            errors.push(FieldError::invalid(&at, text, why));
        };
        let (mut enforces, mut warns, mut warns_version) = (false, false, false);
        let modes: [(&str, &mut Standard, Level); 3] = [
            ("enforce", &mut policy.enforce, Level::Restricted),
            ("audit", &mut policy.audit, Level::Privileged),
            ("warn", &mut policy.warn, Level::Privileged),
        ];
        for (mode, standard, otherwise) in modes {
            if let Some(found) = read(mode) {
                let level = Level::read(found.1);
                standard.level = level.unwrap_or(otherwise);
                enforces |= mode == "enforce" && level.is_ok();
                warns |= mode == "warn";
                if let Err(why) = level {
                    wrong(found, why);
                }
            }
            if let Some(found) = read(&format!("{mode}-version")) {
                let version = Version::read(found.1);
                standard.version = version.unwrap_or(Version::Latest);
                warns_version |= mode == "warn";
                if let Err(why) = version {
                    wrong(found, why);
                }
            }
        }
        // Who is stricter about what is refused is warned of the same, where nothing else is said.
        if !warns && enforces && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if !warns_version {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, errors)
    }

    /// A warning that the labels of a namespace mean nothing since it is exempt; `None` if they say nothing.
    pub(super) fn ignored(&self, namespace: &Value, default: &Self) -> Option<String> {
        if self.allows_everything() || self.equals(default) {
            return None;
        }
        let labels = &namespace["metadata"]["labels"];
        let said = |mode: &str, standard: &Standard| {
            let has = |label: String| !labels[&label].is_null();
            let is_set = has(format!("{PREFIX}{mode}")) || has(format!("{PREFIX}{mode}-version"));
            (is_set && standard.level != Level::Privileged).then(|| format!("{mode}={standard}"))
        };
        let modes = [("enforce", &self.enforce), ("audit", &self.audit), ("warn", &self.warn)];
        let said: Vec<String> =
            modes.into_iter().filter_map(|(mode, standard)| said(mode, standard)).collect();
        let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
        Some(format!(
            "namespace {name:?} is exempt from Pod Security, and the policy ({}) will be ignored",
            said.join(", ")
        ))
    }
}

/// The defaults for namespaces without labels, and the exemptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSecurityConfiguration {
    pub(super) defaults: Policy,
    /// For whom nothing is checked.
    pub exemptions: PodSecurityExemptions,
}

/// For whom nothing is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSecurityExemptions {
    /// The users, by name.
    pub usernames: BTreeSet<String>,
    /// The namespaces, by name.
    pub namespaces: BTreeSet<String>,
    /// The RuntimeClasses of Pods, by name.
    pub runtime_classes: BTreeSet<String>,
}

impl Default for PodSecurityConfiguration {
    fn default() -> Self {
        Self { defaults: Policy::PRIVILEGED, exemptions: PodSecurityExemptions::default() }
    }
}

impl PodSecurityConfiguration {
    /// Reads a `PodSecurityConfiguration` of `pod-security.admission.config.k8s.io`.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where.
    pub fn read(document: &Value) -> Result<Self, String> {
        let kind = (document["apiVersion"].as_str().unwrap_or_default(), &document["kind"]);
        let group = "pod-security.admission.config.k8s.io/";
        let version = kind.0.strip_prefix(group).unwrap_or_default();
        if !matches!(version, "v1" | "v1beta1" | "v1alpha1") || kind.1 != "PodSecurityConfiguration" {
            return Err(format!("expected a PodSecurityConfiguration of {group}v1"));
        }
        let unknown = |value: &Value, known: &[&str], at: &str| {
            let fields = value.as_object().into_iter().flatten();
            let unknown = fields.map(|(name, _)| name).find(|name| !known.contains(&name.as_str()));
            unknown.map_or(Ok(()), |name| Err(format!("{at}{name}: there is no such field")))
        };
        unknown(document, &["apiVersion", "kind", "defaults", "exemptions"], "")?;
        let defaults = &document["defaults"];
        let modes = ["enforce", "enforce-version", "audit", "audit-version", "warn", "warn-version"];
        unknown(defaults, &modes, "defaults.")?;
        let standard = |mode: &str| -> Result<Standard, String> {
            let said = |field: &str, otherwise: &'static str| match &defaults[field] {
                Value::Null => Ok(otherwise.to_owned()),
                Value::String(text) => Ok(text.clone()),
                other => Err(format!("defaults.{field}: {other} is not a text")),
            };
            let (level, version) = (said(mode, "privileged")?, said(&format!("{mode}-version"), "latest")?);
            let wrong = |field: String, text: &str, why: &str| {
                format!("defaults.{field}: Invalid value: {text:?}: {why}")
            };
            Ok(Standard {
                level: Level::read(&level).map_err(|why| wrong(mode.to_owned(), &level, why))?,
                version: Version::read(&version)
                    .map_err(|why| wrong(format!("{mode}-version"), &version, why))?,
            })
        };
        let exempt = &document["exemptions"];
        unknown(exempt, &["usernames", "namespaces", "runtimeClasses"], "exemptions.")?;
        let names = |field: &str| -> Result<BTreeSet<String>, String> {
            let mut names = BTreeSet::new();
            for (index, name) in exempt[field].as_array().into_iter().flatten().enumerate() {
                let name = name.as_str().filter(|name| !name.is_empty());
                let name = name.ok_or_else(|| format!("exemptions.{field}[{index}]: must not be empty"))?;
                if !names.insert(name.to_owned()) {
                    return Err(format!("exemptions.{field}[{index}]: Duplicate value: {name:?}"));
                }
            }
            Ok(names)
        };
        Ok(Self {
            defaults: Policy {
                enforce: standard("enforce")?,
                audit: standard("audit")?,
                warn: standard("warn")?,
            },
            exemptions: PodSecurityExemptions {
                usernames: names("usernames")?,
                namespaces: names("namespaces")?,
                runtime_classes: names("runtimeClasses")?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(labels: Value) -> (Policy, Vec<String>) {
        let labels: serde_json::Map<String, Value> = labels
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| (format!("{PREFIX}{name}"), value.clone()))
            .collect();
        let namespace = json!({"metadata": {"name": "n", "labels": labels}});
        let (policy, errors) = Policy::of(&namespace, &Policy::PRIVILEGED);
        (policy, errors.iter().map(|error| error.field.clone()).collect())
    }

    #[test]
    fn who_enforces_is_warned_of_the_same_unless_something_else_is_said() {
        let (found, errors) = policy(json!({"enforce": "baseline", "enforce-version": "v1.24"}));
        assert_eq!(
            (found.enforce.to_string(), found.warn.to_string()),
            ("baseline:v1.24".into(), "baseline:v1.24".into())
        );
        assert!(errors.is_empty() && found.audit.level == Level::Privileged);
        let (found, _) = policy(json!({"enforce": "baseline", "warn": "restricted", "warn-version": "v1.0"}));
        assert_eq!(found.warn.to_string(), "restricted:v1.0");
        let (found, _) = policy(json!({"enforce": "baseline", "warn": "privileged"}));
        assert_eq!(found.warn.level, Level::Privileged);
    }

    #[test]
    fn labels_that_cannot_be_read_refuse_most_and_warn_of_nothing() {
        let (found, errors) =
            policy(json!({"enforce": "strict", "audit": "x", "warn": "", "warn-version": "1.24"}));
        assert_eq!(found.enforce.to_string(), "restricted:latest");
        assert_eq!((found.audit.level, found.warn.level), (Level::Privileged, Level::Privileged));
        assert_eq!(errors.len(), 4);
        for wrong in ["v1.", "v1.01", "v2.1", "1.2", "v1.2.3", "v1.99999999999", "Latest"] {
            assert!(Version::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_configuration_says_what_is_wrong_with_it() {
        let head = |fields: Value| {
            let mut document = json!({
                "apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
            });
            document.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            PodSecurityConfiguration::read(&document)
        };
        let read =
            head(json!({"defaults": {"enforce": "baseline"}, "exemptions": {"namespaces": ["kube-system"]}}))
                .unwrap();
        assert_eq!(read.defaults.enforce.to_string(), "baseline:latest");
        assert!(read.exemptions.namespaces.contains("kube-system"));
        assert!(head(json!({"defaults": {"enforce": "none"}})).unwrap_err().contains("defaults.enforce"));
        assert!(
            head(json!({"defaults": {"enforced": "baseline"}})).unwrap_err().contains("defaults.enforced")
        );
        assert!(head(json!({"exemptions": {"usernames": ["a", "a"]}})).unwrap_err().contains("usernames[1]"));
        assert!(PodSecurityConfiguration::read(&json!({})).is_err());
    }
}
