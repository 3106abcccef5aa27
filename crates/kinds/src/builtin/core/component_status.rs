use crate::kind::row::kind;
use crate::{Kind, Verbs};

/// What the parts of a cluster say about themselves. Nothing of it is stored.
pub(crate) const KIND: Kind = kind("", "v1", "ComponentStatus", "componentstatuses", "componentstatus")
    .short(&["cs"])
    .cluster_wide()
    .verbs(Verbs::ReadOnly)
    .deprecated("v1 ComponentStatus is deprecated in v1.19+")
    .table(table::TABLE);

mod table {
    use watchkeeper_table::layout::{Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Status", "Whether the component is healthy."),
            text("Message", "What the component says."),
            text("Error", "What went wrong."),
        ],
        |view| {
            let conditions = view.object.list("conditions").iter();
            let healthy = conditions.into_iter().find(|condition| condition.text("type") == "Healthy");
            let status = match healthy.map(|condition| condition.text("status")) {
                None => "Unknown",
                Some("True") => "Healthy",
                Some(_) => "Unhealthy",
            };
            let say = |name| healthy.map_or("", |condition| condition.text(name));
            vec![view.name(), status.into(), say("message").into(), say("error").into()]
        },
    );
}
