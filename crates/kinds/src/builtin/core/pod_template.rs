use crate::Kind;
use crate::kind::row::kind;
use crate::prepare::differs;
use crate::validate::field::{Errors, Field};
use crate::validate::pod;

pub(crate) const KIND: Kind = kind("", "v1", "PodTemplate", "podtemplates", "podtemplate")
    .returns_deleted()
    .generation_counts(|new, old| differs("template", new, old))
    .validate_with(validate)
    .metadata_checks(1, 0)
    .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    pod::template(&object.get("template"), errors);
}

mod table {
    use crate::columns::containers;
    use watchkeeper_table::layout::{Fields, Layout, NAME, selector, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Containers", "The names of the containers."),
            text("Images", "The images of the containers."),
            text("Pod Labels", "The labels that pods of this template get."),
        ],
        |view| {
            let [names, images] = containers(view.object, "template.spec");
            vec![
                view.name(),
                names,
                images,
                selector::labels(view.object.at("template.metadata.labels")).into(),
            ]
        },
    );
}
