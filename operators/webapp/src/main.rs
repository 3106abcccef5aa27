//! The operator as a program: `watchkeeper-webapp --kubeconfig FILE --leader-elect`. `--help` lists the options.

use watchkeeper::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    watchkeeper::log::init();
    watchkeeper_webapp::operator(Manager::from_args()).run().await
}
