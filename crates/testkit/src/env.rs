use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use kube_core::CustomResourceExt;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use watchkeeper_apiserver::Authorization;
use watchkeeper_apiserver::authentication::Identity;
use watchkeeper_connection::Connection;
use watchkeeper_description::{Description, Right, Roles, Verbs, roles};
use watchkeeper_storage::Storage;

use crate::entrance::Entrance;
use crate::loopback::Loopback;
use crate::real::Real;
use crate::server::Server;
use crate::timeline::{Fate, Seen};
use crate::wall_clock::WallClock;
use crate::watches::Cut;
use crate::{Call, Fault, Outcome, TestEnvBuilder, builder, definitions, transport};

/// Where the service accounts of operators are.
const NAMESPACE: &str = "default";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A Kubernetes API in the process of a test.
///
/// - It is ready in a few milliseconds and shares nothing with others; hundreds can run at once.
/// - Its [connections](Self::connection) need no socket, so that it works under tokio's paused clock.
/// - It does what a server in a bad world does: [goes away](Self::stop) and comes back, [ends watches](Self::cut_watches),
///   [denies](Self::deny), or has requests [delayed, lost or unanswered](Self::fault).
/// - It remembers the last 10,000 [requests](Self::requests), and prints the last of them when it is dropped while the test
///   panics.
///
/// Dropping it ends the server; connections that are left over are refused.
///
/// What it is told to do itself (install, create namespaces) goes past all faults, is not remembered, and panics when it
/// fails.
pub struct TestEnv {
    entrance: Arc<Entrance>,
    behind: Behind,
    wall_clock: WallClock,
    /// Where it listens, if it does.
    place: Option<(SocketAddr, PathBuf)>,
    loopback: Mutex<Option<Loopback>>,
}

/// What remains of a server that goes away.
pub(crate) enum Behind {
    Embedded {
        storage: Arc<dyn Storage>,
        options: Box<watchkeeper_apiserver::Options>,
        address: Option<SocketAddr>,
    },
    Real(Arc<Real>),
}

impl TestEnv {
    /// Starts an environment with default options.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Options of an environment.
    pub fn builder() -> TestEnvBuilder {
        TestEnvBuilder::default()
    }

    pub(crate) fn new(
        entrance: Arc<Entrance>,
        behind: Behind,
        wall_clock: WallClock,
        loopback: Option<Loopback>,
    ) -> Self {
        let place = loopback.as_ref().map(|loopback| (loopback.address(), loopback.kubeconfig().to_owned()));
        Self { entrance, behind, wall_clock, place, loopback: Mutex::new(loopback) }
    }

    /// A connection with all rights, for managers and clients of this framework. Its default namespace is `default`.
    pub fn connection(&self) -> Connection {
        transport::connection(Arc::clone(&self.entrance), Identity::admin())
    }

    /// A connection of this user in these groups.
    pub fn connection_as(&self, user: &str, groups: &[&str]) -> Connection {
        transport::connection(Arc::clone(&self.entrance), Identity::new(user, groups.iter().copied()))
    }

    /// A connection of an operator that may do what its description asks for and nothing else: a service account in the namespace `default`
    /// with the roles that follow from it. What it asks for beyond that is answered with 403.
    ///
    /// ```no_run
    /// # use watchkeeper_description::Description;
    /// # use watchkeeper_testkit::TestEnv;
    /// # async fn example(description: Description) {
    /// let env = TestEnv::builder().with_roles().start().await;
    /// let connection = env.connection_for(&description).await;
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the environment does not [look at roles](TestEnvBuilder::with_roles), or the roles cannot be made.
    pub async fn connection_for(&self, description: &Description) -> Connection {
        self.connection_with(&description.name, &roles(&description.rights, |_| true)).await
    }

