use std::str::FromStr;

use watchkeeper_apiserver::Options;

/// The controllers that run in the server, by the names that kube-controller-manager has for them, the older ones second.
const KNOWN: [[&str; 2]; 9] = [
    ["namespace-controller", "namespace"],
    ["garbage-collector-controller", "garbagecollector"],
    ["serviceaccount-controller", "serviceaccount"],
    ["root-ca-certificate-publisher-controller", "root-ca-cert-publisher"],
    ["clusterrole-aggregation-controller", "clusterrole-aggregation"],
    ["resourcequota-controller", "resourcequota"],
    ["persistentvolumeclaim-protection-controller", "pvc-protection"],
    ["persistentvolume-protection-controller", "pv-protection"],
    // There is no older name.
    ["volumeattributesclass-protection-controller", "volumeattributesclass-protection-controller"],
];

impl Controllers {
    /// None of them: what kube-apiserver does without kube-controller-manager.
    pub(crate) const NONE: Self = Self([false; KNOWN.len()]);
}

/// Which controllers run, as kube-controller-manager is told: `*` is all of them, `name` that one, `-name` all but that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Controllers([bool; KNOWN.len()]);

impl Controllers {
    /// Turns off what is not to run.
    pub(crate) fn choose(self, options: &mut Options) {
        let [namespaces, garbage, accounts, certificates, roles, quotas, claims, volumes, classes] = self.0;
        options.namespace_deletion = namespaces;
        options.garbage_collection = garbage;
        options.service_accounts = accounts;
        options.role_aggregation = roles;
        options.resource_quotas = quotas;
        options.root_ca_publishing = certificates;
        options.claim_protection = claims;
        options.volume_protection = volumes;
        options.volume_attributes_class_protection = classes;
    }
}

impl FromStr for Controllers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        let known = |word: &str| KNOWN.iter().position(|names| names.contains(&word));
        for word in words.iter().filter(|word| **word != "*") {
            if known(word.strip_prefix('-').unwrap_or(word)).is_none() {
                let names = KNOWN.map(|names| names[0]).join(", ");
                return Err(format!("{word:?} is none of the controllers there are: {names}"));
            }
        }
        let is_on = |index: usize| {
            let said = words.iter().find_map(|word| match word.strip_prefix('-') {
                Some(name) => (known(name) == Some(index)).then_some(false),
                None => (known(word) == Some(index)).then_some(true),
            });
            said.unwrap_or(words.contains(&"*"))
        };
        Ok(Self(std::array::from_fn(is_on)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_chosen_as_kube_controller_manager_does_it() {
        let all_but = |off: &[usize]| Controllers(std::array::from_fn(|index| !off.contains(&index)));
        let only = |on: usize| Controllers(std::array::from_fn(|index| index == on));
        for (text, wanted) in [
            ("*", all_but(&[])),
            ("", Controllers::NONE),
            ("*,-namespace,-garbagecollector", all_but(&[0, 1])),
            ("namespace-controller", only(0)),
            ("*,-root-ca-certificate-publisher-controller", all_but(&[3])),
            ("-serviceaccount, *", all_but(&[2])),
            ("*,-pvc-protection,-persistentvolume-protection-controller", all_but(&[6, 7])),
            ("volumeattributesclass-protection-controller", only(8)),
        ] {
            assert_eq!(text.parse(), Ok(wanted), "{text}");
        }
        let error = "*,-deployment".parse::<Controllers>().unwrap_err();
        assert!(error.starts_with("\"-deployment\" is none of"), "{error}");
    }
}
