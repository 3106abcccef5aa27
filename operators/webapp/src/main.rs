//! The operator as a program: `watchkeeper-webapp --kubeconfig FILE --leader-elect`. `--help` lists the options.

use watchkeeper::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    watchkeeper::log::init();
    let manager =
        Manager::from_args().version(env!("CARGO_PKG_VERSION")).about(env!("CARGO_PKG_DESCRIPTION"));
    watchkeeper_webapp::webhooks(watchkeeper_webapp::operator(manager)).run().await
}
