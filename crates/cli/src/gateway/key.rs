use std::io::{self, Write as _};

use clap::Args;
use watchkeeper_gateway::ai::new_key;

use crate::failure::Failure;

/// Make a key for a client of models; only its digest goes into an LLMGatewayPolicy
///
/// The key is printed once, on stdout, and is nowhere else. The entry for spec.keys is printed on stderr, so that both can go where they belong.
#[derive(Args)]
pub(super) struct NewKey {
    /// Whose key it is, as records and metrics tell it
    #[arg(value_name = "NAME")]
    name: String,
}

impl NewKey {
    pub(super) fn run(self) -> Result<(), Failure> {
        let (key, sha256) = new_key().map_err(Failure::running)?;
        let name = serde_json::Value::from(self.name).to_string();
        writeln!(io::stderr(), "- name: {name}\n  sha256: {sha256}").map_err(Failure::running)?;
        writeln!(io::stdout(), "{key}").map_err(Failure::running)
    }
}
