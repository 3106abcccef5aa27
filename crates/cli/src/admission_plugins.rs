//! The admission plugins of kube-apiserver, and what it means here to switch one on or off.

use std::path::Path;

use serde_json::Value;
use watchkeeper_apiserver::{Options, PodSecurityConfiguration, admission_plugins};

/// On by default. What they add to objects is added here too, as far as `docs/compatibility.md` does not say otherwise.
const DEFAULT: &[&str] = &[
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "JobValidation",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceLifecycle",
    "NodeDeclaredFeatureValidator",
    "PersistentVolumeClaimResize",
    "PodGroupProtection",
    "PodGroupWorkloadExists",
    "PodResizeValidator",
    "PodSecurity",
    "PodTopologyLabels",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// Off by default, and without effect on anybody but nodes.
const HARMLESS: &[&str] = &["AlwaysAdmit", "NamespaceExists", "NodeRestriction"];

/// Off by default. One of them can be switched on if the server has it.
const OPTIONAL: &[&str] = &[
    "AlwaysDeny",
    "AlwaysPullImages",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "NamespaceAutoProvision",
    "OwnerReferencesPermissionEnforcement",
    "PodNodeSelector",
    "PodTolerationRestriction",
];

/// The plugins that are switched on and off, and how they are configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AdmissionPlugins {
    enabled: Vec<String>,
    disabled: Vec<String>,
    pod_security: PodSecurityConfiguration,
}

impl AdmissionPlugins {
    /// The plugins with these names are switched on, those off. Refuses names that are not known, and plugins that are asked for and
    /// that this server does not have.
    pub(crate) fn new(enabled: Vec<String>, mut disabled: Vec<String>) -> Result<Self, String> {
        enabled.iter().try_for_each(|name| enable(name))?;
        disabled.iter().try_for_each(|name| disable(name))?;
        disabled.retain(|name| !enabled.contains(name));
        Ok(Self { enabled, disabled, pod_security: PodSecurityConfiguration::default() })
    }

    /// The same with the configuration of `--admission-control-config-file`.
    pub(crate) fn configured(mut self, file: Option<&Path>) -> Result<Self, String> {
        if let Some(file) = file {
            let said =
                |problem: String| format!("--admission-control-config-file={}: {problem}", file.display());
            self.pod_security = configuration(file).map_err(said)?;
        }
        Ok(self)
    }

    /// Whether a plugin is switched off.
    pub(crate) fn is_off(&self, name: &str) -> bool {
        self.disabled.iter().any(|disabled| disabled == name)
    }

    /// Has a server use them.
    pub(crate) fn choose(self, options: &mut Options) {
        options.enabled_admission_plugins = self.enabled;
        options.disabled_admission_plugins = self.disabled;
        options.pod_security = self.pod_security;
    }
}

/// The configuration of PodSecurity in an `AdmissionConfiguration`, which may name a file of its own for it.
fn configuration(file: &Path) -> Result<PodSecurityConfiguration, String> {
    let document = document(file)?;
    let version =
        document["apiVersion"].as_str().and_then(|text| text.strip_prefix("apiserver.config.k8s.io/"));
    if !matches!(version, Some("v1" | "v1alpha1")) || document["kind"] != "AdmissionConfiguration" {
        return Err("expected an AdmissionConfiguration of apiserver.config.k8s.io/v1".to_owned());
    }
    let mut found = PodSecurityConfiguration::default();
    for plugin in document["plugins"].as_array().into_iter().flatten() {
        let name = plugin["name"].as_str().unwrap_or_default();
        if name != "PodSecurity" {
            return Err(format!("plugins: {name:?} cannot be configured; PodSecurity can"));
        }
        let said = match (&plugin["configuration"], plugin["path"].as_str()) {
            (Value::Null, Some(path)) => self::document(&file.parent().unwrap_or(Path::new(".")).join(path))?,
            (configuration, _) => configuration.clone(),
        };
        found = PodSecurityConfiguration::read(&said).map_err(|problem| format!("{name}: {problem}"))?;
    }
    Ok(found)
}

/// Reads a file of YAML or JSON.
fn document(file: &Path) -> Result<Value, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let decoded = watchkeeper_schema::yaml::decode(&bytes);
    decoded.map(|decoded| decoded.value).map_err(|error| format!("{}: {error}", file.display()))
}

/// Whether a plugin may be asked for.
fn enable(name: &str) -> Result<(), String> {
    known(name, "enable")?;
    if OPTIONAL.contains(&name) && admission_plugins().all(|there| there != name) {
        return Err(format!("--enable-admission-plugins={name}: this server does not have that plugin"));
    }
    Ok(())
}

/// Refuses to switch off a plugin that is not known. One that does not act here can be switched off like any other.
fn disable(name: &str) -> Result<(), String> {
    known(name, "disable")
}

fn known(name: &str, verb: &str) -> Result<(), String> {
    match [DEFAULT, OPTIONAL, HARMLESS].iter().any(|list| list.contains(&name)) {
        true => Ok(()),
        false => Err(format!("--{verb}-admission-plugins={name}: there is no such plugin in Kubernetes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_refused_where_a_test_would_miss_them() {
        assert_eq!(disable("ServiceAccount"), Ok(()));
        assert_eq!(enable("NodeRestriction"), Ok(()));
        assert_eq!(enable("ValidatingAdmissionWebhook"), Ok(()));
        assert!(enable("AlwaysPullImages").is_err());
        assert_eq!(enable("OwnerReferencesPermissionEnforcement"), Ok(()));
        assert_eq!(disable("NamespaceLifecycle"), Ok(()));
        assert!(enable("Nonsense").is_err() && disable("Nonsense").is_err());
    }

    #[test]
    fn a_plugin_that_is_switched_off_and_on_is_on() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let chosen =
            AdmissionPlugins::new(names(&["Priority"]), names(&["Priority", "ServiceAccount"])).unwrap();
        assert!(chosen.is_off("ServiceAccount") && !chosen.is_off("Priority"));
        assert!(AdmissionPlugins::new(Vec::new(), names(&["Priorities"])).is_err());
    }

    #[test]
    fn every_plugin_of_the_server_is_on_where_upstreams_is() {
        for name in admission_plugins() {
            let is_on = watchkeeper_apiserver::admission_plugin_is_on_by_default(name);
            assert!(if is_on { DEFAULT } else { OPTIONAL }.contains(&name), "{name}");
        }
    }

    #[test]
    fn a_configuration_is_read_from_its_file_or_from_one_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            file
        };
        let own = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n\
                   exemptions: {namespaces: [kube-system]}\n";
        write("own.yaml", own);
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";
        let file = write("a.yaml", &format!("{head}plugins: [{{name: PodSecurity, path: own.yaml}}]"));
        let chosen = AdmissionPlugins::default().configured(Some(&file)).unwrap();
        assert!(chosen.pod_security.exemptions.namespaces.contains("kube-system"));
        let file = write("b.yaml", &format!("{head}plugins: [{{name: ResourceQuota, configuration: {{}}}}]"));
        let wrong = AdmissionPlugins::default().configured(Some(&file)).unwrap_err();
        assert!(wrong.contains("b.yaml") && wrong.contains("ResourceQuota"), "{wrong}");
        let file = write("c.yaml", &format!("{head}plugins: [{{name: PodSecurity, path: missing.yaml}}]"));
        assert!(AdmissionPlugins::default().configured(Some(&file)).unwrap_err().contains("missing.yaml"));
    }
}
