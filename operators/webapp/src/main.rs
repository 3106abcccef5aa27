//! The operator as a program: `watchkeeper-webapp --kubeconfig FILE --leader-elect`. `--help` lists the options.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;
use watchkeeper::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    let levels = std::env::var("RUST_LOG").ok().and_then(|levels| levels.parse().ok());
    let levels = levels.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    tracing_subscriber::registry().with(tracing_subscriber::fmt::layer()).with(levels).init();
    watchkeeper_webapp::operator(Manager::from_args()?).run().await
}
