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

/// Of these, the ones that act here and cannot be switched off.
const FIXED: &[&str] = &[
    "DefaultTolerationSeconds",
    "NamespaceLifecycle",
    "Priority",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
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

/// Whether a plugin may be asked for.
pub(super) fn enable(name: &str) -> Result<(), String> {
    known(name, "enable")?;
    if MISSING.contains(&name) {
        return Err(format!("--enable-admission-plugins={name}: this server does not have that plugin"));
    }
    Ok(())
}

/// Whether a plugin may be done without.
pub(super) fn disable(name: &str) -> Result<(), String> {
    known(name, "disable")?;
    if FIXED.contains(&name) {
        return Err(format!("--disable-admission-plugins={name}: this server cannot do without that plugin"));
    }
    Ok(())
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
        assert!(disable("NamespaceLifecycle").is_err());
        assert!(enable("Nonsense").is_err() && disable("Nonsense").is_err());
    }
}
