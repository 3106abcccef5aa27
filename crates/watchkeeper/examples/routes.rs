//! One controller over three places where routes are declared: a kind of a cluster, a directory, and a table of PostgreSQL.
//!
//! Each route becomes a line in a file of its own, `OUT/NAMESPACE.NAME.conf`; a route that is gone takes its file with it. What became of a
//! route is written back to where it was declared. docs/book/union.md walks through it.
//!
//! `cargo run --example routes --features files,postgres,union`, with ROUTES_DIRECTORY, ROUTES_DATABASE and ROUTES_OUT set.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use watchkeeper::prelude::*;
use watchkeeper::sources::files::Files;
use watchkeeper::sources::kubernetes::Kubernetes;
use watchkeeper::sources::postgres::Postgres;
use watchkeeper::sources::union::Union;

/// What people declare, wherever they do.
#[watchkeeper::kind(
    group = "demo.watchkeeper.dev",
    version = "v1",
    kind = "Route",
    namespaced,
    status = "RouteStatus",
    printcolumn("Host", ".spec.host"),
    printcolumn("Ready", ".status.ready"),
    printcolumn("Reason", ".status.reason")
)]
pub(crate) struct RouteSpec {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// What became of it.
#[watchkeeper::schema]
pub(crate) struct RouteStatus {
    pub(crate) ready: bool,
    pub(crate) reason: String,
}

/// A route of any of the three. An object of the cluster, a document of the directory and a row of the table have a `spec` in common.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Declared {
    pub(crate) spec: RouteSpec,
}

/// The table: `routes (namespace, name, spec, status)`. A trigger tells of its changes.
pub(crate) fn table(database: &str) -> Postgres {
    Postgres::table(database, "routes").namespace("namespace").status_column("status").notify()
}

/// The three as one. Of a route that several of them have, the first one's counts.
pub(crate) fn routes(cluster: Connection, directory: &Path, table: Postgres) -> Union {
    let directory = Files::directory(directory).of::<Route>().status_directory(directory.join(".status"));
    Union::of("routes").member(Kubernetes::of::<Route>(cluster)).member(directory).member(table)
}

/// Where the file of a route is.
pub(crate) fn file(out: &Path, route: &Key) -> PathBuf {
    out.join(format!("{}.{}.conf", route.namespace().unwrap_or("default"), route.name()))
}

/// What is done for a route, and when it is gone.
struct Routing {
    out: PathBuf,
    say: fn(String),
}

impl Reconciler<Declared> for Routing {
    async fn reconcile(&self, route: Arc<Declared>, cx: Context<Declared>) -> Result<Action> {
        let RouteSpec { host, port } = &route.spec;
        let status = if host.contains(char::is_whitespace) {
            RouteStatus { ready: false, reason: "the host has a space in it".into() }
        } else {
            tokio::fs::write(file(&self.out, cx.key()), format!("{host} {port}\n")).await?;
            RouteStatus { ready: true, reason: "Routed".into() }
        };
        // `ADDED routes.d shop/cart`: which of the three it was.
        let because = cx.cause().map(ToString::to_string).unwrap_or_default();
        (self.say)(format!("{because}: {}", status.reason));
        cx.write_status(&status).await?;
        Ok(Action::done())
    }

    async fn deleted(&self, _: Arc<Declared>, cx: Context<Declared>) -> Result<Action> {
        match tokio::fs::remove_file(file(&self.out, cx.key())).await {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => (self.say)(format!("{}: no longer routed", cx.key())),
        }
        Ok(Action::done())
    }
}

/// The controller. A status that the cluster keeps inside its object is no reason to run again.
pub(crate) fn controller(routes: Union, out: PathBuf, say: fn(String)) -> Controller {
    Controller::over::<Declared>("routes", routes)
        .filter(Predicate::generation_changed())
        .reconcile(Routing { out, say })
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "it says what it does")]
async fn main() -> Result<()> {
    watchkeeper::log::init();
    let set = |name: &str| std::env::var(name).map_err(|_| Error::message(format!("{name} is not set")));
    let (directory, database, out) = (set("ROUTES_DIRECTORY")?, set("ROUTES_DATABASE")?, set("ROUTES_OUT")?);
    let cluster = Connection::infer().await?;
    let table = table(&database);
    table.install().await?;
    let routes = routes(cluster.clone(), Path::new(&directory), table);
    let manager = Manager::new("routes", cluster).install::<Route>();
    manager.controller(controller(routes, out.into(), |line| println!("{line}"))).run().await
}