    /// As [`connection_for`](Self::connection_for), with rules that are given: the service account `name` in the namespace `default` may do what they
    /// allow and nothing else. For tests of the rules themselves, such as those that leave one out.
    ///
    /// # Panics
    ///
    /// As [`connection_for`](Self::connection_for).
    pub async fn connection_with(&self, name: &str, roles: &Roles) -> Connection {
        if let Behind::Embedded { options, .. } = &self.behind {
            let looks = options.authorization == Authorization::Rbac;
            assert!(looks, "everybody may do everything here: TestEnv::builder().with_roles().start()");
        }
        let server = self.server();
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}});
        let objects = roles.objects(name, NAMESPACE, &json!({}));
        for object in std::iter::once(account).chain(objects) {
            let path = match (object["kind"].as_str(), object["metadata"]["namespace"].as_str()) {
                (Some("ServiceAccount"), Some(namespace)) => {
                    format!("/api/v1/namespaces/{namespace}/serviceaccounts")
                }
                (Some(kind), Some(namespace)) => {
                    format!("{RBAC}/namespaces/{namespace}/{}s", kind.to_lowercase())
                }
                (kind, _) => format!("{RBAC}/{}s", kind.unwrap_or_default().to_lowercase()),
            };
            if let Err(error) = definitions::ask(&server, "POST", &path, &object).await {
                panic!("the roles of {name:?}: {error}");
            }
        }
        let user = operator_name(name);
        self.connection_as(
            &user,
            &["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        )
    }

    /// The rights in the description of an operator that its [connection](Self::connection_for) has not used in the last 10,000
    /// requests.
    pub fn unused_rights(&self, description: &Description) -> Vec<Right> {
        let user = operator_name(&description.name);
        let requests = self.requests();
        let own = requests.iter().filter(|seen| seen.call.user == user);
        description.rights.unused(own.flat_map(|Seen { call, fate, .. }| {
            // To apply what is not there is to create it.
            let created = (*fate == Fate::Answered(201)).then_some(Verbs::CREATE);
            [Verbs::named(call.verb), created].into_iter().flatten().map(|verb| call.requested(verb))
        }))
    }

    /// The URL of the server: `https://127.0.0.1:40123`.
    ///
    /// # Panics
    ///
    /// If it was not [built](TestEnvBuilder::listening) to listen.
    pub fn url(&self) -> String {
        format!("https://{}", self.place().0)
    }

    /// A kubeconfig file for processes that the test starts; gone with the environment.
    ///
    /// # Panics
    ///
    /// If it was not [built](TestEnvBuilder::listening) to listen.
    pub fn kubeconfig(&self) -> &Path {
        &self.place().1
    }

    fn place(&self) -> &(SocketAddr, PathBuf) {
        match &self.place {
            Some(place) => place,
            None => panic!("the environment does not listen: TestEnv::builder().listening().start()"),
        }
    }

    /// Installs the definition of a custom resource and waits until it is served.
    pub async fn install<K: CustomResourceExt>(&self) {
        self.install_value(json!(K::crd())).await;
    }

    /// Installs the definitions in a YAML text.
    pub async fn install_yaml(&self, text: &str) {
        match definitions::documents(text) {
            Ok(documents) => {
                for document in documents {
                    self.install_value(document).await;
                }
            }
            Err(error) => panic!("the definitions could not be read: {error}"),
        }
    }

    /// Installs the definitions in a YAML file.
    pub async fn install_file(&self, file: impl AsRef<Path>) {
        let file = file.as_ref();
        match std::fs::read_to_string(file) {
            Ok(text) => self.install_yaml(&text).await,
            Err(error) => panic!("{}: {error}", file.display()),
        }
    }

    async fn install_value(&self, mut definition: Value) {
        definition["apiVersion"] = "apiextensions.k8s.io/v1".into();
        definition["kind"] = "CustomResourceDefinition".into();
        if let Err(error) = definitions::install(&self.server(), &definition).await {
            panic!("{error}");
        }
    }

    /// Creates a namespace.
    pub async fn create_namespace(&self, name: &str) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        if let Err(error) = definitions::ask(&self.server(), "POST", "/api/v1/namespaces", &namespace).await {
            panic!("namespace {name:?}: {error}");
        }
    }

    fn server(&self) -> Server {
        match self.entrance.server() {
            Some(server) => server,
            None => panic!("the server is stopped"),
        }
    }

    /// The storage under the server.
    ///
    /// # Panics
    ///
    /// If the server is a real one.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        match &self.behind {
            Behind::Embedded { storage, .. } => storage,
            Behind::Real(_) => panic!("a real server does not show its storage"),
        }
    }

    /// The present time, as in objects.
    pub fn wall_clock(&self) -> SystemTime {
        self.wall_clock.now()
    }

    /// Sets the time in objects. No other clock changes.
    ///
    /// # Panics
    ///
    /// If the server is a real one.
    pub fn set_wall_clock(&self, time: SystemTime) {
        assert!(matches!(self.behind, Behind::Embedded { .. }), "a real server has a clock of its own");
        self.wall_clock.set(time);
    }

    /// Stops the server: watches end, connections are refused. Stored objects stay. A real server runs on, out of
    /// reach.
    pub async fn stop(&self) {
        if let Some(server) = self.entrance.replace(None) {
            self.entrance.watches.cut(Cut::Broken);
            if let Some(loopback) = &mut *self.loopback.lock().await {
                loopback.stop().await;
            }
            if let Server::Embedded(server) = server {
                server.stop().await;
            }
        }
    }

    /// Starts a [stopped](Self::stop) server again, over the same storage and at the same port.
    ///
    /// # Panics
    ///
    /// If it does not come back.
    pub async fn resume(&self) {
        if self.entrance.server().is_some() {
            return;
        }
        let server = match &self.behind {
            Behind::Embedded { storage, options, address } => {
                match builder::started(storage, options, *address).await {
                    Ok(server) => server,
                    Err(error) => panic!("the server did not come back: {error}"),
                }
            }
            Behind::Real(server) => Server::Real(Arc::clone(server)),
        };
        drop(self.entrance.replace(Some(server)));
        if let Some(loopback) = &mut *self.loopback.lock().await
            && let Err(error) = loopback.resume(&self.entrance).await
        {
            panic!("the server does not listen any more: {error}");
        }
    }

    /// Stops the server and starts it again.
    pub async fn restart(&self) {
        self.stop().await;
        self.resume().await;
    }

    /// Ends all open watches, as when their time is over.
    pub fn cut_watches(&self) {
        self.entrance.watches.cut(Cut::Clean);
    }

    /// Ends all open watches as when their connections break.
    pub fn break_watches(&self) {
        self.entrance.watches.cut(Cut::Broken);
    }

    /// Injects a fault: a function decides the outcome of every request, until the fault is lifted or dropped. Where there are several,
    /// delays add up, and the first that does not let a request pass decides.
    ///
    /// The function is called when a request is sent; it may keep count, or draw from a generator with a seed.
    pub fn fault(&self, decide: impl Fn(&Call) -> Outcome + Send + Sync + 'static) -> Fault {
        self.entrance.faults.add(decide)
    }

    /// Injects a fault: matching requests are answered with 403.
    pub fn deny(&self, matching: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Fault {
        self.fault(move |call| if matching(call) { Outcome::forbid() } else { Outcome::pass() })
    }

    /// The last 10,000 requests, oldest first.
    pub fn requests(&self) -> Vec<Seen> {
        self.entrance.timeline.requests()
    }

    /// The number of matching requests among the last 10,000.
    pub fn count(&self, matching: impl Fn(&Seen) -> bool) -> usize {
        self.entrance.timeline.count(matching)
    }

    /// The number of requests so far; the next one will have a [number](Call::number) one larger. To ask for what was
    /// sent after a moment, compare with what this was then.
    pub fn request_count(&self) -> u64 {
        self.entrance.timeline.total()
    }

    /// The last 100 requests, one a line.
    pub fn timeline(&self) -> String {
        self.entrance.timeline.to_string()
    }
}

/// The user that the service account of an operator is.
fn operator_name(name: &str) -> String {
    format!("system:serviceaccount:{NAMESPACE}:{name}")
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "the test has failed, and this is what it is read for")]
            {
                eprintln!("{}", self.timeline());
            }
        }
        self.entrance.close();
    }
}

impl fmt::Debug for TestEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestEnv").field("requests", &self.request_count()).finish_non_exhaustive()
    }
}
