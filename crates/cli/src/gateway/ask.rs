use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use watchkeeper_gateway::{Question, Settings, check, explain};

use super::DEFAULT_ADMIN;
use crate::failure::Failure;

/// How long the admin endpoint may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Say which route would serve a request, and why
#[derive(Args)]
pub(super) struct Explain {
    /// The method, such as GET
    #[arg(value_name = "METHOD")]
    method: String,
    /// The URL: scheme, host and path
    #[arg(value_name = "URL")]
    url: String,
    /// A header of the request: 'name: value'; may be repeated
    #[arg(short = 'H', long, value_name = "HEADER")]
    header: Vec<String>,
    /// The admin endpoint of the gateway that is asked
    #[arg(long, value_name = "ADDRESS", default_value = DEFAULT_ADMIN)]
    admin: SocketAddr,
    /// Ask no gateway, but the objects in these files: file:DIR
    #[arg(long, value_name = "SOURCE", conflicts_with = "admin")]
    from: Option<String>,
}

impl Explain {
    pub(super) fn run(self) -> Result<(), Failure> {
        let question = self.question()?;
        let text = match &self.from {
            Some(from) => {
                let path = from.strip_prefix("file:").ok_or_else(|| {
                    Failure::input(format!("--from {from:?} is not of the form file:DIR: other sources are asked by way of a gateway"))
                })?;
                let checked = check(&PathBuf::from(path), Settings::default())
                    .map_err(|error| Failure::input(format!("{path}: {error}")))?;
                if let Some(first) = checked.errors.first() {
                    return Err(Failure::running(first));
                }
                explain(&checked.table, &question).to_string()
            }
            None => self.ask(&question)?,
        };
        write!(io::stdout(), "{text}").map_err(Failure::running)
    }

    fn question(&self) -> Result<Question, Failure> {
        let method = Method::from_bytes(self.method.as_bytes())
            .map_err(|_| Failure::input(format!("{:?} is not a method such as GET", self.method)))?;
        let url: Option<Uri> = self.url.parse().ok();
        let url = url.filter(|url| url.scheme().is_some() && url.host().is_some()).ok_or_else(|| {
            Failure::input(format!("{:?} is not a URL such as https://example.com/path", self.url))
        })?;
        let mut headers = HeaderMap::new();
        for header in &self.header {
            let read = header.split_once(':').and_then(|(name, value)| {
                Some((name.trim().parse::<HeaderName>().ok()?, HeaderValue::from_str(value.trim()).ok()?))
            });
            let (name, value) = read.ok_or_else(|| {
                Failure::input(format!("{header:?} is not a header such as 'x-team: shop'"))
            })?;
            headers.append(name, value);
        }
        Ok(Question { method, url, headers })
    }

    /// Asks the admin endpoint of a gateway that runs.
    fn ask(&self, question: &Question) -> Result<String, Failure> {
        let admin = self.admin;
        let mut target =
            format!("/explain?method={}&url={}", question.method, escaped(&question.url.to_string()));
        for (name, value) in &question.headers {
            let value = value.to_str().unwrap_or_default();
            target.push_str(&format!("&header={}", escaped(&format!("{name}:{value}"))));
        }
        let failed = |error: io::Error| {
            Failure::running(format!(
                "no gateway answers at {admin}: {error}; `watchkeeper gateway` runs one, --from file:DIR asks files instead"
            ))
        };
        let mut stream = TcpStream::connect_timeout(&admin, TIMEOUT).map_err(failed)?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
        let request = format!("GET {target} HTTP/1.0\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(failed)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        match head.split(' ').nth(1) {
            Some("200") => Ok(body.to_owned()),
            _ => Err(Failure::running(format!("the gateway at {admin} says: {}", body.trim()))),
        }
    }
}

/// Text as part of a query.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}
