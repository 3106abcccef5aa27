//! This program under the name `kube-apiserver`: takes the flags that envtest and its like pass to the real one.

mod flags;
mod keeper;

use std::env;
use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use watchkeeper_apiserver::authentication::{ClientCertificates, Credentials, Options, Tokens, listen};
use watchkeeper_apiserver::front::{Limits, Listener, Tls, TlsFiles, private_file, raise_open_files};
use watchkeeper_apiserver::{AccountTokens, ApiServer, Authorization, Options as ServerOptions};
use watchkeeper_storage::{self as storage, Embedded, Memory, Storage};

use crate::admission_plugins::AdmissionPlugins;
use crate::controllers::Controllers;
use crate::failure::Failure;
use crate::host;
use crate::stopping::{ShutdownArgs, Signals, Sockets, until_stopped};
use crate::{caution, duration, logging};
use flags::{Line, Values};

/// The variable that says which controllers run in this server, as `watchkeeper serve --controllers` is told. Without it none do:
/// tests that were written for kube-apiserver expect that nothing is collected and no namespace emptied.
const CONTROLLERS: &str = "WATCHKEEPER_CONTROLLERS";

/// After the first signal, how long requests may take to end. envtest waits for 20 seconds before it kills.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

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
    let mut settings = Settings::of(&values).map_err(Failure::Running)?;
    if let Some(names) = env::var_os(CONTROLLERS) {
        let names = names.to_string_lossy().parse();
        settings.controllers = names.map_err(|wrong| Failure::Running(format!("${CONTROLLERS}: {wrong}")))?;
    }
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
    authorization: Authorization,
    /// Whether requests without credentials are answered.
    anonymous: bool,
    /// The address in the endpoints of the Service `kubernetes`, if it is not that of `listen`.
    advertise: Option<IpAddr>,
    account_issuer: Option<String>,
    /// Where others find the keys of tokens, if it is not the address of this server.
    account_keys_uri: Option<String>,
    account_signing_key: Option<PathBuf>,
    account_keys: Vec<PathBuf>,
    plugins: AdmissionPlugins,
    garbage_collection: bool,
    /// What of kube-controller-manager's work is done here.
    controllers: Controllers,
    event_lifetime: Option<Duration>,
    request_timeout: Option<Duration>,
    log: &'static str,
}

