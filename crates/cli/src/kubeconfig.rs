//! `watchkeeper kubeconfig`: how the administrator of a server gets in.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use watchkeeper_apiserver::authentication::{Credentials, Kubeconfig as Text};

use crate::failure::Failure;

/// Print the kubeconfig of the administrator of a server, from its data directory
///
/// Whoever has it may do everything. The server need not run.
#[derive(Args)]
#[command(after_help = "\
Examples:
  watchkeeper kubeconfig --data-dir data --server https://api.example.org:6443 > kubeconfig
  kubectl exec watchkeeper-apiserver-0 -- /watchkeeper kubeconfig --data-dir /data/apiserver --server https://localhost:6443

Exit codes: 0 printed, 1 something failed, 2 wrong arguments, or a directory of no server.")]
pub(crate) struct Kubeconfig {
    /// The data directory of the server
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// The URL under which clients reach the server
    #[arg(long, value_name = "URL")]
    server: String,
}

impl Kubeconfig {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let secrets = self.data_dir.join("credentials");
        if !secrets.is_dir() {
            let shown = self.data_dir.display();
            return Err(Failure::input(format!(
                "{shown}: no server keeps its data there: start one with `watchkeeper serve --data-dir {shown}`"
            )));
        }
        if !self.server.starts_with("https://") {
            return Err(Failure::input(format!(
                "--server {:?} is no URL such as https://host:6443",
                self.server
            )));
        }
        let credentials = Credentials::load_or_create(Some(&secrets)).map_err(Failure::running)?;
        let text = Text::new(&self.server, &credentials).map_err(Failure::running)?;
        io::stdout().write_all(text.as_str().as_bytes()).map_err(Failure::running)
    }
}
