//! A server that only sends: what no server can be faster than on the same machine, with the same clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, oneshot};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use watchkeeper_apiserver::authentication::Credentials;
use watchkeeper_bench_target::{Access, Result};

/// How many bytes are sent at once, as our server does it.
const PIECE: usize = 64 << 10;
/// More pieces than are ever under way.
const PIECES: usize = 4096;

/// Listens on loopback, on a thread of its own, and answers everybody with the same bytes over TLS. It ends when it is dropped.
pub(crate) struct Bare {
    pub(crate) access: Arc<Access>,
    pieces: broadcast::Sender<Bytes>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Bare {
    pub(crate) fn start() -> Result<Self> {
        let (server, client) = configurations()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        listener.set_nonblocking(true)?;
        let access = Access {
            address: listener.local_addr()?,
            authorization: None,
            tls: Arc::new(client),
            from: None,
            turns: None,
        };
        let pieces = broadcast::Sender::new(PIECES);
        let (stop, stopped) = oneshot::channel();
        let (acceptor, source) = (TlsAcceptor::from(Arc::new(server)), pieces.clone());
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, &acceptor, &source) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { access: Arc::new(access), pieces, stop: Some(stop), thread: Some(thread) })
    }

    /// Sends so many copies of a line to everybody.
    pub(crate) fn send(&self, line: &str, count: usize) {
        let at_once = (PIECE / line.len()).max(1);
        for first in (0..count).step_by(at_once) {
            let text = line.repeat(at_once.min(count - first));
            // It only fails if nobody listens, and then nobody waits for it.
            let _ = self.pieces.send(Bytes::from(format!("{:x}\r\n{text}\r\n", text.len())));
        }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// For the server, with keys that were made for it, and for clients that trust it.
fn configurations() -> Result<(ServerConfig, ClientConfig)> {
    let directory = tempfile::tempdir()?;
    let [certificate, key] = ["certificate", "key"].map(|name| directory.path().join(name));
    Credentials::create_server_files(&certificate, &key, &["127.0.0.1".into()])?;
    let chain = CertificateDer::pem_file_iter(&certificate)?.collect::<Result<Vec<_>, _>>()?;
    let mut roots = RootCertStore::empty();
    roots.add(chain.last().ok_or("there is no certificate")?.clone())?;
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(&key)?)?;
    Ok((server, ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

/// If it cannot listen or accept, its clients wait in vain, and say so.
async fn serve(listener: std::net::TcpListener, acceptor: &TlsAcceptor, pieces: &broadcast::Sender<Bytes>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut clients = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // Whoever is cut off says so.
        clients.spawn(answer(stream, acceptor.clone(), pieces.subscribe()));
    }
}

async fn answer(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    mut pieces: broadcast::Receiver<Bytes>,
) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = acceptor.accept(stream).await?;
    // Whatever it asks, the answer is the same.
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut asked).await? == 0 {
            return Err("a watcher left before it asked".into());
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
    loop {
        stream.flush().await?;
        stream.write_all(&pieces.recv().await?).await?;
    }
}
