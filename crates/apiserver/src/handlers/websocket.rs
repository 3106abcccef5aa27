//! Watches over a WebSocket (RFC 6455): each event is a message. What clients send is not looked at, but for pings and goodbyes.

use std::io;
use std::pin::pin;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use http::HeaderMap;
use http::header::{HeaderName, ORIGIN, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::request::media::Format;

/// What is hashed together with the key of a client, as the standard says.
const MAGIC: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The most bytes of a message of a client, none of which is of interest.
const MOST_IGNORED: u64 = 64 << 10;

/// How much of that is read at once.
const PIECE: usize = 4 << 10;

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The code of a watch that came to its end.
const NORMAL: [u8; 2] = 1000u16.to_be_bytes();

/// What a client is answered that wants to go on over a WebSocket.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) accept: String,
    pub(super) protocol: Option<String>,
}

/// Why a client cannot go on over a WebSocket, and the code that says so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) u16, pub(super) &'static str);

impl Handshake {
    /// Reads what the client asks for. As in kube-apiserver, it has to say where it comes from.
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, Refused> {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        if text(&SEC_WEBSOCKET_VERSION) != Some("13") {
            return Err(Refused(400, "bad version of Web Sockets"));
        }
        let key = text(&SEC_WEBSOCKET_KEY).unwrap_or_default().trim();
        if watchkeeper_go::base64::decode(key).map_or(true, |key| key.len() != 16) {
            return Err(Refused(400, "mismatch challenge/response"));
        }
        if text(&ORIGIN).is_none_or(str::is_empty) {
            return Err(Refused(403, "null origin"));
        }
        let offered = text(&SEC_WEBSOCKET_PROTOCOL).unwrap_or_default();
        let mut offered = offered.split(',').map(str::trim).filter(|protocol| !protocol.is_empty());
        let protocol = offered.next().map(str::to_owned);
        if offered.next().is_some() {
            return Err(Refused(400, "missing or bad WebSocket-Protocol"));
        }
        let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key.as_bytes(), MAGIC].concat());
        Ok(Self { accept: watchkeeper_go::base64::encode(hash), protocol })
    }
}

/// Sends the events of a watch until they end, the client says goodbye or its connection breaks.
pub(super) async fn serve(
    connection: impl AsyncRead + AsyncWrite,
    events: impl Stream<Item = Bytes>,
    format: Format,
) {
    let (reading, mut writing) = tokio::io::split(connection);
    let mut events = pin!(events);
    // What was read of a frame so far is kept in here while an event is sent.
    let mut controls = pin!(stream::unfold(reading, |mut reading| async move {
        let control = listen(&mut reading).await;
        Some((control, reading))
    }));
    loop {
        let outcome = tokio::select! {
            control = controls.next() => match control {
                Some(Ok(Control::Ping(payload))) => send(&mut writing, &frame(PONG, &payload)).await,
                Some(Ok(Control::Close) | Err(_)) | None => break,
            },
            piece = events.next() => match piece {
                Some(piece) => send(&mut writing, &messages(&piece, format)).await,
                None => break,
            },
        };
        if outcome.is_err() {
            return;
        }
    }
    // The client may be gone; then nobody misses it.
    let _ = send(&mut writing, &frame(CLOSE, &NORMAL)).await;
}

async fn send(writing: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    writing.write_all(bytes).await?;
    writing.flush().await
}

/// The events of a piece of a watch, a message each.
fn messages(mut piece: &[u8], format: Format) -> BytesMut {
    let mut out = BytesMut::with_capacity(piece.len() + 16);
    while !piece.is_empty() {
        let (event, rest) = match format {
            Format::Protobuf => match piece.split_first_chunk::<4>() {
                Some((length, rest)) => {
                    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
                    rest.split_at_checked(length).unwrap_or((rest, &[]))
                }
                None => break,
            },
            Format::Json | Format::Yaml => {
                let end = memchr::memchr(b'\n', piece).map_or(piece.len(), |at| at + 1);
                piece.split_at(end)
            }
        };
        let kind = if format == Format::Protobuf { BINARY } else { TEXT };
        out.extend_from_slice(&frame(kind, event));
        piece = rest;
    }
    out
}

