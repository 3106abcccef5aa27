//! This program under the name `kube-apiserver`: takes the flags that envtest and its like pass to the real one.

mod flags;
mod keeper;
mod plugins;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime;
use watchkeeper_apiserver::front::{Authenticator, Certificates, ClientCertificates, Front, Options, Tokens};
use watchkeeper_apiserver::{ApiServer, Options as ServerOptions};
use watchkeeper_storage::{self as storage, Embedded, Memory, Storage};

use crate::failure::Failure;
use crate::logging;
use crate::stopping::{Signals, until_stopped};
use flags::{Line, Values};

/// After the first signal, how long requests may take to end. envtest waits for 20 seconds before it kills.
const GRACE: Duration = Duration::from_secs(10);

const USAGE: &str = "\
Watchkeeper's API server under the name of kube-apiserver, for envtest and its like.

Serves HTTPS until SIGTERM or SIGINT comes. Objects are kept where the etcd of --etcd-servers says, if that is
Watchkeeper's too and has a --data-dir; otherwise they are kept in memory and forgotten at the end.
What differs from kube-apiserver: docs/envtest.md and docs/compatibility.md of Watchkeeper.

Usage:
  kube-apiserver [flags]

Flags:
";

/// Does what the command line says. `start` is when the process began.
pub(crate) fn run(arguments: &[String], start: Instant) -> Result<(), Failure> {
    // If nobody listens, nobody misses it.
    let mut stdout = io::stdout();
    let (values, notes) = match flags::parse(arguments).map_err(Failure::Running)? {
        Line::Help => {
            let _ = write!(stdout, "{USAGE}{}", flags::help());
            return Ok(());
        }
        Line::Version => {
            let _ = writeln!(stdout, "Kubernetes {}", watchkeeper_apiserver::version());
            return Ok(());
        }
        Line::Serve(values, notes) => (values, notes),
    };
    let settings = Settings::of(&values).map_err(Failure::Running)?;
    logging::begin(settings.log)?;
    for note in notes {
        tracing::warn!("{note}");
    }
    settings.run(start)
}

/// What the flags come to.
#[derive(Debug, PartialEq)]
struct Settings {
    listen: SocketAddr,
    certificate: PathBuf,
    key: PathBuf,
    /// Whether the certificate is to be made where there is none.
    may_create: bool,
    names: Vec<String>,
    client_authorities: Option<PathBuf>,
    token_file: Option<PathBuf>,
    etcd: Vec<String>,
    garbage_collection: bool,
    log: &'static str,
}

impl Settings {
    fn of(values: &Values) -> Result<Self, String> {
        for mode in values.words("authorization-mode") {
            if !["AlwaysAllow", "Node", "RBAC"].contains(&mode) {
                return Err(format!(
                    "--authorization-mode={mode}: this server knows AlwaysAllow, Node and RBAC"
                ));
            }
        }
        values.words("enable-admission-plugins").try_for_each(plugins::enable)?;
        values.words("disable-admission-plugins").try_for_each(plugins::disable)?;
        for api in values.words("runtime-config") {
            let all = ["api/all", "api/ga", "api/beta", "api/alpha"];
            if !all.iter().any(|all| api.strip_prefix(all).is_some_and(|rest| matches!(rest, "" | "=true"))) {
                return Err(format!("--runtime-config={api}: single APIs cannot be switched on or off"));
            }
        }
        if values.last("anonymous-auth") == Some("false") {
            return Err("--anonymous-auth=false: requests without credentials are anonymous here".to_owned());
        }
        for range in values.words("service-cluster-ip-range") {
            if !range.starts_with("10.0.0.0/") {
                return Err(format!(
                    "--service-cluster-ip-range={range}: Services have addresses of 10.0.0.0/16"
                ));
            }
        }
        if values.last("service-node-port-range").is_some_and(|range| range != "30000-32767") {
            return Err("--service-node-port-range: Services have node ports of 30000-32767".to_owned());
        }
        let path = |name| values.last(name).map(PathBuf::from);
        let directory = path("cert-dir").unwrap_or_else(|| "/var/run/kubernetes".into());
        let pair = (path("tls-cert-file"), path("tls-private-key-file"));
        let may_create = pair == (None, None);
        let address = parsed::<IpAddr>(values, "bind-address")?.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let port = parsed(values, "secure-port")?.unwrap_or(6443);
        Ok(Self {
            listen: SocketAddr::new(address, port),
            certificate: pair.0.unwrap_or_else(|| directory.join("apiserver.crt")),
            key: pair.1.unwrap_or_else(|| directory.join("apiserver.key")),
            may_create,
            names: values.last("external-hostname").map(str::to_owned).into_iter().collect(),
            client_authorities: path("client-ca-file"),
            token_file: path("token-auth-file"),
            etcd: values.words("etcd-servers").map(str::to_owned).collect(),
            garbage_collection: values.last("enable-garbage-collector") != Some("false"),
            log: match parsed::<u8>(values, "v")?.unwrap_or(0) {
                0 | 1 => "warn",
                2 | 3 => "info",
                _ => "debug",
            },
        })
    }

