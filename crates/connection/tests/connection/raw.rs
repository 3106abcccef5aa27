//! A server that does to each connection what a test says, byte by byte.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use watchkeeper_connection::{Config, Connection};

pub(crate) struct Raw {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Raw {
    /// Has `handle` do something with each connection, which it is given with its number, from 1.
    pub(crate) async fn start<F, A>(handle: F) -> Self
    where
        F: Fn(TcpStream, usize) -> A + Send + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut handled = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                handled.spawn(handle(stream, count.fetch_add(1, Ordering::SeqCst) + 1));
            }
        });
        Self { address, connections, _tasks: tasks }
    }

    pub(crate) fn connection(&self) -> Connection {
        Connection::new(Config::new(&format!("http://{}", self.address)).unwrap()).unwrap()
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads the head of a request, with its body if it has one; `None` if the client closes the connection instead.
pub(crate) async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(text).unwrap();
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some(head + &String::from_utf8(body).unwrap())
}

pub(crate) async fn write(stream: &mut TcpStream, text: &str) {
    let _ = stream.write_all(text.as_bytes()).await;
}

pub(crate) const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
