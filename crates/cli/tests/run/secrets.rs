//! No password is told: not in the most talkative of logs, not in an error, not in a metric.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use super::place::{Place, eventually};
use super::{mysql, postgres};

/// What is in all of them.
const SECRET: &str = "hunter2";

/// A service that refuses whoever asks for `/denied`, and answers everybody else.
fn service() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                let (code, body) = match head.starts_with(b"GET /denied") {
                    true => ("401 Unauthorized", ""),
                    false => ("200 OK", r#"[{"id": "a"}]"#),
                };
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {code}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
                );
            });
        }
    });
    port
}

/// Has etcd ask for passwords.
fn ask_for_passwords(server: &watchkeeper_etcd::testing::Server, password: &str) {
    for (path, body) in [
        ("user/add", format!(r#"{{"name":"root","password":"{password}"}}"#)),
        ("role/add", r#"{"name":"root"}"#.into()),
        ("user/grant", r#"{"user":"root","role":"root"}"#.into()),
        ("enable", "{}".into()),
    ] {
        let url = format!("{}/v3/auth/{path}", server.endpoint());
        let done =
            Command::new("curl").args(["-sS", "--fail-with-body", "-X", "POST", &url, "-d", &body]).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{path}: {}", String::from_utf8_lossy(&done.stdout));
    }
}

/// A source of a reactor.
fn source(name: &str, url: &str, settings: &str) -> String {
    format!("  - {{name: {name}, url: \"{url}\", settings: {{{settings}}}}}\n")
}

#[test]
fn no_password_of_any_source_is_in_a_log_an_error_or_a_metric() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let place = Place::empty();
    for (file, secret) in [("right", "hunter2-right"), ("wrong", "hunter2-wrong")] {
        place.write(file, &format!("{secret}\n"));
    }

    let postgres = postgres::Server::shared();
    let database = runtime.block_on(postgres.database());
    runtime.block_on(database.sql(
        "CREATE TABLE items (name text PRIMARY KEY); INSERT INTO items VALUES ('a');
         CREATE ROLE old LOGIN PASSWORD 'hunter2-right'; GRANT SELECT ON items TO old",
    ));
    let maria = mysql::Server::shared().database();
    maria.items();
    maria.put("a", 1);
    maria.sql("CREATE USER IF NOT EXISTS 'secretive'@'%' IDENTIFIED BY 'hunter2-right'; GRANT SELECT ON *.* TO 'secretive'@'%'");
    let http = service();

    let table = |url: &str| format!("{url}?table=items");
    let mut sources = String::new();
    for password in ["right", "wrong"] {
        let url = postgres.url(&format!("old:hunter2-{password}"), &database.name);
        sources += &source(&format!("postgres-{password}"), &table(&url), "");
        let url = maria.url.replace("mysql://root@", &format!("mysql://secretive:hunter2-{password}@"));
        sources += &source(&format!("mysql-{password}"), &(table(&url) + "&ssl-mode=preferred"), "");
        let path = if password == "right" { "items" } else { "denied" };
        let url = format!("http://jane:hunter2-{password}@127.0.0.1:{http}/{path}?token=hunter2");
        let settings = format!(
            "key: /id, interval: 50ms, headers: {{x-key: hunter2}}, headerFiles: {{x-other: {password}}}"
        );
        sources += &source(&format!("http-{password}"), &url, &settings);
    }
    let etcd = runtime.block_on(watchkeeper_etcd::testing::Server::start()).unwrap();
    if let Some(server) = &etcd {
        ask_for_passwords(server, "hunter2-right");
        for password in ["right", "wrong"] {
            let url = format!("etcd://127.0.0.1:{}/items/", server.port());
            sources +=
                &source(&format!("etcd-{password}"), &url, &format!("user: root, passwordFile: {password}"));
        }
    }
    let names: Vec<&str> =
        sources.lines().map(|line| line.split([':', ',']).nth(1).unwrap().trim()).collect();
    let reactions: String = names
        .iter()
        .map(|name| format!("  - {{name: on-{name}, on: {name}, do: {{shell: \"true\"}}}}\n"))
        .collect();
    place.write(
        "reactor.yaml",
        &format!(
            "apiVersion: run.watchkeeper.dev/v1alpha1\nkind: Reactor\nmetadata: {{name: test}}\nspec:\n  sources:\n{sources}  reactions:\n{reactions}"
        ),
    );

    let mut runner = place.run(&["--metrics", "127.0.0.1:0", "--log", "trace"]);
    let line = runner.says("metrics on http://");
    let address = line.rsplit_once("http://").unwrap().1.strip_suffix("/metrics").unwrap().to_owned();
    for name in &names {
        eventually(name, || {
            runner.said().iter().any(|line| match name.ends_with("right") {
                true => line.contains(&format!(" {name}: ")) && line.contains(" objects in "),
                false => line.contains(&format!("WARN {name}: ")) && line.contains("trying again in"),
            })
        });
    }
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut metrics = String::new();
    stream.read_to_string(&mut metrics).unwrap();
    assert!(names.iter().all(|name| metrics.contains(*name)), "{metrics}");
    assert!(!metrics.contains(SECRET), "{metrics}");
    runner.signal("TERM");
    let (code, said) = runner.end();
    assert_eq!(code, Some(0));
    assert!(said.len() > 100, "it talks: {}", said.len());
    // As they are, and as HTTP says them.
    let basic = |password: &str| watchkeeper_go::base64::encode(format!("jane:hunter2-{password}"));
    for secret in [SECRET.to_owned(), basic("right"), basic("wrong")] {
        let told: Vec<&String> = said.iter().filter(|line| line.contains(&secret)).collect();
        assert!(told.is_empty(), "{told:#?}");
    }

    // What is wrong with the file is told without what is secret in it.
    let file = std::fs::read_to_string(place.path("reactor.yaml")).unwrap();
    place.write("reactor.yaml", &file.replace("table=items", "tabel=items").replace("key: /id", "kye: /id"));
    let (code, out, said) = super::place::ended(place.command(&["--check"]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("spec.sources[0]") && !(out + &said).contains(SECRET), "{said}");
}
