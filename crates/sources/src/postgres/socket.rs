//! The connection to a PostgreSQL server, with the negotiation of TLS.

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::failure::Failure;
use crate::database::{Address, Socket, TlsMode};

/// Connects, and agrees on TLS.
pub(super) async fn connect(address: &Address) -> Result<Socket, Failure> {
    #[cfg(unix)]
    if address.host.starts_with('/') {
        return Ok(Socket::unix(&format!("{}/.s.PGSQL.{}", address.host, address.port)).await?);
    }
    let mut socket = Socket::tcp(address).await?;
    if address.tls == TlsMode::Disable {
        return Ok(socket);
    }
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    socket.write_all(&request).await?;
    // One byte and no more: what comes after it is encrypted, or was slipped in by somebody.
    match socket.read_u8().await? {
        b'S' => Ok(socket.secure(address).await?),
        b'N' if address.tls == TlsMode::Prefer => Ok(socket),
        b'N' => {
            let reason =
                "the server has no TLS, and sslmode asks for it: set ssl = on there, or sslmode=prefer here";
            Err(Failure::Connection(reason.into()))
        }
        _ => Err(Failure::Connection("this is no PostgreSQL server".into())),
    }
}
