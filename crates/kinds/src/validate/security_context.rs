//! The security context of a pod, in its spec or in that of a template.

use super::field::{Errors, Field};
use std::collections::HashSet;
use watchkeeper_schema::FieldError;

/// The longest name of a kernel parameter.
const LONGEST_SYSCTL: usize = 253;

/// The parameters of a kernel that each namespace of it has, besides those that [`namespace_of`] knows by their beginnings.
const IPC_SYSCTLS: [&str; 10] = [
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];

/// What is wrong with the security context of a pod.
pub(super) fn pod_security_context(spec: &Field<'_>, errors: &mut Errors) {
    let context = &spec.get("securityContext");
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(&context.get(name), errors);
    }
    context.get("supplementalGroups").items().for_each(|group| id(&group, errors));
    if spec.get("shareProcessNamespace").value == true && spec.get("hostPID").value == true {
        let at = context.at.child("shareProcessNamespace");
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(&at, true, detail));
    }
    sysctls(spec, &context.get("sysctls"), errors);
    context.get("fsGroupChangePolicy").one_of(&["Always", "OnRootMismatch"], errors);
    seccomp_profile(&context.get("seccompProfile"), errors);
    context.get("supplementalGroupsPolicy").one_of(&["Merge", "Strict"], errors);
    context.get("seLinuxChangePolicy").one_of(&["Recursive"], errors);
}

/// The number of a user or a group.
fn id(field: &Field<'_>, errors: &mut Errors) {
    if field.number().is_some_and(|id| !(0..=i64::from(i32::MAX)).contains(&id)) {
        field.invalid("must be between 0 and 2147483647, inclusive", errors);
    }
}

fn sysctls(spec: &Field<'_>, sysctls: &Field<'_>, errors: &mut Errors) {
    let mut names = HashSet::new();
    for name in sysctls.items().map(|sysctl| sysctl.get("name")) {
        let text = name.text();
        if text.is_empty() {
            errors.push(FieldError::required(&name.at, ""));
        } else if text.len() > LONGEST_SYSCTL || !is_sysctl(text) {
            let pattern = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            let detail = format!("must have at most {LONGEST_SYSCTL} characters and match regex {pattern}");
            name.invalid(detail, errors);
        } else if !names.insert(text) {
            errors.push(FieldError::duplicate(&name.at, text));
        }
        let host = match namespace_of(text) {
            Some(Namespace::Net) => "hostNetwork",
            Some(Namespace::Ipc) => "hostIPC",
            None => continue,
        };
        if spec.get(host).value == true {
            name.invalid(format!("may not be specified when '{host}' is true"), errors);
        }
    }
}

/// Whether a text is the name of a kernel parameter: words with dots or slashes between them.
fn is_sysctl(name: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.split(['.', '/']).all(|segment| match segment.as_bytes() {
        [one] => is_edge(*one),
        [first, inner @ .., last] => {
            let is_inner = |byte: &u8| is_edge(*byte) || matches!(byte, b'-' | b'_');
            is_edge(*first) && is_edge(*last) && inner.iter().all(is_inner)
        }
        [] => false,
    })
}

/// A namespace of the kernel that has parameters of its own.
enum Namespace {
    Net,
    Ipc,
}

fn namespace_of(sysctl: &str) -> Option<Namespace> {
    // What comes first says which of the two separates the words: `net/ipv4/conf/eth0.1` has a dot in a word.
    let dotted: String = match sysctl.find(['.', '/']).map(|at| sysctl.as_bytes()[at]) {
        Some(b'/') => sysctl
            .chars()
            .map(|c| {
                if c == '/' {
                    '.'
                } else if c == '.' {
                    '/'
                } else {
                    c
                }
            })
            .collect(),
        _ => sysctl.to_owned(),
    };
    let name = dotted.split('*').next().unwrap_or_default();
    if IPC_SYSCTLS.contains(&name) || name.starts_with("fs.mqueue.") {
        return Some(Namespace::Ipc);
    }
    name.starts_with("net.").then_some(Namespace::Net)
}

fn seccomp_profile(profile: &Field<'_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.get("type"), profile.get("localhostProfile"));
    match kind.text() {
        "" => errors.push(FieldError::required(&kind.at, "type is required when seccompProfile is set")),
        _ => kind.one_of(&["Localhost", "RuntimeDefault", "Unconfined"], errors),
    }
    match (kind.text(), file.is_set()) {
        ("Localhost", false) => {
            errors.push(FieldError::required(&file.at, "must be set when seccomp type is Localhost"));
        }
        ("Localhost", true) | (_, false) => {}
        (_, true) => {
            let detail = "can only be set when seccomp type is Localhost";
            let fields = [("Type", kind.value.clone()), ("LocalhostProfile", file.value.clone())];
            errors.push(FieldError::invalid(&file.at, profile.value.clone(), detail).structure(&fields));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn problems(spec: &Value) -> Vec<String> {
        let mut errors = Errors::new();
        pod_security_context(&Field::root(spec), &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_of_kernel_parameters_are_words_with_dots_or_slashes_between() {
        for good in ["kernel.shmmax", "net/ipv4/conf/eth0.1/x", "a", "a-b_c.d", "0.1"] {
            assert!(is_sysctl(good), "{good}");
        }
        for bad in ["", "a.", ".a", "a..b", "-a", "a-", "foo-", "A", "a b", "a.b_", "*"] {
            assert!(!is_sysctl(bad), "{bad}");
        }
    }

    #[test]
    fn what_is_of_the_host_cannot_be_set_for_a_pod() {
        let sysctls = |names: &[&str]| {
            let list: Vec<Value> = names.iter().map(|name| json!({"name": name, "value": "1"})).collect();
            json!({"hostNetwork": true, "hostIPC": true, "securityContext": {"sysctls": list}})
        };
        let wrong = problems(&sysctls(&[
            "net.core.somaxconn",
            "net/x",
            "kernel.shmmax",
            "fs.mqueue.msg_max",
            "vm.x",
        ]));
        assert_eq!(wrong.len(), 4, "{wrong:?}");
        assert!(wrong[2].contains("may not be specified when 'hostIPC' is true"), "{wrong:?}");
        assert_eq!(
            problems(&json!({"securityContext": {"sysctls": [{"name": "net.x"}]}})),
            Vec::<String>::new()
        );
    }
}
