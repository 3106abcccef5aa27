//! The rules of the level `baseline`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checks::{Pod, Violation, containers, plural, quoted, setters};

/// A text of a field; empty if there is none.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The annotations of a Pod.
fn annotations<'a>(pod: Pod<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let all = pod.metadata["annotations"].as_object().into_iter().flatten();
    all.map(|(name, value)| (name.as_str(), text(value)))
}

pub(super) fn app_armor_profile(pod: Pod<'_>) -> Option<Violation> {
    let profile = |context: &Value| {
        context["appArmorProfile"].is_object().then(|| text(&context["appArmorProfile"]["type"]).to_owned())
    };
    let bad = |context: &Value| {
        profile(context).filter(|kind| !matches!(kind.as_str(), "RuntimeDefault" | "Localhost"))
    };
    let by_pod = bad(&pod.spec["securityContext"]);
    let names = pod.which(|container| bad(&container["securityContext"]).is_some());
    let values: BTreeSet<String> = pod
        .containers()
        .filter_map(|container| bad(&container["securityContext"]))
        .chain(by_pod.clone())
        .collect();
    let is_allowed = |value: &str| matches!(value, "" | "runtime/default") || value.starts_with("localhost/");
    let mut annotated: Vec<String> = annotations(pod)
        .filter(|(name, value)| {
            name.starts_with("container.apparmor.security.beta.kubernetes.io/") && !is_allowed(value)
        })
        .map(|(name, value)| format!("{name}={value:?}"))
        .collect();
    annotated.sort_unstable();
    let mut who: Vec<String> = setters(by_pod.is_some(), &names).into_iter().collect();
    if !annotated.is_empty() {
        who.push(plural("annotation", "annotations", annotated.len()).to_owned());
    }
    if who.is_empty() {
        return None;
    }
    let values: Vec<&str> = values.iter().chain(&annotated).map(String::as_str).collect();
    let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len());
    Violation::new(
        reason,
        format!("{} must not set AppArmor profile type to {}", who.join(" and "), quoted(values)),
    )
}

/// What containers may be able to do beyond the ordinary.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

pub(super) fn capabilities(pod: Pod<'_>) -> Option<Violation> {
    fn added(container: &Value) -> impl Iterator<Item = &str> {
        let all = list(&container["securityContext"]["capabilities"]["add"]).map(text);
        all.filter(|name| !CAPABILITIES.contains(name))
    }
    let names = pod.which(|container| added(container).next().is_some());
    let values: BTreeSet<&str> = pod.containers().flat_map(added).collect();
    if names.is_empty() {
        return None;
    }
    let detail = format!(
        "{} must not include {} in securityContext.capabilities.add",
        containers(&names),
        quoted(values)
    );
    Violation::new("non-default capabilities", detail)
}

pub(super) fn host_namespaces(pod: Pod<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|field| pod.spec[*field] == true);
    let shared: Vec<String> = shared.map(|field| format!("{field}=true")).collect();
    if shared.is_empty() { None } else { Violation::new("host namespaces", shared.join(", ")) }
}

pub(super) fn host_path_volumes(pod: Pod<'_>) -> Option<Violation> {
    let volumes = list(&pod.spec["volumes"]).filter(|volume| volume["hostPath"].is_object());
    let names: Vec<&str> = volumes.map(|volume| text(&volume["name"])).collect();
    if names.is_empty() {
        return None;
    }
    let word = plural("volume", "volumes", names.len());
    Violation::new("hostPath volumes", format!("{word} {}", quoted(names)))
}

pub(super) fn host_ports(pod: Pod<'_>) -> Option<Violation> {
    fn ports(container: &Value) -> impl Iterator<Item = i64> {
        list(&container["ports"]).filter_map(|port| port["hostPort"].as_i64()).filter(|port| *port != 0)
    }
    let names = pod.which(|container| ports(container).next().is_some());
    // In the order of texts, not of numbers.
    let found: BTreeSet<String> = pod.containers().flat_map(ports).map(|port| port.to_string()).collect();
    if names.is_empty() {
        return None;
    }
    let detail = format!(
        "{} {} {} {}",
        containers(&names),
        plural("uses", "use", names.len()),
        plural("hostPort", "hostPorts", found.len()),
        found.into_iter().collect::<Vec<_>>().join(", ")
    );
    Violation::new("hostPort", detail)
}

pub(super) fn host_probes(pod: Pod<'_>) -> Option<Violation> {
    fn hosts(container: &Value) -> impl Iterator<Item = &str> {
        let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| &container[probe]);
        let handlers = ["postStart", "preStop"].map(|handler| &container["lifecycle"][handler]);
        let actions = probes.into_iter().chain(handlers);
        let hosts = actions.flat_map(|action| ["httpGet", "tcpSocket"].map(|way| text(&action[way]["host"])));
        hosts.filter(|host| !host.is_empty())
    }
    let mut names = pod.which(|container| hosts(container).next().is_some());
    names.sort_unstable();
    names.dedup();
    let found: BTreeSet<&str> = pod.containers().flat_map(hosts).collect();
    if names.is_empty() {
        return None;
    }
    let detail = format!(
        "{} {} {} {}",
        containers(&names),
        plural("uses", "use", names.len()),
        plural("probe or lifecycle host", "probe or lifecycle hosts", found.len()),
        quoted(found)
    );
    Violation::new("probe or lifecycle host", detail)
}

pub(super) fn privileged(pod: Pod<'_>) -> Option<Violation> {
    let names = pod.which(|container| container["securityContext"]["privileged"] == true);
    if names.is_empty() {
        return None;
    }
    Violation::new(
        "privileged",
        format!("{} must not set securityContext.privileged=true", containers(&names)),
    )
}

