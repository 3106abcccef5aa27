//! Who sends webhooks to a receiver, over a socket.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::SystemTime;

use ring::hmac;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use watchkeeper_front::{Front, Listener};
use watchkeeper_go::base64::STANDARD;
use watchkeeper_sources::webhook::Receiver;

pub(crate) const SECRET: &str = "a secret of the shop";

pub(crate) struct Shop {
    pub(crate) receiver: Receiver,
    pub(crate) address: SocketAddr,
    pub(crate) directory: TempDir,
    _front: Front,
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

/// The headers of a delivery as in Standard Webhooks.
pub(crate) fn signed(secret: &str, id: &str, time: u64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signature = STANDARD.encode(hmac::sign(&key, format!("{id}.{time}.{body}").as_bytes()));
    format!("webhook-id: {id}\r\nwebhook-timestamp: {time}\r\nwebhook-signature: v1,{signature}\r\n")
}

/// The headers of a delivery as GitHub sends them.
pub(crate) fn github(secret: &str, id: &str, body: &str) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body.as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("x-hub-signature-256: sha256={hex}\r\nx-github-delivery: {id}\r\n")
}

impl Shop {
    pub(crate) fn open(make: impl FnOnce(std::path::PathBuf) -> Receiver) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secret");
        std::fs::write(&file, SECRET).unwrap();
        let receiver = make(file);
        let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let address = listener.address();
        let front = Front::builder(receiver.clone()).http(listener).start().unwrap();
        Self { receiver, address, directory, _front: front }
    }

    pub(crate) fn standard() -> Self {
        Self::open(Receiver::standard)
    }

    /// Sends a request; gives the status of the answer.
    pub(crate) async fn send(&self, method: &str, headers: &str, body: &str) -> u16 {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let length = body.len();
        let request = format!(
            "{method} /hook HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        // Who is refused may find the connection closed before all is sent.
        let _ = socket.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// Delivers something as it should be.
    pub(crate) async fn deliver(&self, id: &str, body: &str) -> u16 {
        self.send("POST", &signed(SECRET, id, now(), body), body).await
    }
}
