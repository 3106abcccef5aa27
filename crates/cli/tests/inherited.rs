//! `watchkeeper serve` on sockets that somebody else holds, as systemd does.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use watchkeeper_front::Listener;

const TOKEN: &str = "a-token-for-tests";

fn any() -> Listener {
    Listener::bind(([127, 0, 0, 1], 0).into()).unwrap()
}

fn serve(listeners: &[Listener], data: &Path, tokens: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    command.args(["serve", "--listen", "127.0.0.1:1"]).arg("--data-dir").arg(data);
    command.arg("--token-file").arg(tokens).stdin(Stdio::null()).stdout(Stdio::piped());
    Listener::pass(listeners, &mut command).unwrap();
    command
}

/// A server that is ready, and its first line. It is killed if the test does not end it.
struct Server(Child, String);

impl Server {
    fn start(listeners: &[Listener], data: &Path, tokens: &Path) -> Self {
        let mut child = serve(listeners, data, tokens).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        Self(child, ready)
    }

    /// Ends it as systemd does, and waits until it is gone.
    fn stop(mut self) {
        assert!(
            Command::new("kill").args(["-s", "TERM", &self.0.id().to_string()]).status().unwrap().success()
        );
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One request on a connection of its own.
fn get(http: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(http).expect("refused");
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!("host: localhost\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n");
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\n{head}\r\n").as_bytes())
        .expect("closed before it was used");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("reset");
    answer
}

fn tokens(directory: &Path) -> std::path::PathBuf {
    let file = directory.join("tokens.csv");
    std::fs::write(&file, format!("{TOKEN},tester,1,system:masters\n")).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    file
}

#[test]
fn a_server_that_is_started_again_on_the_sockets_of_another_process_refuses_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let (data, tokens) = (directory.path().join("data"), tokens(directory.path()));
    let listeners = [any().named("watchkeeper.socket"), any().named("http")];
    let [https, http] = listeners.each_ref().map(Listener::address);
    let first = Server::start(&listeners, &data, &tokens);
    assert!(first.1.ends_with(&format!(": https://{https}\n")), "{}", first.1);

    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = [(); 4].map(|()| {
            scope.spawn(|| {
                let mut count = 0;
                while !stop.load(Ordering::SeqCst) {
                    let answer = get(http, "/api/v1/namespaces/default");
                    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
                    count += 1;
                }
                count
            })
        });
        get(http, "/readyz");
        first.stop();
        // Nobody serves now, and nobody is refused.
        let waiting = TcpStream::connect(https).expect("refused");
        let second = Server::start(&listeners, &data, &tokens);
        assert!(get(http, "/readyz").starts_with("HTTP/1.1 200"));
        stop.store(true, Ordering::SeqCst);
        for asking in asking {
            assert!(asking.join().expect("a request was lost") > 1);
        }
        drop((waiting, second));
    });
}

#[test]
fn more_sockets_than_can_be_served_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let tokens = tokens(directory.path());
    let mut command = serve(&[any(), any()], &directory.path().join("data"), &tokens);
    let output = command.stderr(Stdio::piped()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("LISTEN_FDS: besides a socket called http, there can be one"), "{error}");
}
