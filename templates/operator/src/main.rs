//! The operator as a program. `--help` lists its options; `describe` prints what it needs.

use watchkeeper::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    watchkeeper::log::init();
    let manager = Manager::from_args()
        .version(env!("CARGO_PKG_VERSION"))
        .about(env!("CARGO_PKG_DESCRIPTION"));
    let manager = gadget_operator::operator(manager);
    // <webhook>
    let manager = gadget_operator::webhooks(manager);
    // </webhook>
    manager.run().await
}