impl Settings {
    fn of(values: &Values) -> Result<Self, String> {
        let words = |flag| values.words(flag).map(str::to_owned).collect::<Vec<_>>();
        let (enabled, disabled) = (words("enable-admission-plugins"), words("disable-admission-plugins"));
        let configuration = values.last("admission-control-config-file").map(PathBuf::from);
        let plugins = AdmissionPlugins::new(enabled, disabled)?.configured(configuration.as_deref())?;
        for api in values.words("runtime-config") {
            let all = ["api/all", "api/ga", "api/beta", "api/alpha"];
            if !all.iter().any(|all| api.strip_prefix(all).is_some_and(|rest| matches!(rest, "" | "=true"))) {
                return Err(format!("--runtime-config={api}: single APIs cannot be switched on or off"));
            }
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
            authorization: authorization(values)?,
            // Whoever could do everything is not to be anybody, as with kube-apiserver.
            anonymous: values.last("anonymous-auth") != Some("false")
                && authorization(values)? != Authorization::AlwaysAllow,
            advertise: parsed(values, "advertise-address")?,
            account_issuer: values.words("service-account-issuer").next().map(str::to_owned),
            account_keys_uri: keys_uri(values, port)?,
            account_signing_key: path("service-account-signing-key-file"),
            account_keys: values.words("service-account-key-file").map(PathBuf::from).collect(),
            plugins,
            garbage_collection: values.last("enable-garbage-collector") != Some("false"),
            controllers: Controllers::NONE,
            event_lifetime: time(values, "event-ttl")?,
            request_timeout: time(values, "request-timeout")?,
            log: match parsed::<u8>(values, "v")?.unwrap_or(0) {
                0 | 1 => "warn",
                2 | 3 => "info",
                _ => "debug",
            },
        })
    }

    fn run(self, start: Instant) -> Result<(), Failure> {
        caution::disable_core_dumps();
        caution::warn_of_openness(self.listen, self.authorization);
        let options = self.options()?;
        if self.may_create {
            let mut names = self.names.clone();
            if !self.listen.ip().is_unspecified() {
                names.push(self.listen.ip().to_string());
            }
            Credentials::create_server_files(&self.certificate, &self.key, &names)
                .map_err(Failure::running)?;
        }
        let tls = Tls::files(TlsFiles {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            client_authorities: self.client_authorities.clone(),
        });
        let tls = tls.map_err(Failure::running)?;
        self.warn_of_exposed_files();
        let storage = self.storage()?;
        watchkeeper_memory::start_trimming().map_err(Failure::running)?;
        let runtime = host::runtime()?;
        runtime.block_on(self.serve(Arc::clone(&storage), tls, options, start))?;
        // Tasks first: the storage closes when the last of them lets go of it.
        runtime.shutdown_timeout(Duration::from_secs(1));
        drop(storage);
        Ok(())
    }

    /// Files with secrets come from others here, such as envtest, which makes them readable for its group in a directory
    /// that nobody else can enter. So they are not refused, and what is in such a directory is fine.
    fn warn_of_exposed_files(&self) {
        for file in [Some(&self.key), self.account_signing_key.as_ref()].into_iter().flatten() {
            warn_if_exposed(file);
        }
    }

    /// What the server itself is told.
    fn options(&self) -> Result<ServerOptions, Failure> {
        let mut tokens = Tokens::new();
        if let Some(file) = &self.token_file {
            let check = |file: &Path| {
                warn_if_exposed(file);
                Ok(())
            };
            tokens.add_file_if(file, check).map_err(Failure::running)?;
        }
        let mut accounts = match (&self.account_signing_key, self.account_keys.as_slice()) {
            (None, []) => AccountTokens::generate(),
            (signing, keys) => AccountTokens::from_files(signing.as_deref(), keys),
        }
        .map_err(Failure::running)?;
        if let Some(issuer) = &self.account_issuer {
            accounts = accounts.issued_by(issuer);
        }
        if let Some(uri) = &self.account_keys_uri {
            accounts = accounts.keys_at(uri);
        }
        let mut options = ServerOptions::default();
        options.authorization = self.authorization;
        options.account_tokens = Some(accounts);
        options.tokens = Some(Arc::new(tokens));
        self.plugins.clone().choose(&mut options);
        self.controllers.choose(&mut options);
        options.garbage_collection &= self.garbage_collection;
        // Nobody misses the ServiceAccount of a namespace if Pods are not given one.
        options.service_accounts &= !self.plugins.is_off("ServiceAccount");
        options.event_lifetime = self.event_lifetime.unwrap_or(options.event_lifetime);
        options.request_timeout = self.request_timeout.unwrap_or(options.request_timeout);
        Ok(options)
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
        tls: Tls,
        options: ServerOptions,
        start: Instant,
    ) -> Result<(), Failure> {
        let mut signals = Signals::listen()?;
        let tokens = options.tokens.clone().unwrap_or_default();
        let clock = options.clock.clone();
        let server = Arc::new(ApiServer::start(storage, options).await.map_err(Failure::running)?);
        let accounts = server.account_authenticator();
        let listener = Listener::bind(self.listen).map_err(Failure::running)?;
        let listening = listener.address();
        let options = Options {
            https: (listener, tls),
            http: None,
            authenticators: vec![Box::new(ClientCertificates), Box::new(tokens), Box::new(accounts)],
            limits: Limits::of_files(raise_open_files()),
            clock,
            anonymous: self.anonymous,
        };
        let front = listen(options, Arc::clone(&server)).map_err(Failure::running)?;
        server.show_access(front.metrics());
        let advertised = self.advertise.unwrap_or_else(|| host::own_address(listening.ip()));
        let advertised = SocketAddr::new(advertised, listening.port());
        server.advertise(Some(advertised)).await.map_err(Failure::running)?;
        tracing::info!("ready in {} ms: https://{listening}", start.elapsed().as_millis());
        watchkeeper_memory::release_start();
        let shutdown = ShutdownArgs::default();
        until_stopped(&mut signals, &server, front, Sockets::Closed, shutdown, SHUTDOWN_GRACE).await;
        Ok(())
    }
}

/// Where others find the keys of tokens: as said, or under the name that others know this server by.
fn keys_uri(values: &Values, port: u16) -> Result<Option<String>, String> {
    match (values.last("service-account-jwks-uri"), values.last("external-hostname")) {
        (Some(uri), _) if !uri.starts_with("https://") => {
            Err(format!("--service-account-jwks-uri={uri}: only https:// can be trusted"))
        }
        (Some(uri), _) => Ok(Some(uri.to_owned())),
        (None, Some(name)) if port != 0 => Ok(Some(format!("https://{name}:{port}/openid/v1/jwks"))),
        (None, _) => Ok(None),
    }
}

