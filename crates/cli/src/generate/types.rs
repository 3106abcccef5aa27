//! `watchkeeper generate types`: Rust types of a definition that somebody else made.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value;
use tokio::runtime;
use watchkeeper_connection::HttpClient;
use watchkeeper_package::{self as package, Definition};
use watchkeeper_schema::yaml;

use crate::cluster::ClusterArguments;
use crate::failure::Failure;

/// The largest file of definitions that is fetched.
const LARGEST: usize = 32 * 1024 * 1024;

/// Write Rust types for the kinds of definitions that somebody else made
///
/// An object decodes and encodes to itself: what need not be there is an Option, what the schema leaves open is a serde_json::Value. A kind without a spec is made of the fields that it has instead. The types need the crates watchkeeper, serde_json and k8s-openapi.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Types {
    /// A file of definitions, - for stdin; an https:// or http:// URL of one; or the name of a definition in the cluster, such as certificates.cert-manager.io
    #[arg(value_name = "FILE|URL|NAME")]
    from: String,
    /// The kind, if the file has several
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// The version [default: the one that is stored]
    #[arg(long = "api-version", value_name = "VERSION")]
    version: Option<String>,
    /// Where to write them [default: stdout]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArguments,
}

const EXAMPLES: &str = "\
Examples:
  watchkeeper generate types crd.yaml
  watchkeeper generate types certificates.cert-manager.io --output src/certificate.rs
  watchkeeper generate types https://example.com/crds.yaml --kind Gateway --api-version v1

Exit codes:
  0  written
  1  the cluster, the server or the file failed
  2  what was given cannot be: no definition, no such kind or version; nothing is written";

impl Types {
    /// Writes the module.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let objects = self.objects()?;
        let mut definitions = Vec::new();
        for (at, object) in objects.iter().enumerate() {
            definitions.push(Definition::read(at, object).map_err(Failure::input)?);
        }
        let kinds: Vec<&str> = definitions.iter().map(|definition| definition.kind).collect();
        let chosen = match &self.kind {
            Some(kind) => definitions.iter().find(|definition| definition.kind == kind),
            None if definitions.len() > 1 => {
                return Err(Failure::input(format!(
                    "{} has several kinds: say --kind, one of {}",
                    self.from,
                    kinds.join(", ")
                )));
            }
            None => definitions.first(),
        };
        let missing = || match kinds.is_empty() {
            true => format!("{}: there is no CustomResourceDefinition in it", self.from),
            false => format!("{}: there is no such kind: it has {}", self.from, kinds.join(", ")),
        };
        let chosen = chosen.ok_or_else(|| Failure::input(missing()))?;
        let text = package::types(chosen, self.version.as_deref()).map_err(Failure::input)?;
        match &self.output {
            Some(path) => fs::write(path, text)
                .map_err(|error| Failure::running(format!("{}: {error}", path.display()))),
            None => {
                // If nobody listens, nobody misses it.
                let _ = io::stdout().write_all(text.as_bytes());
                Ok(())
            }
        }
    }

    /// The definitions that were asked for.
    fn objects(&self) -> Result<Vec<Value>, Failure> {
        let from = self.from.as_str();
        let text = if from == "-" {
            let mut text = String::new();
            io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| Failure::input(format!("stdin: {error}")))?;
            text
        } else if from.starts_with("https://") || from.starts_with("http://") {
            wait(fetch(from))?
        } else if Path::new(from).exists() {
            fs::read_to_string(from).map_err(|error| Failure::input(format!("{from}: {error}")))?
        } else if from.contains('.')
            && !from.contains('/')
            && !from.ends_with(".yaml")
            && !from.ends_with(".json")
        {
            return wait(self.ask(from)).map(|object| vec![object]);
        } else {
            return Err(Failure::input(format!(
                "{from}: there is no such file, and it is no name of a definition"
            )));
        };
        let mut found = Vec::new();
        for part in yaml::documents(&text) {
            let value = yaml::decode(part.text.as_bytes());
            let value = value
                .map_err(|error| Failure::input(format!("{from}: document {}: {error}", part.number)))?
                .value;
            if value["kind"] == "CustomResourceDefinition" {
                found.push(value);
            }
        }
        Ok(found)
    }

    /// Reads a definition of the cluster.
    async fn ask(&self, name: &str) -> Result<Value, Failure> {
        let connection = self.cluster.connection().await?;
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let request = http::Request::get(path).body(Bytes::new()).map_err(Failure::input)?;
        let answer = connection
            .request(request)
            .await
            .map_err(|error| Failure::running(format!("{name}: {error}")))?;
        serde_json::from_slice(&answer).map_err(|error| Failure::running(format!("{name}: {error}")))
    }
}

async fn fetch(url: &str) -> Result<String, Failure> {
    let fails = |error: &dyn std::fmt::Display| Failure::running(format!("{url}: {error}"));
    let client = HttpClient::new(None).map_err(Failure::running)?;
    let request = http::Request::get(url).header("user-agent", "watchkeeper").body(Bytes::new());
    let answer = client.send(request.map_err(Failure::input)?).await.map_err(|error| fails(&error))?;
    if !answer.status().is_success() {
        return Err(fails(&answer.status()));
    }
    let body = Limited::new(answer.into_body(), LARGEST).collect().await.map_err(|error| fails(&error))?;
    String::from_utf8(body.to_bytes().to_vec()).map_err(|error| fails(&error))
}

fn wait<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::running)?;
    runtime.block_on(future)
}
