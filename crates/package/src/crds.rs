//! The definitions, one file each.

use serde_json::Value;

use crate::Renderer;
use crate::error::Error;
use crate::file::File;
use crate::operator::Operator;

pub(crate) const RENDERER: Renderer = Renderer {
    name: "crds",
    about: "the CustomResourceDefinitions, one file each",
    owns: &["crds/"],
    render,
};

fn render(operator: &Operator<'_>) -> Result<Vec<File>, Error> {
    let files = operator.definitions.iter().map(|definition| {
        File::yaml(format!("crds/{}.yaml", definition.name), &[definition.placed(&operator.namespace())])
    });
    Ok(files.collect())
}

/// All definitions, for manifests.
pub(crate) fn objects(operator: &Operator<'_>) -> Vec<Value> {
    operator.definitions.iter().map(|definition| definition.placed(&operator.namespace())).collect()
}
