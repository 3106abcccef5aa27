//! The rules of the Pod Security Standards, by level and release.

use std::collections::BTreeSet;

use serde_json::Value;

use super::policy::{Level, Standard, Version};
use super::{baseline, restricted};

/// The last release that changed a rule.
const NEWEST: u32 = 35;

/// What is judged: a Pod, or the template of one.
#[derive(Clone, Copy)]
pub(super) struct Pod<'a> {
    pub(super) metadata: &'a Value,
    pub(super) spec: &'a Value,
}

impl<'a> Pod<'a> {
    /// All containers: init containers first.
    pub(super) fn containers(self) -> impl Iterator<Item = &'a Value> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists.into_iter().flat_map(move |list| self.spec[list].as_array().into_iter().flatten())
    }

    /// The names of the containers of which something is true.
    pub(super) fn which(self, is_so: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        self.containers()
            .filter(|container| is_so(container))
            .map(|container| container["name"].as_str().unwrap_or_default())
            .collect()
    }

    /// Whether it runs with users of its own.
    pub(super) fn has_own_users(self) -> bool {
        self.spec["hostUsers"] == false
    }

    /// Whether it is for Windows, which lacks what some rules are about.
    pub(super) fn is_for_windows(self) -> bool {
        self.spec["os"]["name"] == "windows"
    }
}

/// A rule that is broken: in short, and by what.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) reason: &'static str,
    pub(super) detail: String,
}

impl Violation {
    pub(super) fn new(reason: &'static str, detail: impl Into<String>) -> Option<Self> {
        Some(Self { reason, detail: detail.into() })
    }
}

/// A rule. It finds what breaks it.
pub(super) type Rule = fn(Pod<'_>) -> Option<Violation>;

/// A rule through the releases.
struct Check {
    name: &'static str,
    /// From which release on, which rule, and in place of which of the baseline.
    versions: &'static [(u32, Rule, Option<&'static str>)],
}

/// In the order of their names, as violations are told.
const BASELINE: &[Check] = &[
    Check { name: "appArmorProfile", versions: &[(0, baseline::app_armor_profile, None)] },
    Check { name: "capabilities_baseline", versions: &[(0, baseline::capabilities, None)] },
    Check { name: "hostNamespaces", versions: &[(0, baseline::host_namespaces, None)] },
    Check { name: "hostPathVolumes", versions: &[(0, baseline::host_path_volumes, None)] },
    Check { name: "hostPorts", versions: &[(0, baseline::host_ports, None)] },
    Check { name: "hostProbesAndHostLifecycle", versions: &[(34, baseline::host_probes, None)] },
    Check { name: "privileged", versions: &[(0, baseline::privileged, None)] },
    Check {
        name: "procMount",
        versions: &[(0, baseline::proc_mount, None), (35, baseline::proc_mount_of_host_users, None)],
    },
    Check {
        name: "seLinuxOptions",
        versions: &[(0, baseline::se_linux_options, None), (31, baseline::se_linux_options_1_31, None)],
    },
    Check {
        name: "seccompProfile_baseline",
        versions: &[(0, baseline::seccomp_annotations, None), (19, baseline::seccomp_profile, None)],
    },
    Check {
        name: "sysctls",
        versions: &[
            (0, baseline::sysctls, None),
            (27, baseline::sysctls_1_27, None),
            (29, baseline::sysctls_1_29, None),
            (32, baseline::sysctls_1_32, None),
        ],
    },
    Check { name: "windowsHostProcess", versions: &[(0, baseline::windows_host_process, None)] },
];

const RESTRICTED: &[Check] = &[
    Check {
        name: "allowPrivilegeEscalation",
        versions: &[
            (8, restricted::allow_privilege_escalation, None),
            (25, |pod| unless_windows(pod, restricted::allow_privilege_escalation), None),
        ],
    },
    Check {
        name: "capabilities_restricted",
        versions: &[
            (22, restricted::capabilities, Some("capabilities_baseline")),
            (25, |pod| unless_windows(pod, restricted::capabilities), Some("capabilities_baseline")),
        ],
    },
    Check { name: "procMount_restricted", versions: &[(35, baseline::proc_mount, Some("procMount"))] },
    Check { name: "restrictedVolumes", versions: &[(0, restricted::volumes, Some("hostPathVolumes"))] },
    Check {
        name: "runAsNonRoot",
        versions: &[
            (0, restricted::run_as_non_root, None),
            (35, |pod| unless_own_users(pod, restricted::run_as_non_root), None),
        ],
    },
    Check {
        name: "runAsUser",
        versions: &[
            (23, restricted::run_as_user, None),
            (35, |pod| unless_own_users(pod, restricted::run_as_user), None),
        ],
    },
    Check {
        name: "seccompProfile_restricted",
        versions: &[
            (19, restricted::seccomp_profile, Some("seccompProfile_baseline")),
            (25, |pod| unless_windows(pod, restricted::seccomp_profile), Some("seccompProfile_baseline")),
        ],
    },
];

fn unless_windows(pod: Pod<'_>, rule: Rule) -> Option<Violation> {
    if pod.is_for_windows() { None } else { rule(pod) }
}

fn unless_own_users(pod: Pod<'_>, rule: Rule) -> Option<Violation> {
    if pod.has_own_users() { None } else { rule(pod) }
}

impl Check {
    /// The rule of a release.
    fn at(&self, minor: u32) -> Option<&'static (u32, Rule, Option<&'static str>)> {
        self.versions.iter().rev().find(|(since, ..)| *since <= minor)
    }
}

/// What breaks a standard.
pub(super) fn violations(standard: &Standard, pod: Pod<'_>) -> Vec<Violation> {
    let minor = match standard.version {
        Version::Minor(minor) => minor.min(NEWEST),
        Version::Latest => NEWEST,
    };
    let restricted: &[Check] = match standard.level {
        Level::Privileged => return Vec::new(),
        Level::Baseline => &[],
        Level::Restricted => RESTRICTED,
    };
    let replaced: BTreeSet<&str> = restricted.iter().filter_map(|check| check.at(minor)?.2).collect();
    let baseline = BASELINE.iter().filter(|check| !replaced.contains(check.name));
    baseline
        .chain(restricted)
        .filter_map(|check| check.at(minor))
        .filter_map(|(_, rule, _)| rule(pod))
        .collect()
}

/// Violations as one text: reasons, with details in brackets.
pub(super) fn details(violations: &[Violation]) -> String {
    let text = |Violation { reason, detail }: &Violation| match detail.as_str() {
        "" => (*reason).to_owned(),
        detail => format!("{reason} ({detail})"),
    };
    violations.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Violations as one text, in short.
pub(super) fn reasons(violations: &[Violation]) -> String {
    violations.iter().map(|violation| violation.reason).collect::<Vec<_>>().join(", ")
}

/// Texts in quotes, with commas.
pub(super) fn quoted<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>().join(", ")
}

/// One of two words, by how many there are.
pub(super) fn plural<'a>(one: &'a str, several: &'a str, number: usize) -> &'a str {
    if number == 1 { one } else { several }
}

/// `container "a"`, or `containers "a", "b"`.
pub(super) fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names.iter().copied()))
}

/// Who does something wrong: the Pod, some containers, or both; `None` if nobody does.
pub(super) fn setters(pod_does: bool, names: &[&str]) -> Option<String> {
    let all = pod_does.then(|| "pod".to_owned()).into_iter();
    let all: Vec<String> = all.chain((!names.is_empty()).then(|| containers(names))).collect();
    (!all.is_empty()).then(|| all.join(" and "))
}
