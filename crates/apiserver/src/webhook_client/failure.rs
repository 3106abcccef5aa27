//! What is said of a connection that failed, in the words of Go's `net`, `crypto/tls` and `net/http`.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::time::SystemTime;

use watchkeeper_connection::{Error, Obstacle, SocketError};

use super::Caller;
use super::distrust::distrusted;

/// What is said of a request that has no answer.
pub(super) fn in_words_of_go(error: &Error, caller: &Caller) -> String {
    match error {
        Error::Connect { server, reason } => not_connected(reason, server, caller),
        Error::Broken(error) => broken(&**error).unwrap_or_else(|| "EOF".to_owned()),
        error => error.to_string(),
    }
}

/// What is said of an answer that broke off.
pub(super) fn body_in_words_of_go(error: &(dyn StdError + 'static)) -> String {
    broken(error).unwrap_or_else(|| "unexpected EOF".to_owned())
}

fn not_connected(obstacle: &Obstacle, server: &str, caller: &Caller) -> String {
    match obstacle {
        Obstacle::Lookup(error) => {
            let host = caller.host();
            // The name of the resolver is left out: it is the affair of the system.
            match error.to_string().contains("emporary") {
                true => format!("dial tcp: lookup {host}: server misbehaving"),
                false => format!("dial tcp: lookup {host}: no such host"),
            }
        }
        Obstacle::Dial { address, error } => format!("dial tcp {address}: {}", of_system("connect", error)),
        Obstacle::NoTls { first, .. } if first == b"HTTP/" => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        Obstacle::NoTls { .. } => "tls: first record does not look like a TLS handshake".to_owned(),
        Obstacle::Alert { code, .. } => format!("remote error: tls: {}", alert(*code)),
        Obstacle::Certificate { chain, is_foreign, error } => {
            let error = error.to_string();
            // Of these, Go says that no authority has issued them.
            let is_foreign = *is_foreign
                || ["CaUsedAsEndEntity", "UnsupportedSignatureAlgorithm"]
                    .iter()
                    .any(|why| error.contains(why));
            let why = distrusted(chain, is_foreign, caller, SystemTime::now()).unwrap_or(error);
            format!("tls: failed to verify certificate: x509: {why}")
        }
        Obstacle::Handshake(error) if error.kind() == ErrorKind::UnexpectedEof => "EOF".to_owned(),
        Obstacle::Handshake(error) => broken(error).unwrap_or_else(|| error.to_string()),
        Obstacle::Timeout(_) => "context deadline exceeded".to_owned(),
        obstacle => format!("dial tcp {server}: {obstacle}"),
    }
}

/// What is said of a connection that somebody broke; `None` if the other side closed it.
fn broken(error: &(dyn StdError + 'static)) -> Option<String> {
    let SocketError { operation, local, remote, error } = SocketError::within(error)?;
    let mut between = String::new();
    if let (Some(local), Some(remote)) = (local, remote) {
        // Writing to a string does not fail.
        let _ = write!(between, " {local}->{remote}");
    }
    Some(format!("{operation} tcp{between}: {}", of_system(operation, error)))
}

/// What is said of a call of the system that failed.
fn of_system(call: &str, error: &io::Error) -> String {
    let why = match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused",
        ErrorKind::ConnectionReset => "connection reset by peer",
        ErrorKind::BrokenPipe => "broken pipe",
        ErrorKind::HostUnreachable => "no route to host",
        ErrorKind::NetworkUnreachable => "network is unreachable",
        ErrorKind::TimedOut => "connection timed out",
        _ => return format!("{call}: {error}"),
    };
    format!("{call}: {why}")
}

/// What `crypto/tls` calls an alert.
fn alert(code: u8) -> String {
    let name = match code {
        0 => "close notify",
        10 => "unexpected message",
        20 => "bad record MAC",
        21 => "decryption failed",
        22 => "record overflow",
        30 => "decompression failure",
        40 => "handshake failure",
        42 => "bad certificate",
        43 => "unsupported certificate",
        44 => "revoked certificate",
        45 => "expired certificate",
        46 => "unknown certificate",
        47 => "illegal parameter",
        48 => "unknown certificate authority",
        49 => "access denied",
        50 => "error decoding message",
        51 => "error decrypting message",
        60 => "export restriction",
        70 => "protocol version not supported",
        71 => "insufficient security level",
        80 => "internal error",
        86 => "inappropriate fallback",
        90 => "user canceled",
        100 => "no renegotiation",
        109 => "missing extension",
        110 => "unsupported extension",
        111 => "certificate unobtainable",
        112 => "unrecognized name",
        113 => "bad certificate status response",
        114 => "bad certificate hash value",
        115 => "unknown PSK identity",
        116 => "certificate required",
        120 => "no application protocol",
        121 => "encrypted client hello required",
        code => return format!("alert({code})"),
    };
    name.to_owned()
}
