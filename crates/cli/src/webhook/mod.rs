//! `watchkeeper webhook`: asks a webhook what a server would ask it, and says what it answers.

mod review;
mod verdict;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value;
use watchkeeper_connection::{Config, Connection};
use watchkeeper_schema::yaml;

use crate::cluster::reasons;
use crate::duration;
use crate::failure::Failure;
use review::Review;

/// How many bytes an answer may have.
const MOST_BYTES: usize = 64 << 20;

/// Send a review to a webhook and show its verdict
///
/// Asks an admission webhook about a write of an object, or a conversion webhook for an object in another version, as an API server
/// would. Shows the verdict, warnings, and what a patch or the conversion changes, field by field. Nothing is written anywhere.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Webhook {
    /// Where the webhook is, with its path
    #[arg(value_name = "URL")]
    url: String,
    /// The object, or a recorded AdmissionReview or ConversionReview, as YAML or JSON; - for standard input
    #[arg(short = 'f', long, value_name = "FILE")]
    file: PathBuf,
    /// What is done with the object
    #[arg(long, value_enum, default_value = "create", value_name = "VERB")]
    operation: Operation,
    /// The object before an update or a deletion
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,
    /// Ask for the object in this version instead: v2, or example.com/v2
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["old", "operation"])]
    to: Option<String>,
    /// The resource of the object [default: its kind in lower case with an s]
    #[arg(long, value_name = "PLURAL")]
    resource: Option<String>,
    /// The subresource that is written, such as status
    #[arg(long, value_name = "NAME")]
    subresource: Option<String>,
    /// Who writes
    #[arg(long, value_name = "NAME", default_value = "kubernetes-admin")]
    user: String,
    /// Groups of who writes; may be repeated
    #[arg(long, value_name = "NAME")]
    group: Vec<String>,
    /// Say that nothing will be stored
    #[arg(long)]
    dry_run: bool,
    /// The version of the review
    #[arg(long, value_enum, default_value = "v1", value_name = "VERSION")]
    review_version: ReviewVersion,
    /// The authorities that the certificate of the webhook is of, in PEM [default: those of the system]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Believe any certificate; only for webhooks on this machine
    #[arg(long)]
    insecure: bool,
    /// The name that the certificate has to have [default: that of the URL]
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,
    /// How long the webhook may take
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "10s")]
    timeout: Duration,
    /// Lines for people, or the review that was answered
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  watchkeeper webhook https://127.0.0.1:9443/mutate --insecure -f app.yaml
  watchkeeper webhook https://127.0.0.1:9443/validate --ca ca.crt -f new.yaml --operation update --old old.yaml
  watchkeeper webhook https://127.0.0.1:9443/validate --ca ca.crt --operation delete -f app.yaml
  watchkeeper webhook https://127.0.0.1:9443/convert --ca ca.crt -f app.yaml --to v1beta1
  watchkeeper webhook https://127.0.0.1:9443/validate --ca ca.crt -f recorded-review.json

Exit codes:
  0  allowed, or converted
  1  denied, or the webhook could not be asked, or its answer is none
  2  what was given cannot be: files, URL or arguments";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReviewVersion {
    V1,
    V1beta1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl Webhook {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let review = Review::of(&self)?;
        let (connection, path) = self.connection()?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::running)?;
        let answer = runtime.block_on(self.ask(&connection, &path, &review))?;
        if self.output == Format::Json {
            writeln!(io::stdout(), "{answer:#}").map_err(Failure::running)?;
        }
        let verdict = review.judge(&answer)?;
        if self.output == Format::Text {
            write!(io::stdout(), "{verdict}").map_err(Failure::running)?;
        }
        if verdict.is_denial() { Err(Failure::running("the webhook denied the write")) } else { Ok(()) }
    }

    async fn ask(&self, connection: &Connection, path: &str, review: &Review) -> Result<Value, Failure> {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .header("accept", "application/json, */*")
            .body(review.to_string())
            .map_err(Failure::input)?;
        let url = &self.url;
        let asked = async {
            let failed = |why: String| Failure::running(format!("{url}: {why}"));
            let response = connection.send(request).await.map_err(|error| failed(reasons(&error)))?;
            let code = response.status();
            let body = Limited::new(response.into_body(), MOST_BYTES).collect().await;
            let body = body.map_err(|error| failed(error.to_string()))?.to_bytes();
            if !code.is_success() {
                let text = String::from_utf8_lossy(&body);
                let text: String = text.trim().chars().take(500).collect();
                return Err(failed(format!("answered {code}: {}", crate::terminal::one_line(&text))));
            }
            serde_json::from_slice(&body).map_err(|error| failed(format!("answered with no JSON: {error}")))
        };
        let timeout = tokio::time::timeout(self.timeout, asked).await;
        timeout.unwrap_or_else(|_| {
            Err(Failure::running(format!("{url}: no answer within {} s", self.timeout.as_secs_f64())))
        })
    }

    /// The way to the webhook, and its path.
    fn connection(&self) -> Result<(Connection, String), Failure> {
        let url: Option<Uri> = self.url.parse().ok();
        let url = url.filter(|url| url.scheme().is_some() && url.host().is_some()).ok_or_else(|| {
            Failure::input(format!("{:?} is not a URL such as https://127.0.0.1:9443/validate", self.url))
        })?;
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
        let is_here =
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if self.insecure && !is_here {
            return Err(Failure::input(format!(
                "--insecure is for webhooks on this machine, and {host} is another one: give its authorities with --ca"
            )));
        }
        if url.scheme_str() == Some("http") && !is_here {
            return Err(Failure::input(format!(
                "webhooks on other machines are asked by https, and {} is not",
                self.url
            )));
        }
        let authority = url.authority().map_or("", |authority| authority.as_str());
        let base = format!("{}://{authority}", url.scheme_str().unwrap_or("https"));
        let mut config = Config::new(&base).map_err(Failure::input)?.connect_timeout(self.timeout);
        if let Some(file) = &self.ca {
            let authorities = fs::read(file)
                .map_err(|error| Failure::input(format!("--ca {}: {error}", file.display())))?;
            config = config.trusting(authorities);
        }
        if self.insecure {
            config = config.unverified();
        }
        if let Some(name) = &self.server_name {
            config = config.server_name(name);
        }
        let connection = Connection::new(config).map_err(Failure::input)?;
        let (path, query) = (url.path(), url.query().map(|query| format!("&{query}")).unwrap_or_default());
        let seconds = self.timeout.as_secs().max(1);
        Ok((connection, format!("{path}?timeout={seconds}s{query}")))
    }
}

/// A document in a file; `-` is standard input.
fn read(file: &Path) -> Result<Value, Failure> {
    let fails = |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", file.display()));
    let text = match file == Path::new("-") {
        true => {
            let mut text = Vec::new();
            io::stdin().read_to_end(&mut text).map(|_| text)
        }
        false => fs::read(file),
    };
    let value = yaml::decode(&text.map_err(|error| fails(&error))?).map_err(|error| fails(&error))?.value;
    let has_kind = value["kind"].is_string() && value["apiVersion"].is_string();
    if has_kind { Ok(value) } else { Err(fails(&"it is no object: it has no kind or no apiVersion")) }
}
