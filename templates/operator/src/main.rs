//! The operator as a program. `--help` lists its options; `describe` prints what it needs.

use watchkeeper::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    watchkeeper::log::init();
    gadget_operator::operator(Manager::from_args()).run().await
}
