//! The Helm chart.
//!
//! Templates are generated. `values.yaml` and `Chart.yaml` are the user's: the defaults are in a template, and what `values.yaml` says is laid
//! over them, so that a file written for an earlier version goes on working and a new setting is there without being added to it. What `Chart.yaml`
//! says of the program follows the program.

mod values;

use serde_json::{Value, json};
use watchkeeper_description::ServedPort;
use watchkeeper_schema::yaml;

use crate::Renderer;
use crate::artifacthub::person;
use crate::definition::Definition;
use crate::error::Error;
use crate::file::{File, HEADER};
use crate::operator::Operator;
use crate::parts::Path;
use crate::{monitoring, rbac, webhooks};

pub(crate) const RENDERER: Renderer = Renderer {
    name: "chart",
    about: "a Helm chart; its values.yaml and Chart.yaml are yours once they are written, but for what Chart.yaml says of the program",
    owns: &["chart/templates/", "chart/files/", "chart/values.schema.json"],
    render,
};

/// What `Chart.yaml` says of the program: Helm takes the image of `appVersion`.
const FOLLOWING: &[Path] = &[
    &["appVersion"],
    &["annotations", "artifacthub.io/crds"],
    &["annotations", "artifacthub.io/crdsExamples"],
];

/// The templates, with the part of the operator that each needs.
const TEMPLATES: &[(&str, &str, Option<&str>)] = &[
    ("_helpers.tpl", include_str!("templates/_helpers.tpl"), None),
    ("NOTES.txt", include_str!("templates/NOTES.txt"), None),
    ("deployment.yaml", include_str!("templates/deployment.yaml"), None),
    ("extraobjects.yaml", include_str!("templates/extraobjects.yaml"), None),
    ("monitors.yaml", include_str!("templates/monitors.yaml"), Some("metrics")),
    ("networkpolicy.yaml", include_str!("templates/networkpolicy.yaml"), None),
    ("poddisruptionbudget.yaml", include_str!("templates/poddisruptionbudget.yaml"), None),
    ("service.yaml", include_str!("templates/service.yaml"), Some("metrics")),
    ("service-clients.yaml", include_str!("templates/service-clients.yaml"), Some("ports")),
    ("service-webhook.yaml", include_str!("templates/service-webhook.yaml"), Some("webhooks")),
    ("serviceaccount.yaml", include_str!("templates/serviceaccount.yaml"), None),
];

fn render(operator: &Operator<'_>) -> Result<Vec<File>, Error> {
    let values = fill(operator, include_str!("values.yaml"));
    let defaults =
        format!("{{{{/* {HEADER} */}}}}\n{{{{- define \"OPERATOR.defaults\" -}}}}\n{values}{{{{- end }}}}\n");
    let mut files = vec![
        File::parts("chart/Chart.yaml", metadata(operator), FOLLOWING),
        File::once("chart/values.yaml", values::commented(&values)),
        File::once("chart/.helmignore", "*.orig\n*.swp\n.git/\n"),
        File::json("chart/values.schema.json", &values::schema(&values)),
        template("_defaults.tpl", &fill(operator, &defaults)),
        template("rbac.yaml", &fill(operator, &roles(operator))),
    ];
    for (name, text, part) in TEMPLATES {
        if part.is_none_or(|part| has(operator, part)) {
            let is_set = *name == "deployment.yaml" && operator.volume().is_some();
            files.push(template(if is_set { "statefulset.yaml" } else { name }, &fill(operator, text)));
        }
    }
    for definition in &operator.definitions {
        let text = fill(operator, &crd(definition));
        files.push(template(&format!("crds/{}.yaml", definition.name), &text));
    }
    if let Some(text) = configurations(operator) {
        files.push(template("webhookconfigurations.yaml", &fill(operator, &text)));
    }
    if has(operator, "metrics") {
        if let Some(rules) = monitoring::rules(operator) {
            files.push(File::yaml("chart/files/rules.yaml", &[rules]));
        }
        for (name, dashboard) in monitoring::dashboards(operator) {
            files.push(File::json(format!("chart/files/dashboards/{name}.json"), &dashboard));
        }
    }
    Ok(files)
}

fn template(name: &str, text: &str) -> File {
    let is_text = name.ends_with(".txt") || name == "_defaults.tpl";
    let header = if is_text { String::new() } else { format!("{{{{/* {HEADER} */}}}}\n") };
    File::generated(format!("chart/templates/{name}"), format!("{header}{text}"))
}