pub(super) fn proc_mount(pod: Pod<'_>) -> Option<Violation> {
    fn bad(container: &Value) -> Option<&str> {
        container["securityContext"]["procMount"].as_str().filter(|mount| *mount != "Default")
    }
    let names = pod.which(|container| bad(container).is_some());
    let values: BTreeSet<&str> = pod.containers().filter_map(bad).collect();
    if names.is_empty() {
        return None;
    }
    let detail =
        format!("{} must not set securityContext.procMount to {}", containers(&names), quoted(values));
    Violation::new("procMount", detail)
}

pub(super) fn proc_mount_of_host_users(pod: Pod<'_>) -> Option<Violation> {
    if pod.has_own_users() { None } else { proc_mount(pod) }
}

const SE_LINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

pub(super) fn se_linux_options(pod: Pod<'_>) -> Option<Violation> {
    se_linux(pod, &SE_LINUX_TYPES[..4])
}

pub(super) fn se_linux_options_1_31(pod: Pod<'_>) -> Option<Violation> {
    se_linux(pod, &SE_LINUX_TYPES)
}

fn se_linux(pod: Pod<'_>, allowed: &[&str]) -> Option<Violation> {
    let options = |context: &'_ Value| context["seLinuxOptions"].clone();
    let is_bad = |options: &Value| {
        !allowed.contains(&text(&options["type"]))
            || !text(&options["user"]).is_empty()
            || !text(&options["role"]).is_empty()
    };
    let by_pod = is_bad(&options(&pod.spec["securityContext"]));
    let names = pod.which(|container| is_bad(&options(&container["securityContext"])));
    let who = setters(by_pod, &names)?;
    let all: Vec<Value> = std::iter::once(pod.spec)
        .chain(pod.containers())
        .map(|holder| options(&holder["securityContext"]))
        .collect();
    let types: BTreeSet<&str> =
        all.iter().map(|options| text(&options["type"])).filter(|kind| !allowed.contains(kind)).collect();
    let mut wrong = Vec::new();
    if !types.is_empty() {
        wrong.push(format!("{} {}", plural("type", "types", types.len()), quoted(types)));
    }
    for field in ["user", "role"] {
        if all.iter().any(|options| !text(&options[field]).is_empty()) {
            wrong.push(format!("{field} may not be set"));
        }
    }
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {}", wrong.join("; "));
    Violation::new("seLinuxOptions", detail)
}

pub(super) fn seccomp_annotations(pod: Pod<'_>) -> Option<Violation> {
    const OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
    let names: Vec<&str> = pod.containers().map(|container| text(&container["name"])).collect();
    let is_about = |name: &str| {
        name == OF_POD || name.strip_prefix(OF_CONTAINER).is_some_and(|container| names.contains(&container))
    };
    let is_allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let bad = annotations(pod).filter(|(name, value)| is_about(name) && !is_allowed(value));
    let bad: BTreeSet<String> = bad.map(|(name, value)| format!("{name}={value:?}")).collect();
    if bad.is_empty() {
        return None;
    }
    let word = plural("annotation", "annotations", bad.len());
    let detail = format!("forbidden {word} {}", bad.into_iter().collect::<Vec<_>>().join(", "));
    Violation::new("seccompProfile", detail)
}

/// The seccomp profile that a context sets and may not.
pub(super) fn bad_seccomp(context: &Value) -> Option<&str> {
    let profile = context.get("seccompProfile").filter(|profile| profile.is_object())?;
    Some(text(&profile["type"])).filter(|kind| !matches!(*kind, "RuntimeDefault" | "Localhost"))
}

pub(super) fn seccomp_profile(pod: Pod<'_>) -> Option<Violation> {
    let by_pod = bad_seccomp(&pod.spec["securityContext"]);
    let names = pod.which(|container| bad_seccomp(&container["securityContext"]).is_some());
    let who = setters(by_pod.is_some(), &names)?;
    let by_containers = pod.containers().filter_map(|container| bad_seccomp(&container["securityContext"]));
    let values: BTreeSet<&str> = by_containers.chain(by_pod).collect();
    let detail = format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(values));
    Violation::new("seccompProfile", detail)
}

/// The kernel parameters that are safe, in the order in which releases allowed them.
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

pub(super) fn sysctls(pod: Pod<'_>) -> Option<Violation> {
    sysctls_but(pod, &SYSCTLS[..5])
}

pub(super) fn sysctls_1_27(pod: Pod<'_>) -> Option<Violation> {
    sysctls_but(pod, &SYSCTLS[..6])
}

pub(super) fn sysctls_1_29(pod: Pod<'_>) -> Option<Violation> {
    sysctls_but(pod, &SYSCTLS[..10])
}

pub(super) fn sysctls_1_32(pod: Pod<'_>) -> Option<Violation> {
    sysctls_but(pod, &SYSCTLS)
}

fn sysctls_but(pod: Pod<'_>, allowed: &[&str]) -> Option<Violation> {
    let names = list(&pod.spec["securityContext"]["sysctls"]).map(|sysctl| text(&sysctl["name"]));
    let names: Vec<&str> = names.filter(|name| !allowed.contains(name)).collect();
    if names.is_empty() { None } else { Violation::new("forbidden sysctls", names.join(", ")) }
}

pub(super) fn windows_host_process(pod: Pod<'_>) -> Option<Violation> {
    let is_bad = |holder: &Value| holder["securityContext"]["windowsOptions"]["hostProcess"] == true;
    let who = setters(is_bad(pod.spec), &pod.which(is_bad))?;
    Violation::new(
        "hostProcess",
        format!("{who} must not set securityContext.windowsOptions.hostProcess=true"),
    )
}