/// Warns of a file with a secret that others can read or change.
fn warn_if_exposed(file: &Path) {
    if let Err(exposed) = private_file::check(file)
        && !is_in_closed_directory(file)
    {
        tracing::warn!("{exposed}");
    }
}

/// Whether only its owner can get to a file, whatever the mode of the file is.
fn is_in_closed_directory(file: &Path) -> bool {
    let directory = fs::canonicalize(file).ok().and_then(|file| Some(file.parent()?.to_path_buf()));
    let metadata = directory.and_then(|directory| fs::metadata(directory).ok());
    metadata.is_some_and(|metadata| metadata.permissions().mode() & 0o077 == 0)
}

/// Everything is allowed unless something else is asked for, as with kube-apiserver.
fn authorization(values: &Values) -> Result<Authorization, String> {
    let modes: Vec<&str> = values.words("authorization-mode").collect();
    if let Some(mode) = modes.iter().find(|mode| !["AlwaysAllow", "Node", "RBAC"].contains(mode)) {
        return Err(format!("--authorization-mode={mode}: this server knows AlwaysAllow, Node and RBAC"));
    }
    Ok(if modes.is_empty() || modes.contains(&"AlwaysAllow") {
        Authorization::AlwaysAllow
    } else {
        Authorization::Rbac
    })
}

fn time(values: &Values, name: &str) -> Result<Option<Duration>, String> {
    let parse = |value| duration::parse(value).map_err(|wrong| format!("--{name}: {wrong}"));
    values.last(name).map(parse).transpose()
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
        assert_eq!(settings.authorization, Authorization::Rbac);
        assert_eq!(settings.account_issuer.as_deref(), Some("https://127.0.0.1:40001/"));
        assert_eq!(settings.account_keys, [PathBuf::from("/certs/sa-signer.crt")]);
        assert_eq!(settings.account_signing_key, Some(PathBuf::from("/certs/sa-signer.key")));
        assert!(settings.garbage_collection);
        assert!(settings.plugins.is_off("ServiceAccount"));
    }

    #[test]
    fn the_keys_of_tokens_are_where_the_flags_say() {
        let uri = |arguments: &[&str]| settings(arguments).map(|settings| settings.account_keys_uri);
        let said = "--service-account-jwks-uri=https://keys.example/set";
        let name = "--external-hostname=api.example";
        assert_eq!(uri(&[]), Ok(None));
        assert_eq!(uri(&[said, name]), Ok(Some("https://keys.example/set".to_owned())));
        assert_eq!(uri(&[name]), Ok(Some("https://api.example:6443/openid/v1/jwks".to_owned())));
        assert_eq!(uri(&[name, "--secure-port=0"]), Ok(None), "the port is not known yet");
        assert!(uri(&["--service-account-jwks-uri=http://keys.example"]).is_err());
    }

    #[test]
    fn values_that_would_change_what_a_test_sees_are_refused() {
        for wrong in [
            "--authorization-mode=RBAC,Webhook",
            "--enable-admission-plugins=AlwaysPullImages",
            "--disable-admission-plugins=Nonsense",
            "--runtime-config=batch/v1=false",
            "--runtime-config=api/beta=false",
            "--service-cluster-ip-range=192.168.0.0/16",
            "--secure-port=http",
            "--bind-address=localhost",
            "--event-ttl=soon",
        ] {
            assert!(settings(&[wrong]).is_err(), "{wrong}");
        }
        assert!(settings(&["--runtime-config=api/all=true,api/beta"]).is_ok());
    }

    #[test]
    fn nobody_is_anonymous_where_everything_is_allowed_or_it_is_switched_off() {
        let anonymous = |arguments: &[&str]| settings(arguments).unwrap().anonymous;
        assert!(anonymous(&["--authorization-mode=RBAC"]));
        assert!(anonymous(&["--authorization-mode=RBAC", "--anonymous-auth=true"]));
        assert!(!anonymous(&["--authorization-mode=RBAC", "--anonymous-auth=false"]));
        assert!(!anonymous(&["--authorization-mode=RBAC,AlwaysAllow"]));
        assert!(!anonymous(&["--anonymous-auth=true"]), "what is not said is AlwaysAllow");
    }

    #[test]
    fn roles_are_looked_at_only_if_that_is_asked_for() {
        let authorization = |arguments: &[&str]| settings(arguments).unwrap().authorization;
        assert_eq!(authorization(&[]), Authorization::AlwaysAllow);
        assert_eq!(authorization(&["--authorization-mode=AlwaysAllow,RBAC"]), Authorization::AlwaysAllow);
        assert_eq!(authorization(&["--authorization-mode=Node,RBAC"]), Authorization::Rbac);
    }
}
