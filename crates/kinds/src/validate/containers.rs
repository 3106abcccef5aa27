use super::field::{Errors, Field, port_name_problems};
use super::mounts::{Volumes, devices, mounts};
use crate::decimal;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{dns_subdomain_problems, label_key_problems};

/// The containers of a pod. `volumes` are what they may mount, `names` those that are taken.
pub(crate) fn containers<'a>(
    list: &Field<'a>,
    is_required: bool,
    volumes: &Volumes<'_>,
    names: &mut HashSet<&'a str>,
    errors: &mut Errors,
) {
    if is_required && !list.required(errors) {
        return;
    }
    for container in list.items() {
        container_rules(&container, volumes, errors);
        let name = container.get("name");
        if !name.is_empty() && !names.insert(name.text()) {
            errors.push(FieldError::duplicate(&name.at, name.text()));
        }
    }
}

/// Containers that are added to a pod that runs, to look at it. They serve nothing and are not waited for.
pub(crate) fn ephemeral_containers<'a>(
    spec: &Field<'a>,
    volumes: &Volumes<'_>,
    names: &mut HashSet<&'a str>,
    errors: &mut Errors,
) {
    const NOT_ALLOWED: &str = "cannot be set for an Ephemeral Container";
    let others = names.clone();
    for container in spec.get("ephemeralContainers").items() {
        container_rules(&container, volumes, errors);
        trimmed_image(&container, errors);
        let (name, target) = (container.get("name"), container.get("targetContainerName"));
        if !names.insert(name.text()) {
            errors.push(FieldError::duplicate(&name.at, name.text()));
        }
        if !target.is_empty() && !others.contains(target.text()) {
            errors.push(FieldError::not_found(&target.at, target.text()));
        }
        let unused = ["ports", "resources", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"];
        for field in unused.map(|field| container.get(field)).iter().filter(|field| !field.is_empty()) {
            errors.push(FieldError::forbidden(&field.at, NOT_ALLOWED));
        }
        for mount in container.get("volumeMounts").items() {
            for field in ["subPath", "subPathExpr"].map(|field| mount.get(field)) {
                if !field.is_empty() {
                    errors.push(FieldError::forbidden(&field.at, NOT_ALLOWED));
                }
            }
        }
    }
}

/// The image of a container of a pod, as it is: templates may still have it replaced.
pub(crate) fn trimmed_image(container: &Field<'_>, errors: &mut Errors) {
    let image = container.get("image");
    if image.text().trim() != image.text() {
        image.invalid("must not have leading or trailing whitespace", errors);
    }
}

fn container_rules(container: &Field<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let get = |name| container.get(name);
    if get("name").required(errors) {
        get("name").dns_label(errors);
    }
    get("image").required(errors);
    get("terminationMessagePolicy").one_of(&["File", "FallbackToLogsOnError"], errors);
    ports(&get("ports"), errors);
    env(&get("env"), errors);
    for source in get("envFrom").items() {
        if !source.get("configMapRef").is_set() && !source.get("secretRef").is_set() {
            let detail = "must specify one of: `configMapRef` or `secretRef`";
            errors.push(FieldError::invalid(&get("envFrom").at, "", detail));
        }
    }
    mounts(container, volumes, errors);
    devices(container, volumes, errors);
    get("imagePullPolicy").one_of(&["Always", "IfNotPresent", "Never"], errors);
    resources(&get("resources"), errors);
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = get(name);
        if probe.is_set() {
            self::probe(&probe, name == "readinessProbe", errors);
        }
    }
}

fn ports(ports: &Field<'_>, errors: &mut Errors) {
    let mut names = HashSet::new();
    for port in ports.items() {
        let name = port.get("name");
        if !name.is_empty() {
            let problems = port_name_problems(name.text());
            let is_good = problems.is_empty();
            problems.into_iter().for_each(|problem| name.invalid(problem, errors));
            if is_good && !names.insert(name.text()) {
                errors.push(FieldError::duplicate(&name.at, name.text()));
            }
        }
        let number = port.get("containerPort");
        match number.number() {
            None | Some(0) => errors.push(FieldError::required(&number.at, "")),
            Some(_) => number.port(errors),
        }
        if port.get("hostPort").number().is_some_and(|port| port != 0) {
            port.get("hostPort").port(errors);
        }
        let protocol = port.get("protocol");
        if protocol.required(errors) {
            protocol.one_of(&["SCTP", "TCP", "UDP"], errors);
        }
    }
}

