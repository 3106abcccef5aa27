//! Asks the `etcd` beside this server where objects are to be kept.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use crate::etcd::DATA_DIRECTORY;

/// It is on this machine, and has nothing else to do.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The directory of the etcd at this URL; nothing if it has none. An error if it is not one of ours.
pub(super) fn data_directory(url: &str) -> Result<Option<PathBuf>, String> {
    let answer = get(url, DATA_DIRECTORY)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, "")) if head.starts_with("HTTP/1.1 200 ") => Ok(None),
        Some((head, path)) if head.starts_with("HTTP/1.1 200 ") => Ok(Some(path.into())),
        _ => Err("it does not say where its data is".to_owned()),
    }
}

fn get(url: &str, path: &str) -> Result<String, String> {
    let host = url.strip_prefix("http://").ok_or("its URL does not begin with http://")?;
    let host = host.trim_end_matches('/');
    let failed = |error: std::io::Error| error.to_string();
    let address = host.to_socket_addrs().map_err(failed)?.next().ok_or("its host has no address")?;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).map_err(failed)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
    stream.set_write_timeout(Some(TIMEOUT)).map_err(failed)?;
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())
        .map_err(failed)?;
    let mut answer = String::new();
    // More than any path: whoever sends on is not ours.
    stream.take(64 << 10).read_to_string(&mut answer).map_err(failed)?;
    Ok(answer)
}
