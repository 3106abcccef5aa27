//! Another process in the place of this one, on the same sockets.

use std::env;
use std::fs::File;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{self, Command};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{sleep, timeout};
use watchkeeper_apiserver::front::Listener;
use watchkeeper_gateway::Handle;

use crate::failure::Failure;

/// Where a process says that it is ready, and with which word: `ADDRESS WORD`.
const READY: &str = "WATCHKEEPER_GATEWAY_READY";
/// How long a process may take until it serves.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// How often to look whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The signal that asks for another process.
pub(super) struct Requests(Signal);

impl Requests {
    pub(super) fn listen() -> Result<Self, Failure> {
        signal(SignalKind::user_defined2()).map(Self).map_err(Failure::running)
    }
}

/// The socket of this name that was inherited, or a new one for this address.
pub(super) fn socket(
    name: &str,
    address: SocketAddr,
    inherited: &mut Vec<Listener>,
) -> Result<Listener, Failure> {
    match inherited.iter().position(|listener| listener.name() == Some(name)) {
        Some(at) => Ok(inherited.swap_remove(at)),
        None => Listener::bind(address).map(|socket| socket.named(name)).map_err(Failure::running),
    }
}

/// Tells the process that started this one, if there is one that wants to know, that requests are served.
pub(super) async fn tell_ready() {
    let Ok(wanted) = env::var(READY) else { return };
    let Some((address, word)) = wanted.split_once(' ') else { return };
    let told = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(word.as_bytes()).await?;
        stream.shutdown().await
    };
    if let Err(error) = told.await {
        tracing::warn!("the process before this one is not told that this one serves: {error}");
    }
}

/// Ends when another process serves on the sockets of this one, which a signal asked for.
pub(super) async fn until_replaced(requests: &mut Requests, gateway: &Handle, others: &[Listener]) {
    loop {
        if requests.0.recv().await.is_none() {
            return std::future::pending().await;
        }
        match replace(gateway, others).await {
            Ok(process) => return tracing::info!("process {process} serves in the place of this one"),
            Err(reason) => tracing::error!("no other process takes over: {reason}; this one goes on"),
        }
    }
}

/// Starts this program anew, and waits until it serves.
async fn replace(gateway: &Handle, others: &[Listener]) -> Result<u32, String> {
    let said = |error: std::io::Error| error.to_string();
    let waiting = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(said)?;
    let word = random_word()?;
    let mut arguments = env::args_os();
    let mut command = Command::new(program().map_err(said)?);
    command.args(arguments.by_ref().skip(1));
    command.env(READY, format!("{} {word}", waiting.local_addr().map_err(said)?));
    let sockets = gateway.sockets();
    Listener::pass(sockets.iter().chain(others), &mut command).map_err(|error| error.to_string())?;
    let mut child = command.spawn().map_err(said)?;
    let ready = async {
        tokio::select! {
            () = told(&waiting, &word) => Ok(()),
            ended = ended(&mut child) => Err(ended),
        }
    };
    match timeout(READY_TIMEOUT, ready).await {
        Ok(Ok(())) => Ok(child.id()),
        Ok(Err(reason)) => Err(reason),
        Err(_) => {
            let _ = child.kill(); // it may have ended meanwhile
            let _ = child.wait();
            Err(format!("it did not serve within {READY_TIMEOUT:?}"))
        }
    }
}

/// This program, or what has been put in its place since it was started.
fn program() -> std::io::Result<PathBuf> {
    let path = env::current_exe()?;
    // What Linux calls a file that was replaced.
    let replaced = path.to_str().and_then(|text| text.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.unwrap_or(path))
}

/// Waits until somebody who knows the word says it.
async fn told(waiting: &TcpListener, word: &str) {
    loop {
        let Ok((stream, _)) = waiting.accept().await else {
            sleep(POLL_INTERVAL).await;
            continue;
        };
        let mut said = Vec::new();
        let read = timeout(Duration::from_secs(1), stream.take(64).read_to_end(&mut said)).await;
        if matches!(read, Ok(Ok(_))) && said == word.as_bytes() {
            return;
        }
    }
}

/// Waits until a process has ended.
async fn ended(child: &mut process::Child) -> String {
    loop {
        match child.try_wait() {
            Ok(None) => sleep(POLL_INTERVAL).await,
            Ok(Some(status)) => return format!("it has ended: {status}"),
            Err(error) => return error.to_string(),
        }
    }
}

fn random_word() -> Result<String, String> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| format!("/dev/urandom: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