fn env(env: &Field<'_>, errors: &mut Errors) {
    for variable in env.items() {
        let name = variable.get("name");
        let is_printable = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
        if name.required(errors) && !name.text().bytes().all(is_printable) {
            name.invalid(
                "a valid environment variable name must consist only of printable ASCII characters other than '='",
                errors,
            );
        }
        let source = variable.get("valueFrom");
        if source.is_set() {
            env_source(&source, !variable.get("value").is_empty(), errors);
        }
    }
}

fn env_source(source: &Field<'_>, has_value: bool, errors: &mut Errors) {
    let kinds = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let set = kinds.iter().filter(|kind| source.get(kind).is_set()).count();
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        let reference = source.get(kind);
        if reference.is_set() {
            let name = reference.get("name");
            for problem in dns_subdomain_problems(name.text()) {
                errors.push(FieldError::invalid(&name.at, name.text(), problem));
            }
            reference.get("key").required(errors);
        }
    }
    let complain =
        |detail: &str, errors: &mut Errors| errors.push(FieldError::invalid(&source.at, "", detail));
    match set {
        0 => complain(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            errors,
        ),
        _ if has_value => complain("may not be specified when `value` is not empty", errors),
        1 => {}
        _ => complain("may not have more than one field specified at a time", errors),
    }
}

/// Names and amounts of resources; no more is asked for than is allowed.
pub(crate) fn resources(resources: &Field<'_>, errors: &mut Errors) {
    let (limits, requests) = (resources.get("limits"), resources.get("requests"));
    for list in [&limits, &requests] {
        for (name, amount) in list.entries() {
            resource(name, &amount, errors);
        }
    }
    for (name, request) in requests.entries() {
        let limit = limits.get(name);
        if compare(request.value, limit.value) == Some(Ordering::Greater) {
            let detail = format!("must be less than or equal to {name} limit of {}", limit.text());
            errors.push(FieldError::invalid(&requests.at, request.text(), detail));
        }
    }
}

/// The name and the amount of a resource.
pub(crate) fn resource(name: &str, amount: &Field<'_>, errors: &mut Errors) {
    resource_name(name, amount, errors);
    not_negative(amount, errors);
}

/// The name of a resource that containers can have.
pub(crate) fn resource_name(name: &str, amount: &Field<'_>, errors: &mut Errors) {
    let is_standard =
        matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    let problems = label_key_problems(name);
    let is_bad = !problems.is_empty();
    for problem in problems {
        errors.push(FieldError::invalid(&amount.at, name, problem));
    }
    if is_standard || !is_bad && name.contains('/') {
        return;
    }
    if !is_bad {
        errors.push(FieldError::invalid(
            &amount.at,
            name,
            "must be a standard resource type or fully qualified",
        ));
    }
    errors.push(FieldError::invalid(&amount.at, name, "must be a standard resource for containers"));
}

/// An amount that is not below zero.
pub(crate) fn not_negative(amount: &Field<'_>, errors: &mut Errors) {
    if decimal::parse(amount.text()).ok().flatten().is_some_and(|amount| amount.is_negative()) {
        amount.invalid("must be greater than or equal to 0", errors);
    }
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    let read = |value: &Value| decimal::parse(value.as_str()?).ok().flatten();
    read(left)?.compare(&read(right)?)
}

fn probe(probe: &Field<'_>, may_need_several: bool, errors: &mut Errors) {
    let mut handlers = ["exec", "httpGet", "tcpSocket", "grpc"].map(|name| probe.get(name)).into_iter();
    match handlers.find(Field::is_set) {
        None => errors.push(FieldError::required(&probe.at, "must specify a handler type")),
        Some(first) => {
            if first.get("port").is_set() || first.at != probe.get("exec").at {
                first.get("port").port_or_name(errors);
            }
            for other in handlers.filter(Field::is_set) {
                errors.push(FieldError::forbidden(&other.at, "may not specify more than 1 handler type"));
            }
        }
    }
    for name in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        probe.get(name).not_negative(errors);
    }
    let threshold = probe.get("successThreshold");
    if !may_need_several && threshold.number().is_some_and(|number| number != 1) {
        threshold.invalid("must be 1", errors);
    }
}