/// Puts in the names and options of an operator, and leaves out the parts that it does not have: lines from `# <part>` to `# </part>`. A line
/// `@list` stands for the items of a list.
fn fill(operator: &Operator<'_>, text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut leaves_out = None;
    for line in text.lines() {
        let mark = line.trim_start().strip_prefix("# <").and_then(|mark| mark.strip_suffix('>'));
        match mark {
            Some(mark) if leaves_out == mark.strip_prefix('/') && leaves_out.is_some() => leaves_out = None,
            Some(mark) if leaves_out.is_none() && !mark.starts_with('/') => {
                leaves_out = Some(mark).filter(|part| !has(operator, part));
            }
            None if leaves_out.is_none() => {
                let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
                match rest.strip_prefix('@') {
                    Some(list) => items(operator, list).iter().for_each(|item| {
                        kept.push_str(&format!("{indent}{item}\n"));
                    }),
                    None => kept.push_str(&format!("{line}\n")),
                }
            }
            _ => {}
        }
    }
    let description = operator.description;
    let metrics =
        description.metrics_port.as_ref().and_then(|port| port.option.as_deref()).unwrap_or_default();
    let argument = |arguments: Vec<String>| arguments.into_iter().next().unwrap_or_default();
    for (token, value) in [
        ("- METRICS=", format!("- {metrics}=").as_str()),
        ("- ELECTION\n", &format!("- {}\n", argument(operator.election_argument()))),
        ("- DEFINITIONS\n", &format!("- {}\n", argument(operator.definitions_argument()))),
        ("repository: IMAGE\n", &format!("repository: {}\n", operator.repository())),
        ("Seconds: GRACE\n", &format!("Seconds: {}\n", operator.grace())),
        ("port: PORT\n", &format!("port: {}\n", operator.port().unwrap_or_default())),
        ("- NAMESPACES=", &format!("- {}=", description.namespaces_option.as_deref().unwrap_or_default())),
        ("- LOG=", &format!("- {}=", description.run.log_option.as_deref().unwrap_or_default())),
        ("replicas: REPLICAS\n", &format!("replicas: {}\n", operator.replicas())),
        ("memory: MEMORY\n", &format!("memory: {}\n", description.run.memory)),
        ("size: SIZE\n", &format!("size: {}\n", operator.volume().map_or("", |volume| &volume.size))),
        ("Path: VOLUME\n", &format!("Path: {}\n", operator.volume().map_or("", |volume| &volume.path))),
        ("Limit: SCRATCH\n", &format!("Limit: {}\n", operator.scratch().map_or("", |scratch| &scratch.size))),
        ("Path: SCRATCH\n", &format!("Path: {}\n", operator.scratch().map_or("", |scratch| &scratch.path))),
        ("mountPath: CERTIFICATES\n", &format!("mountPath: {CERTIFICATES}\n")),
        ("COMPONENT", operator.component()),
        ("OPERATOR", operator.name()),
    ] {
        kept = kept.replace(token, value);
    }
    kept
}

/// Whether the operator has a part of the templates.
fn has(operator: &Operator<'_>, part: &str) -> bool {
    let description = operator.description;
    match part {
        "metrics" => description.metrics_port.as_ref().is_some_and(|port| port.option.is_some()),
        "election" | "electionoption" => {
            description.election.as_ref().is_some_and(|election| election.option.is_some())
        }
        "install" => description.install_option.is_some(),
        "namespaces" => description.namespaces_option.is_some(),
        "definitions" => !description.definitions.is_empty(),
        "rights" => operator.has_rights(),
        "norights" => !operator.has_rights(),
        "logoption" => description.run.log_option.is_some(),
        "logvariable" => description.run.log_option.is_none(),
        "ports" => !description.run.ports.is_empty(),
        "noports" => description.run.ports.is_empty(),
        "webhooks" => description.webhook_port.is_some(),
        "webhookfiles" => folder_argument(operator).is_some(),
        "nowebhookfiles" => folder_argument(operator).is_none(),
        "nowebhooks" => description.webhook_port.is_none(),
        "listens" => has(operator, "ports") || has(operator, "webhooks"),
        "listensnot" => !has(operator, "listens"),
        "stateful" => operator.volume().is_some(),
        "stateless" => operator.volume().is_none(),
        "mounts" => operator.volume().is_some() || operator.scratch().is_some(),
        "nomounts" => !has(operator, "mounts"),
        "scratch" => operator.scratch().is_some(),
        "noscratch" => operator.scratch().is_none(),
        _ => false,
    }
}

/// Where a certificate that somebody else makes is mounted.
const CERTIFICATES: &str = "/etc/webhook-certificate";

/// The argument that names that folder, if the program has webhooks and takes one.
fn folder_argument(operator: &Operator<'_>) -> Option<String> {
    operator.description.webhook_port?;
    operator.webhook_arguments(CERTIFICATES).into_iter().find(|argument| argument.contains(CERTIFICATES))
}

