//! Keeps a ConfigMap for every [`Gadget`].

mod kind;
mod reconcile;
// <source>
mod source;
// </source>
// <webhook>
mod webhook;
// </webhook>

pub use kind::{Gadget, GadgetSpec, GadgetStatus};
pub use reconcile::operator;
// <source>
pub use source::folder;
// </source>
// <webhook>
pub use webhook::webhooks;
// </webhook>
