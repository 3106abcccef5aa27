//! A base, and overlays of it.
//!
//! Objects name their namespaces, and no overlay sets one: kustomize would put the roles of other namespaces there, too.

use serde_json::{Value, json};
use watchkeeper_schema::yaml;

use crate::Renderer;
use crate::error::Error;
use crate::file::File;
use crate::operator::Operator;
use crate::{crds, monitoring, rbac, webhooks, workload};

pub(crate) const RENDERER: Renderer = Renderer {
    name: "kustomize",
    about: "a base, and overlays: default (with its namespace), monitoring (with monitors and alerts), namespaced (some namespaces only), without-crds",
    owns: &["kustomize/"],
    render,
};

fn render(operator: &Operator<'_>) -> Result<Vec<File>, Error> {
    // The tag of the image is what people change most; it has a place of its own.
    let image = json!([{"name": operator.repository(), "newTag": operator.version()}]);
    let mut manager = webhooks::objects(operator);
    manager.extend(workload::objects(operator));
    let mut files = vec![
        kustomization("base", json!({"resources": bases(operator, "..", "program")})),
        kustomization("program", json!({"resources": ["../rbac", "../manager"]})),
        kustomization("rbac", json!({"resources": ["rbac.yaml"]})),
        File::yaml("kustomize/rbac/rbac.yaml", &rbac::objects(operator)),
        kustomization("manager", json!({"resources": ["manager.yaml"], "images": image})),
        File::yaml("kustomize/manager/manager.yaml", &manager),
        kustomization("overlays/default", json!({"resources": ["../../base", "namespace.yaml"]})),
        File::yaml("kustomize/overlays/default/namespace.yaml", &[workload::namespace(operator)]),
    ];
    if !operator.definitions.is_empty() {
        files.push(kustomization("crds", json!({"resources": ["crds.yaml"]})));
        files.push(File::yaml("kustomize/crds/crds.yaml", &crds::objects(operator)));
        files.push(kustomization("overlays/without-crds", json!({"resources": ["../../program"]})));
    }
    files.extend(namespaced(operator));
    let monitors = monitoring::objects(operator);
    if !monitors.is_empty() {
        let resources = json!({"resources": ["../default", "monitoring.yaml"]});
        files.push(kustomization("overlays/monitoring", resources));
        files.push(File::yaml("kustomize/overlays/monitoring/monitoring.yaml", &monitors));
    }
    Ok(files)
}

/// The definitions, if there are some, and another folder.
fn bases(operator: &Operator<'_>, up: &str, other: &str) -> Vec<String> {
    let crds = (!operator.definitions.is_empty()).then(|| format!("{up}/crds"));
    crds.into_iter().chain([format!("{up}/{other}")]).collect()
}

/// The operator with rights in some namespaces only, which it is told to watch. `Settings::watch_namespaces` has them.
fn namespaced(operator: &Operator<'_>) -> Vec<File> {
    let Some(option) = &operator.description.namespaces_option else { return Vec::new() };
    let namespaces = match operator.settings.watch_namespaces.as_slice() {
        [] => vec![operator.namespace()],
        given => given.to_vec(),
    };
    let mut resources = bases(operator, "../..", "manager");
    resources.extend(["namespace.yaml".to_owned(), "roles.yaml".to_owned()]);
    let patch = json!([{
        "op": "add",
        "path": "/spec/template/spec/containers/0/args/-",
        "value": format!("{option}={}", namespaces.join(",")),
    }]);
    let target = json!({"kind": "Deployment", "name": operator.name()});
    let folder = "kustomize/overlays/namespaced";
    vec![
        kustomization(
            "overlays/namespaced",
            json!({"resources": resources, "patches": [{"target": target, "patch": yaml::encode(&patch)}]}),
        ),
        File::yaml(format!("{folder}/namespace.yaml"), &[workload::namespace(operator)]),
        File::yaml(
            format!("{folder}/roles.yaml"),
            &rbac::objects_in(operator, &operator.roles_in(&namespaces)),
        ),
    ]
}

fn kustomization(folder: &str, mut value: Value) -> File {
    value["apiVersion"] = json!("kustomize.config.k8s.io/v1beta1");
    value["kind"] = json!("Kustomization");
    File::yaml(format!("kustomize/{folder}/kustomization.yaml"), &[value])
}