/// The lines of a list.
fn items(operator: &Operator<'_>, list: &str) -> Vec<String> {
    let webhook = |port| ServedPort { name: "webhook".to_owned(), port: 443, target: port };
    let ports = &operator.description.run.ports;
    let webhooks: Vec<ServedPort> = operator.description.webhook_port.map(webhook).into_iter().collect();
    let each = |lines: fn(&ServedPort) -> Vec<String>| ports.iter().flat_map(lines).collect();
    match list {
        "arguments" => {
            let arguments =
                operator.first_arguments("{{ include \"OPERATOR.fullname\" . }}", "{{ .Release.Namespace }}");
            arguments.iter().map(|argument| format!("- {argument}")).collect()
        }
        "webhookfolder" => {
            folder_argument(operator).map(|argument| format!("- {argument}")).into_iter().collect()
        }
        "containerports" => {
            let lines = |port: &ServedPort| {
                vec![
                    format!("- name: {}", port.name),
                    format!("  containerPort: {}", port.target),
                    "  protocol: TCP".to_owned(),
                ]
            };
            ports.iter().chain(&webhooks).flat_map(lines).collect()
        }
        "webhookports" => webhooks
            .iter()
            .flat_map(|port| [format!("- port: {}", port.target), "  protocol: TCP".to_owned()])
            .collect(),
        "networkports" => each(|port| vec![format!("- port: {}", port.target), "  protocol: TCP".to_owned()]),
        "serviceports" => each(|port| {
            vec![
                format!("- name: {}", port.name),
                format!("  port: {}", port.port),
                format!("  targetPort: {}", port.name),
                "  protocol: TCP".to_owned(),
            ]
        }),
        _ => Vec::new(),
    }
}

/// A text of others within a template: what looks like one of Helm's own expressions is written out.
fn literal(text: &str) -> String {
    text.replace("{{", "{{ \"{{\" }}")
}

fn indented(value: &Value, spaces: usize) -> String {
    let indent = " ".repeat(spaces);
    let text = yaml::encode(value);
    let lines =
        text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{indent}{line}\n") });
    literal(&lines.collect::<String>())
}

const VALUES: &str = "{{- $v := include \"OPERATOR.values\" . | fromYaml }}\n";
/// Stands for the namespace of a release until the rest of a definition is written.
const RELEASE: &str = "the-namespace-of-the-release";
const LABELS: &str = "  labels:\n    {{- include \"OPERATOR.labels\" $ | nindent 4 }}\n";

fn crd(definition: &Definition<'_>) -> String {
    let own = |field: &str| {
        definition
            .value
            .pointer(&format!("/metadata/{field}"))
            .filter(|value| value.as_object().is_some_and(|map| !map.is_empty()))
    };
    let labels = own("labels").map(|labels| indented(labels, 4)).unwrap_or_default();
    let annotations = own("annotations").map(|annotations| indented(annotations, 4)).unwrap_or_default();
    // An annotation in any case, so that there is a map to put them in.
    let keep = "    {{- if $v.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n";
    let note = "    watchkeeper.dev/part-of: {{ include \"OPERATOR.fullname\" . }}\n";
    let spec = indented(&definition.placed(RELEASE)["spec"], 2).replace(RELEASE, "{{ .Release.Namespace }}");
    format!(
        "{VALUES}{{{{- if $v.crds.enabled }}}}\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {}\n{LABELS}{labels}  annotations:\n{note}{keep}{annotations}spec:\n{spec}{{{{- end }}}}\n",
        definition.name
    )
}

/// The configurations of webhooks, empty. The program looks for them under its own name, whatever the release is called.
fn configurations(operator: &Operator<'_>) -> Option<String> {
    let object = |kind| {
        format!(
            "---\napiVersion: admissionregistration.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: OPERATOR\n{LABELS}"
        )
    };
    let note = "{{/* Nobody is asked before the program serves: it writes the rest. */}}\n";
    let objects: String = webhooks::kinds(operator).map(object).collect();
    (!objects.is_empty()).then(|| format!("{note}{objects}"))
}