/// A message in one frame. Servers mask nothing.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(payload.len() + 10);
    frame.push(0x80 | kind);
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(length @ ..=125), _) => frame.push(length),
        (_, Ok(length)) => {
            frame.push(126);
            frame.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            frame.push(127);
            frame.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

/// What a client says that matters.
#[derive(Debug)]
enum Control {
    Ping(Vec<u8>),
    Close,
}

/// Reads what a client sends until something of it matters.
async fn listen(reading: &mut (impl AsyncRead + Unpin)) -> io::Result<Control> {
    loop {
        let first = reading.read_u8().await?;
        let second = reading.read_u8().await?;
        let length = match second & 0x7f {
            126 => u64::from(reading.read_u16().await?),
            127 => reading.read_u64().await?,
            length => u64::from(length),
        };
        let is_masked = second & 0x80 != 0;
        let kind = first & 0x0f;
        // Clients have to mask, and what is for us is short.
        if !is_masked || length > MOST_IGNORED || (kind >= CLOSE && length > 125) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mask = reading.read_u32().await?.to_be_bytes();
        match kind {
            CLOSE => return Ok(Control::Close),
            PING => {
                let mut payload = vec![0; usize::try_from(length).unwrap_or_default()];
                reading.read_exact(&mut payload).await?;
                payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
                return Ok(Control::Ping(payload));
            }
            _ => skip(reading, length).await?,
        }
    }
}

async fn skip(reading: &mut (impl AsyncRead + Unpin), length: u64) -> io::Result<()> {
    let mut piece = [0; PIECE];
    let mut left = length;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let count = reading.read(&mut piece[..most]).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left -= count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::duplex;

    fn request(extra: &[(&'static str, &'static str)]) -> HeaderMap {
        let usual = [
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("origin", "https://a"),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in usual.into_iter().chain(extra.iter().copied()) {
            headers.insert(name, value.parse().unwrap());
        }
        headers
    }

    /// A frame as clients send it.
    fn masked(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = frame(kind, payload);
        let at = frame.len() - payload.len();
        frame[1] |= 0x80;
        let mask = [1, 2, 3, 4];
        frame[at..].iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        frame.splice(at..at, mask);
        frame
    }

    #[test]
    fn the_handshake_is_that_of_the_standard() {
        let read = Handshake::read(&request(&[])).unwrap();
        assert_eq!((read.accept.as_str(), read.protocol), ("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", None));
        let read = Handshake::read(&request(&[("sec-websocket-protocol", "one")])).unwrap();
        assert_eq!(read.protocol.as_deref(), Some("one"));
        for (wrong, code) in [
            (("sec-websocket-version", "8"), 400),
            (("sec-websocket-key", "short"), 400),
            (("origin", ""), 403),
            (("sec-websocket-protocol", "one, two"), 400),
        ] {
            assert_eq!(Handshake::read(&request(&[wrong])).unwrap_err().0, code, "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn events_are_messages_pings_are_answered_and_the_end_is_said() {
        let (mut client, server) = duplex(1 << 20);
        let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(70_000));
        let pieces = [Bytes::from("{\"one\":1}\n{\"two\":2}\n"), Bytes::from(long.clone())];
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
        let events =
            stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) });
        let served = tokio::spawn(serve(server, events, Format::Json));
        // A frame of the client that comes in two parts, with an event between them.
        let ping = masked(PING, b"are you there");
        client.write_all(&ping[..3]).await.unwrap();
        sender.send(pieces[0].clone()).unwrap();
        let mut read = vec![0; 24];
        client.read_exact(&mut read).await.unwrap();
        assert_eq!(read, [frame(TEXT, b"{\"one\":1}\n"), frame(TEXT, b"{\"two\":2}\n")].concat());
        client.write_all(&ping[3..]).await.unwrap();
        let mut pong = vec![0; 15];
        client.read_exact(&mut pong).await.unwrap();
        assert_eq!(pong, frame(PONG, b"are you there"));
        client.write_all(&masked(TEXT, &[b'y'; 60_000])).await.unwrap();
        sender.send(pieces[1].clone()).unwrap();
        drop(sender);
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, [frame(TEXT, long.as_bytes()), frame(CLOSE, &NORMAL)].concat());
        served.await.unwrap();
    }

    #[tokio::test]
    async fn who_breaks_the_rules_is_left() {
        let endless = [0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        for wrong in [frame(TEXT, b"not masked"), masked(PING, &[0; 126]), endless.to_vec()] {
            let (mut client, server) = duplex(1 << 20);
            let served = tokio::spawn(serve(server, stream::pending::<Bytes>(), Format::Json));
            client.write_all(&wrong).await.unwrap();
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, frame(CLOSE, &NORMAL));
            served.await.unwrap();
        }
    }

    #[test]
    fn events_in_protobuf_lose_their_length() {
        let piece = [&3u32.to_be_bytes()[..], b"abc", &1u32.to_be_bytes(), b"d"].concat();
        assert_eq!(messages(&piece, Format::Protobuf), [frame(BINARY, b"abc"), frame(BINARY, b"d")].concat());
    }
}
