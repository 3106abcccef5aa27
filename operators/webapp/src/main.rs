//! The operator as a program: `watchkeeper-webapp --kubeconfig FILE --leader-elect`. `--help` lists the options.

use watchkeeper::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_env_filter("info").init();
    watchkeeper_webapp::operator(Manager::from_args()?).run().await
}