/// The roles of the program and of people, with their bindings.
fn roles(operator: &Operator<'_>) -> String {
    let roles = operator.roles();
    let mut text = format!("{VALUES}{{{{- if $v.rbac.create }}}}\n");
    let everywhere = |rules: &[Value]| match rules {
        [] => String::new(),
        rules => role("ClusterRole", None, rules),
    };
    match has(operator, "namespaces") {
        true => {
            // Where namespaces are chosen, what is asked of all of them is asked of each.
            let mut limited = operator.roles_in(&[String::new()]);
            let watched = limited.namespaces.remove("").unwrap_or_default();
            text.push_str("{{- if $v.watchNamespaces }}\n");
            text.push_str(&everywhere(&limited.cluster));
            if !watched.is_empty() {
                text.push_str("{{- range $v.watchNamespaces }}\n");
                text.push_str(&role("Role", Some(("-watched", "{{ . }}")), &watched));
                text.push_str("{{- end }}\n");
            }
            text.push_str("{{- else }}\n");
            text.push_str(&everywhere(&roles.cluster));
            text.push_str("{{- end }}\n");
        }
        false => text.push_str(&everywhere(&roles.cluster)),
    }
    let mut places: Vec<(&str, &Vec<Value>)> = vec![("{{ .Release.Namespace }}", &roles.own)];
    places.extend(roles.namespaces.iter().map(|(place, rules)| (place.as_str(), rules)));
    for (place, rules) in places.iter().filter(|(_, rules)| !rules.is_empty()) {
        text.push_str(&role("Role", Some(("", place)), rules));
    }
    text.push_str("{{- end }}\n");
    if !operator.definitions.is_empty() {
        text.push_str("{{- if $v.rbac.helpers }}\n");
        text.push_str(&helper("view", &["admin", "edit", "view"], rbac::viewers(&operator.definitions)));
        text.push_str(&helper("edit", &["admin", "edit"], rbac::editors(&operator.definitions)));
        text.push_str("{{- end }}\n");
    }
    text
}

/// A role with its binding: everywhere, or in a namespace with a name that ends so.
fn role(kind: &str, place: Option<(&str, &str)>, rules: &[Value]) -> String {
    // What is of the cluster has to differ between releases of one name in several namespaces; what is in a namespace does not.
    let name = "{{ include \"OPERATOR.fullname\" $ }}";
    let (name, namespace) = match place {
        None => (format!("{name}-{{{{ .Release.Namespace }}}}"), String::new()),
        Some((suffix, place)) => (format!("{name}{suffix}"), format!("  namespace: {place}\n")),
    };
    let metadata = format!("metadata:\n  name: {name}\n{namespace}{LABELS}");
    let rules = indented(&json!(rules), 0);
    format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\n{metadata}rules:\n{rules}---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\n{metadata}roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n  name: {name}\nsubjects:\n- kind: ServiceAccount\n  name: {{{{ include \"OPERATOR.serviceAccount\" $ }}}}\n  namespace: {{{{ $.Release.Namespace }}}}\n"
    )
}

fn helper(suffix: &str, into: &[&str], rules: Vec<Value>) -> String {
    let into: String = into
        .iter()
        .map(|role| format!("    rbac.authorization.k8s.io/aggregate-to-{role}: \"true\"\n"))
        .collect();
    let rules = indented(&json!(rules), 0);
    format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {{{{ include \"OPERATOR.fullname\" . }}}}-{{{{ .Release.Namespace }}}}-{suffix}\n{LABELS}{into}rules:\n{rules}"
    )
}

/// `Chart.yaml`, with what Artifact Hub shows.
fn metadata(operator: &Operator<'_>) -> String {
    let settings = operator.settings;
    let kinds: Vec<Value> = operator
        .definitions
        .iter()
        .filter_map(|definition| {
            Some(json!({
                "kind": definition.kind,
                "version": definition.storage()?.name,
                "name": definition.plural,
                "displayName": definition.kind,
                "description": format!("Objects of kind {}", definition.kind),
            }))
        })
        .collect();
    let mut annotations = json!({
        "artifacthub.io/operator": (operator.component() == "operator").to_string(),
        "artifacthub.io/prerelease": "false",
    });
    if !kinds.is_empty() {
        annotations["artifacthub.io/crds"] = json!(yaml::encode(&json!(kinds)));
    }
    let samples = operator.samples();
    if !samples.is_empty() {
        annotations["artifacthub.io/crdsExamples"] = json!(yaml::encode(&json!(samples)));
    }
    if let Some(license) = &settings.license {
        annotations["artifacthub.io/license"] = json!(license);
    }
    let mut chart = json!({
        "apiVersion": "v2",
        "name": operator.name(),
        "description": operator.about(),
        "type": "application",
        "version": operator.version(),
        "appVersion": operator.version(),
        "kubeVersion": ">=1.25.0-0",
        "annotations": annotations,
    });
    if let Some(home) = &settings.homepage {
        chart["home"] = json!(home);
    }
    if let Some(repository) = &settings.repository {
        chart["sources"] = json!([repository]);
    }
    if !settings.keywords.is_empty() {
        chart["keywords"] = json!(settings.keywords);
    }
    if !settings.authors.is_empty() {
        chart["maintainers"] = settings.authors.iter().map(|author| person(author)).collect();
    }
    format!(
        "# Yours: written once by `watchkeeper generate`, which keeps appVersion and what Artifact Hub shows of kinds as the program is. Raise version with every change of the chart.\n{}",
        yaml::encode(&chart)
    )
}
