//! The example of the chapter about unions: an API server, a directory and a PostgreSQL, all of them real.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[allow(dead_code, reason = "the tests of the source use more of it")]
#[path = "../../sources/tests/postgres/server.rs"]
mod postgres;
#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../examples/routes.rs"]
mod routes;

use std::path::PathBuf;
use std::sync::Mutex;

use postgres::{Database, Server};
use routes::{Route, RouteSpec, RouteStatus};
use serde_json::Value;
use watchkeeper::prelude::*;
use watchkeeper_testkit::TestEnv;

/// What the controller says that it did.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Waits for this, for longer than it takes on a busy machine.
async fn eventually<R: Future<Output = bool> + Send>(check: impl Fn() -> R + Send) {
    watchkeeper_testkit::eventually(check).within(Duration::from_secs(60)).await;
}

/// The blocks of code of a chapter in this language.
fn chapter(language: &str) -> Vec<String> {
    let chapter = include_str!("../../../docs/book/union.md");
    let begin = format!("```{language}\n");
    chapter.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

struct World {
    client: Client,
    directory: tempfile::TempDir,
    database: Database,
}

impl World {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What the file of a route says.
    fn routed(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(routes::file(&self.path("out"), &Key::new(Some("shop"), name))).ok()
    }

    fn declare(&self, name: &str, host: &str) {
        let route = format!(
            "apiVersion: demo.watchkeeper.dev/v1\nkind: Route\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{host: {host}, port: 80}}\n"
        );
        std::fs::write(self.path(&format!("routes.d/{name}.yaml")), route).unwrap();
    }

    async fn status_of_object(&self, name: &str) -> Option<RouteStatus> {
        self.client.live().get::<Route>(&Key::new(Some("shop"), name)).await.unwrap()?.status.clone()
    }

    fn status_of_file(&self, name: &str) -> Option<Value> {
        let text = std::fs::read(self.path(&format!("routes.d/.status/shop/{name}.json"))).ok()?;
        serde_json::from_slice(&text).ok()
    }

    async fn status_of_row(&self, name: &str) -> Option<String> {
        let query = "SELECT status::text FROM routes WHERE name = $1";
        self.database.client.query_opt(query, &[&name]).await.unwrap()?.get(0)
    }
}

fn route(name: &str, host: &str) -> Route {
    let mut route = Route::new(name, RouteSpec { host: host.into(), port: 80 });
    route.metadata.namespace = Some("shop".into());
    route
}

#[tokio::test]
async fn routes_of_a_cluster_a_directory_and_a_table_are_one_and_hear_back_where_they_were_declared() {
    let env = TestEnv::start().await;
    env.create_namespace("shop").await;
    let database = Server::shared().database().await;
    for statements in chapter("sql") {
        database.sql(&statements).await;
    }
    let world =
        World { client: Client::new(env.connection()), directory: tempfile::tempdir().unwrap(), database };
    for name in ["routes.d", "out"] {
        std::fs::create_dir(world.path(name)).unwrap();
    }
    let table = routes::table(&world.database.url);
    table.install().await.unwrap();
    let union = routes::routes(env.connection(), &world.path("routes.d"), table);
    let controller = routes::controller(union, world.path("out"), |line| SAID.lock().unwrap().push(line));
    let running = Manager::new("test", env.connection()).install::<Route>().controller(controller);
    let running = running.start().await.unwrap();

    // The row that the chapter inserts was there before.
    eventually(|| async { world.routed("orders").as_deref() == Some("orders.example.com 8080\n") }).await;
    world.client.create(&route("cart", "cart.example.com")).await.unwrap();
    world.declare("search", "search.example.com");
    eventually(|| async { world.routed("cart").as_deref() == Some("cart.example.com 80\n") }).await;
    eventually(|| async { world.routed("search").as_deref() == Some("search.example.com 80\n") }).await;

    // Each of them has its status where it was declared.
    let routed = |status: &Value| status["ready"] == true && status["reason"] == "Routed";
    eventually(|| async { world.status_of_object("cart").await.is_some_and(|status| status.ready) }).await;
    eventually(|| async { world.status_of_file("search").is_some_and(|status| routed(&status)) }).await;
    let row = async || world.status_of_row("orders").await;
    eventually(|| async {
        row().await.is_some_and(|status| routed(&serde_json::from_str(&status).unwrap()))
    })
    .await;
    assert!(
        world.status_of_object("search").await.is_none() && world.status_of_row("search").await.is_none()
    );

    // And its cause says where that was.
    let said = |text: &str| SAID.lock().unwrap().iter().any(|line| line.contains(text));
    for line in [
        "ADDED routes.demo.watchkeeper.dev shop/cart: Routed".to_owned(),
        format!("ADDED {} shop/search: Routed", world.path("routes.d").display()),
        format!(
            "INITIAL 127.0.0.1:{}/{}/routes shop/orders: Routed",
            Server::shared().port,
            world.database.name
        ),
    ] {
        assert!(said(&line), "{line} is not among {:#?}", SAID.lock().unwrap());
    }

    // What is wrong is said there, too.
    world.declare("search", "'search example com'");
    eventually(|| async { world.status_of_file("search").is_some_and(|status| status["ready"] == false) })
        .await;
    assert_eq!(world.routed("search").as_deref(), Some("search.example.com 80\n"), "the last good one");
    world.declare("search", "find.example.com");
    eventually(|| async { world.routed("search").as_deref() == Some("find.example.com 80\n") }).await;

    // A route that two of them declare is the cluster's, until the cluster has it no more.
    world
        .database
        .sql("INSERT INTO routes VALUES ('shop', 'cart', '{\"host\": \"table\", \"port\": 1}')")
        .await;
    world
        .database
        .sql("UPDATE routes SET spec = '{\"host\": \"orders\", \"port\": 2}' WHERE name = 'orders'")
        .await;
    eventually(|| async { world.routed("orders").as_deref() == Some("orders 2\n") }).await;
    assert_eq!(world.routed("cart").as_deref(), Some("cart.example.com 80\n"));
    world.client.delete_key::<Route>(&Key::new(Some("shop"), "cart")).await.unwrap();
    eventually(|| async { world.routed("cart").as_deref() == Some("table 1\n") }).await;
    eventually(|| async { world.status_of_row("cart").await.is_some() }).await;

    // What is gone everywhere is routed no longer.
    world.database.sql("DELETE FROM routes").await;
    std::fs::remove_file(world.path("routes.d/search.yaml")).unwrap();
    let none = || std::fs::read_dir(world.path("out")).unwrap().count() == 0;
    eventually(|| async { none() }).await;
    running.stop().await;
}

#[test]
fn the_chapter_shows_the_example_as_it_is() {
    let example = include_str!("../examples/routes.rs");
    let shown = chapter("rust");
    assert_eq!(shown.len(), 4);
    for block in shown {
        assert!(example.contains(&block), "the example has no such lines:\n{block}");
    }
}
