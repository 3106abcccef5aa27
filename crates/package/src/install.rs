//! Everything in one file, for `kubectl apply`.

use crate::Renderer;
use crate::error::Error;
use crate::file::File;
use crate::operator::Operator;
use crate::{crds, rbac, webhooks, workload};

pub(crate) const RENDERER: Renderer = Renderer {
    name: "install",
    about: "everything in one file, for kubectl apply",
    owns: &["install.yaml"],
    render,
};

fn render(operator: &Operator<'_>) -> Result<Vec<File>, Error> {
    let mut objects = vec![workload::namespace(operator)];
    objects.extend(crds::objects(operator));
    objects.extend(rbac::objects(operator));
    objects.extend(webhooks::objects(operator));
    objects.extend(workload::objects(operator));
    Ok(vec![File::yaml("install.yaml", &objects)])
}
