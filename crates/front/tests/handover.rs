//! A process that serves hands its listeners to another one, while clients ask all the time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;
use watchkeeper_front::{Body, Drained, Front, Listener, Request, Response};

const ROLE: &str = "WATCHKEEPER_FRONT_ROLE";
const TIMEOUT: Duration = Duration::from_secs(60);

/// The other processes: each answers with its number, and hands over when a line comes in. Does nothing when it is run as a test.
#[test]
fn process() {
    let Ok(number) = std::env::var(ROLE) else { return };
    // Threads of the test harness wait for this one, and do not look at the environment.
    let mut inherited = Listener::inherited().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = inherited.pop().unwrap_or_else(|| Listener::bind(([127, 0, 0, 1], 0).into()).unwrap());
        assert!(inherited.is_empty());
        let (address, name) = (listener.address(), listener.name().map(str::to_owned));
        let answer = {
            let number = number.clone();
            move |_: Request| {
                let number = number.clone();
                async move {
                    // Long enough to be under way when the process is told to go.
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    Response::new(Body::whole(number))
                }
            }
        };
        let front = Front::builder(answer).http(listener).start().unwrap();
        println!("process {number} serves {address} as {name:?}");
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        if lines.next_line().await.unwrap().is_none() {
            return;
        }
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["process", "--exact", "--nocapture", "--test-threads=1"]).env(ROLE, "2");
        front.pass_listeners(&mut command).unwrap();
        let mut next = Other::of(Command::from(command).stdin(Stdio::inherit()));
        next.says("process 2 serves").await;
        let drained = front.hand_over(Duration::from_secs(20)).await;
        assert_eq!(drained, Drained::Clean);
        println!("process {number} has handed over");
        next.process.wait().await.unwrap();
    });
}

struct Other {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn of(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// Waits for a line with this in it.
    async fn says(&mut self, what: &str) -> String {
        let wait = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if line.contains(what) {
                    return line;
                }
            }
            panic!("it never said {what}");
        };
        timeout(TIMEOUT, wait).await.unwrap_or_else(|_| panic!("it did not say {what} in time"))
    }
}

/// One request on a connection of its own, some time after it was opened.
async fn asks_anew(address: SocketAddr, after: Duration) -> String {
    let mut socket = TcpStream::connect(address).await.expect("refused");
    tokio::time::sleep(after).await;
    let request = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    socket.write_all(request).await.expect("the connection was closed before it was used");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.expect("reset");
    assert!(answer.starts_with("HTTP/1.1 200"), "a request was lost: {answer:?}");
    answer.split("\r\n\r\n").nth(1).unwrap().to_owned()
}

/// Requests on one connection for as long as the server wants that, then on the next.
async fn asks_on(address: SocketAddr, stop: &AtomicBool, seen: &mut Vec<String>) {
    while !stop.load(Ordering::SeqCst) {
        let socket = TcpStream::connect(address).await.expect("refused");
        let (mut client, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.unwrap();
        tokio::spawn(connection);
        while !stop.load(Ordering::SeqCst) {
            let request =
                http::Request::get("/").header("host", "localhost").body(Empty::<bytes::Bytes>::new());
            let answer = client.send_request(request.unwrap()).await.expect("a request was lost");
            let is_last = answer.headers().get("connection").is_some_and(|value| value == "close");
            let body = answer.into_body().collect().await.expect("an answer broke off").to_bytes();
            seen.push(String::from_utf8(body.to_vec()).unwrap());
            if is_last {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_connection_is_refused_and_no_request_is_lost_while_one_process_takes_over_from_another() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["process", "--exact", "--nocapture", "--test-threads=1"]).env(ROLE, "1");
    command.env_remove("LISTEN_FDS").stdin(Stdio::piped());
    let mut first = Other::of(&mut command);
    let line = first.says("process 1 serves").await;
    assert!(line.ends_with("as None"), "{line}");
    let address: SocketAddr =
        line.split("serves ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();

    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = Vec::new();
    for number in 0..8_u64 {
        let stop = Arc::clone(&stop);
        clients.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            if number % 2 == 0 {
                asks_on(address, &stop, &mut seen).await;
            } else {
                let after = Duration::from_millis(number / 2 * 100);
                while !stop.load(Ordering::SeqCst) {
                    seen.push(asks_anew(address, after).await);
                }
            }
            seen
        }));
    }
    while asks_anew(address, Duration::ZERO).await != "1" {}
    first.process.stdin.as_mut().unwrap().write_all(b"hand over\n").await.unwrap();
    first.says("has handed over").await;
    for _ in 0..20 {
        assert_eq!(asks_anew(address, Duration::ZERO).await, "2", "the first process is gone");
    }
    stop.store(true, Ordering::SeqCst);
    for client in clients {
        let seen = timeout(TIMEOUT, client).await.unwrap().unwrap();
        let changes = seen.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(seen.first().unwrap() == "1" && seen.last().unwrap() == "2", "{} answers", seen.len());
        println!("{} answers, {changes} changes", seen.len());
    }
}
