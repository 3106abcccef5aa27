//! A base, and overlays of it.
//!
//! Objects name their namespaces, and no overlay sets one: kustomize would put the roles of other namespaces there, too.

use serde_json::{Value, json};

use crate::Renderer;
use crate::file::File;
use crate::operator::{Error, Operator};
use crate::{crds, monitoring, rbac, workload};

pub(crate) const RENDERER: Renderer = Renderer {
    name: "kustomize",
    about: "a base, and overlays: default (with its namespace), monitoring (with monitors and alerts), without-crds",
    owns: &["kustomize/"],
    render,
};

fn render(operator: &Operator<'_>) -> Result<Vec<File>, Error> {
    // The tag of the image is what people change most; it has a place of its own.
    let image = json!([{"name": operator.repository(), "newTag": operator.version()}]);
    let mut files = vec![
        kustomization("base", json!({"resources": ["../crds", "../program"]})),
        kustomization("crds", json!({"resources": ["crds.yaml"]})),
        File::yaml("kustomize/crds/crds.yaml", &crds::objects(operator)),
        kustomization("program", json!({"resources": ["rbac.yaml", "manager.yaml"], "images": image})),
        File::yaml("kustomize/program/rbac.yaml", &rbac::objects(operator)),
        File::yaml("kustomize/program/manager.yaml", &workload::objects(operator)),
        kustomization("overlays/default", json!({"resources": ["../../base", "namespace.yaml"]})),
        File::yaml("kustomize/overlays/default/namespace.yaml", &[workload::namespace(operator)]),
        kustomization("overlays/without-crds", json!({"resources": ["../../program"]})),
    ];
    let monitors = monitoring::objects(operator);
    if !monitors.is_empty() {
        let resources = json!({"resources": ["../default", "monitoring.yaml"]});
        files.push(kustomization("overlays/monitoring", resources));
        files.push(File::yaml("kustomize/overlays/monitoring/monitoring.yaml", &monitors));
    }
    Ok(files)
}

fn kustomization(folder: &str, mut value: Value) -> File {
    value["apiVersion"] = json!("kustomize.config.k8s.io/v1beta1");
    value["kind"] = json!("Kustomization");
    File::yaml(format!("kustomize/{folder}/kustomization.yaml"), &[value])
}