    fn run(self, start: Instant) -> Result<(), Failure> {
        let mut tokens = Tokens::new();
        if let Some(file) = &self.token_file {
            tokens.add_file(file).map_err(Failure::running)?;
        }
        let mut names = self.names.clone();
        if self.may_create {
            if !self.listen.ip().is_unspecified() {
                names.push(self.listen.ip().to_string());
            }
            Certificates::create_files(&self.certificate, &self.key, &names).map_err(Failure::running)?;
        }
        let certificates =
            Certificates::files(&self.certificate, &self.key, self.client_authorities.as_deref())
                .map_err(Failure::running)?;
        let storage = self.storage()?;
        let runtime = runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::running)?;
        runtime.block_on(self.serve(Arc::clone(&storage), certificates, tokens, start))?;
        // Tasks first: the storage closes when the last of them lets go of it.
        runtime.shutdown_timeout(Duration::from_secs(1));
        drop(storage);
        Ok(())
    }

    /// The directory of the etcd beside us, so that this server can be ended and started again as one over a real etcd.
    fn storage(&self) -> Result<Arc<dyn Storage>, Failure> {
        // What is lost is lost with the machine: no test outlives it.
        let options =
            storage::Options { durability: storage::Durability::Relaxed, ..storage::Options::default() };
        for etcd in &self.etcd {
            match keeper::data_directory(etcd) {
                Ok(Some(directory)) => {
                    let opened = Embedded::open(&directory, options).map_err(|error| {
                        Failure::running(format!("the objects of --etcd-servers={etcd}: {error}"))
                    });
                    return Ok(Arc::new(opened?));
                }
                Ok(None) => {}
                Err(reason) => {
                    tracing::warn!(
                        "--etcd-servers={etcd} is not Watchkeeper's, objects are kept in memory: {reason}"
                    );
                }
            }
        }
        Ok(Arc::new(Memory::new(options)))
    }

    async fn serve(
        &self,
        storage: Arc<dyn Storage>,
        certificates: Certificates,
        tokens: Tokens,
        start: Instant,
    ) -> Result<(), Failure> {
        let mut signals = Signals::listen()?;
        let mut options = ServerOptions::default();
        options.garbage_collection = self.garbage_collection;
        let server = Arc::new(ApiServer::start(storage, options).await.map_err(Failure::running)?);
        let authenticators: Vec<Box<dyn Authenticator>> =
            vec![Box::new(ClientCertificates), Box::new(tokens)];
        let options = Options { https: self.listen, http: None, names: self.names.clone(), authenticators };
        let front = Front::start(options, certificates, server.clone()).await.map_err(Failure::running)?;
        tracing::info!("ready in {} ms: https://{}", start.elapsed().as_millis(), front.https_address());
        until_stopped(&mut signals, &server, front, GRACE).await;
        Ok(())
    }
}

fn parsed<T: std::str::FromStr>(values: &Values, name: &str) -> Result<Option<T>, String> {
    let parse = |value: &str| value.parse().map_err(|_| format!("invalid argument {value:?} for --{name}"));
    values.last(name).map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(arguments: &[&str]) -> Result<Settings, String> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        match flags::parse(&arguments)? {
            Line::Serve(values, _) => Settings::of(&values),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_flags_of_envtest_are_understood() {
        let settings = settings(&[
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            "--cert-dir=/certs",
            "--client-ca-file=/certs/client-cert-auth-ca.crt",
            "--disable-admission-plugins=ServiceAccount",
            "--etcd-servers=http://127.0.0.1:2379",
            "--secure-port=40001",
            "--service-account-issuer=https://127.0.0.1:40001/",
            "--service-account-key-file=/certs/sa-signer.crt",
            "--service-account-signing-key-file=/certs/sa-signer.key",
            "--service-cluster-ip-range=10.0.0.0/24",
        ])
        .unwrap();
        assert_eq!(settings.listen, "127.0.0.1:40001".parse().unwrap());
        assert_eq!(settings.certificate, PathBuf::from("/certs/apiserver.crt"));
        assert_eq!(settings.key, PathBuf::from("/certs/apiserver.key"));
        assert_eq!(settings.client_authorities, Some(PathBuf::from("/certs/client-cert-auth-ca.crt")));
        assert_eq!(settings.etcd, ["http://127.0.0.1:2379"]);
        assert!(settings.garbage_collection);
    }

    #[test]
    fn values_that_would_change_what_a_test_sees_are_refused() {
        for wrong in [
            "--authorization-mode=RBAC,Webhook",
            "--enable-admission-plugins=AlwaysPullImages",
            "--disable-admission-plugins=NamespaceLifecycle",
            "--runtime-config=batch/v1=false",
            "--runtime-config=api/beta=false",
            "--anonymous-auth=false",
            "--service-cluster-ip-range=192.168.0.0/16",
            "--secure-port=http",
            "--bind-address=localhost",
        ] {
            assert!(settings(&[wrong]).is_err(), "{wrong}");
        }
        assert!(settings(&["--runtime-config=api/all=true,api/beta"]).is_ok());
        assert!(settings(&["--authorization-mode=Node,RBAC", "--anonymous-auth=true"]).is_ok());
    }
}
