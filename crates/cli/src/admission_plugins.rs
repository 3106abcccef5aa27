//! The admission plugins of kube-apiserver, and what it means here to switch one on or off.

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

/// Off by default, and not there.
const MISSING: &[&str] = &[
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

/// The plugins that are switched off and not switched on. Refuses names that are not known, and plugins that are asked for and
/// that this server does not have.
pub(crate) fn disabled(enabled: &[String], mut disabled: Vec<String>) -> Result<Vec<String>, String> {
    enabled.iter().try_for_each(|name| enable(name))?;
    disabled.iter().try_for_each(|name| disable(name))?;
    disabled.retain(|name| !enabled.contains(name));
    Ok(disabled)
}

/// Whether a plugin may be asked for.
fn enable(name: &str) -> Result<(), String> {
    known(name, "enable")?;
    if MISSING.contains(&name) {
        return Err(format!("--enable-admission-plugins={name}: this server does not have that plugin"));
    }
    Ok(())
}

/// Refuses to switch off a plugin that is not known. One that does not act here can be switched off like any other.
fn disable(name: &str) -> Result<(), String> {
    known(name, "disable")
}

fn known(name: &str, verb: &str) -> Result<(), String> {
    match [DEFAULT, HARMLESS, MISSING].iter().any(|list| list.contains(&name)) {
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
        assert_eq!(disable("NamespaceLifecycle"), Ok(()));
        assert!(enable("Nonsense").is_err() && disable("Nonsense").is_err());
    }

    #[test]
    fn a_plugin_that_is_switched_off_and_on_is_on() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let off = disabled(&names(&["Priority"]), names(&["Priority", "ServiceAccount"]));
        assert_eq!(off, Ok(names(&["ServiceAccount"])));
        assert!(disabled(&[], names(&["Priorities"])).is_err());
    }

    #[test]
    fn every_plugin_of_the_server_is_on_by_default() {
        for name in watchkeeper_apiserver::admission_plugins() {
            assert!(DEFAULT.contains(&name), "{name}");
        }
    }
}
