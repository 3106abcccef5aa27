//! The PROXY protocol, versions 1 and 2: what a proxy sends before everything else, to tell where the client is.

use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt};

/// What version 2 begins with.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// The longest line of version 1, with its end.
const LINE: usize = 107;
/// The longest rest of version 2: two addresses, and what else proxies may say, which is ignored.
const REST: usize = 4_096;

/// Reads a header, and not a byte more. Gives the address of the client; `None` if the proxy speaks for itself, or does not know.
pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<SocketAddr>, Error> {
    // The shortest header of version 1 is longer.
    let mut begin = [0; SIGNATURE.len()];
    stream.read_exact(&mut begin).await?;
    if begin == SIGNATURE {
        let mut head = [0; 4];
        stream.read_exact(&mut head).await?;
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        if length > REST {
            return Err(wrong("the header is too long"));
        }
        let mut rest = vec![0; length];
        stream.read_exact(&mut rest).await?;
        return binary(head[0], head[1], &rest);
    }
    if !begin.starts_with(b"PROXY ") {
        return Err(wrong("the connection does not begin with a header of the PROXY protocol"));
    }
    let mut line = begin.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() >= LINE {
            return Err(wrong("the header is too long"));
        }
        line.push(stream.read_u8().await?);
    }
    text(&line)
}

fn wrong(message: &str) -> Error {
    Error::new(ErrorKind::InvalidData, message)
}

/// Version 1: `PROXY TCP4 192.0.2.1 192.0.2.2 56324 443`.
fn text(line: &[u8]) -> Result<Option<SocketAddr>, Error> {
    let malformed = || wrong("the header is malformed");
    let line = std::str::from_utf8(line).map_err(|_| malformed())?;
    let mut words = line.trim_end_matches("\r\n").split(' ').skip(1);
    let family = words.next().unwrap_or_default();
    if family == "UNKNOWN" {
        return Ok(None);
    }
    let (Some(from), Some(to), Some(from_port), Some(to_port), None) =
        (words.next(), words.next(), words.next(), words.next(), words.next())
    else {
        return Err(malformed());
    };
    let port = |text: &str| text.parse::<u16>().map_err(|_| malformed());
    let (from_port, _) = (port(from_port)?, port(to_port)?);
    match family {
        "TCP4" => {
            let read = |text: &str| text.parse::<Ipv4Addr>().map_err(|_| malformed());
            read(to)?;
            Ok(Some((read(from)?, from_port).into()))
        }
        "TCP6" => {
            let read = |text: &str| text.parse::<Ipv6Addr>().map_err(|_| malformed());
            read(to)?;
            Ok(Some((read(from)?, from_port).into()))
        }
        _ => Err(malformed()),
    }
}

/// Version 2, after its signature.
fn binary(version: u8, family: u8, rest: &[u8]) -> Result<Option<SocketAddr>, Error> {
    match version {
        // The proxy speaks for itself: to see whether we are there.
        0x20 => return Ok(None),
        0x21 => {}
        _ => return Err(wrong("the header is of a version or has a command that is not known")),
    }
    let short = || wrong("the header is too short for its addresses");
    let port = |at: usize| Some(u16::from_be_bytes([*rest.get(at)?, *rest.get(at + 1)?]));
    match family {
        0x11 => {
            let from: [u8; 4] = rest.get(..4).and_then(|bytes| bytes.try_into().ok()).ok_or_else(short)?;
            rest.get(..12).ok_or_else(short)?;
            Ok(Some((from, port(8).ok_or_else(short)?).into()))
        }
        0x21 => {
            let from: [u8; 16] = rest.get(..16).and_then(|bytes| bytes.try_into().ok()).ok_or_else(short)?;
            rest.get(..36).ok_or_else(short)?;
            Ok(Some((from, port(32).ok_or_else(short)?).into()))
        }
        // Datagrams, sockets of the machine: whoever sends that knows what it means.
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(mut bytes: &[u8]) -> Result<(Option<SocketAddr>, &[u8]), String> {
        let address = read(&mut bytes).await.map_err(|error| error.to_string())?;
        Ok((address, bytes))
    }

    fn version2(head: [u8; 2], rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &head, &length, rest].concat()
    }

    #[tokio::test]
    async fn the_address_of_the_client_is_read_and_nothing_behind_the_header() {
        let four = "192.0.2.1:56324".parse().ok();
        let six = "[2001:db8::1]:7".parse().ok();
        let v4 = [192, 0, 2, 1, 192, 0, 2, 2, 0xdc, 0x04, 1, 187, 3, 0, 4, 1, 2, 3, 4];
        let mut v6 = [0; 36];
        v6[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        (v6[15], v6[33]) = (1, 7);
        let cases: Vec<(Vec<u8>, Option<SocketAddr>)> = vec![
            (b"PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n".to_vec(), four),
            (b"PROXY TCP6 2001:db8::1 ::1 7 443\r\n".to_vec(), six),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (b"PROXY UNKNOWN whatever it is\r\n".to_vec(), None),
            (version2([0x21, 0x11], &v4), four),
            (version2([0x21, 0x21], &v6), six),
            (version2([0x20, 0x00], &[]), None),
            (version2([0x21, 0x31], &[0; 216]), None),
        ];
        for (header, expected) in cases {
            let bytes = [header.as_slice(), b"GET / HTTP/1.1"].concat();
            assert_eq!(read_all(&bytes).await, Ok((expected, &b"GET / HTTP/1.1"[..])), "{header:?}");
        }
    }

    #[tokio::test]
    async fn what_is_no_header_is_refused() {
        let mut cases: Vec<Vec<u8>> = [
            &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
            b"PROXY TCP4 192.0.2.1 192.0.2.2 56324\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 56324 443 1\r\n",
            b"PROXY TCP4 ::1 192.0.2.2 56324 443\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 99999 443\r\n",
            b"PROXY TCP9 192.0.2.1 192.0.2.2 1 443\r\n",
            b"PROXY TCP4  192.0.2.1 192.0.2.2 1 443\r\n",
            b"PROXY \xff\xff\xff\xff\xff\xff\xff\xff\r\n",
            b"PROXY TCP4 192.0.2.1",
            b"PRO",
            b"",
        ]
        .map(<[u8]>::to_vec)
        .into();
        cases.push([&b"PROXY UNKNOWN "[..], &[b'a'; 200], b"\r\n"].concat());
        cases.push(version2([0x31, 0x11], &[0; 12]));
        cases.push(version2([0x22, 0x11], &[0; 12]));
        cases.push(version2([0x21, 0x11], &[0; 11]));
        cases.push(version2([0x21, 0x21], &[0; 35]));
        cases.push(version2([0x21, 0x11], &[0; REST + 1]));
        cases.push(version2([0x21, 0x11], &[0; 12])[..20].to_vec());
        for header in cases {
            assert!(read_all(&header).await.is_err(), "{header:?}");
        }
    }
}
