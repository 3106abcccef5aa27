//! HTTP/1.1 as bytes: requests, one behind the other, and what only looks like them.

use crate::Dice;

/// What a client sends on one connection.
#[derive(Clone, Debug)]
pub struct Octets {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many requests have to be answered: all of them if nothing was changed.
    pub requests: usize,
    /// Whether something was changed.
    pub mutated: bool,
}

const BODY: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"o-"}}"#;
const CREATE: &str = "POST /api/v1/namespaces/default/configmaps?dryRun=All HTTP/1.1";

impl Octets {
    /// The bytes of a seed; every fifth is valid. The last request asks to close.
    pub fn generate(seed: u64, authority: &str, authorization: Option<&str>) -> Self {
        let mut dice = Dice::new(seed);
        let mutated = !dice.chance(20);
        let known = authorization.map(|value| format!("authorization: {value}\r\n")).unwrap_or_default();
        let common = format!("host: {authority}\r\n{known}");
        let requests = 1 + dice.below(3);
        let changed = dice.below(requests);
        let mut bytes = Vec::new();
        for at in 0..requests {
            let close = if at + 1 == requests { "connection: close\r\n" } else { "" };
            let mut request = valid(&format!("{common}{close}"), &mut dice);
            if mutated && at == changed {
                request = match dice.below(3) {
                    0 => smuggled(&common, &mut dice),
                    1 => odd(&common, &mut dice),
                    _ => noise(request, &mut dice),
                };
            }
            bytes.extend(request);
        }
        Self { bytes, requests, mutated }
    }
}

fn valid(common: &str, dice: &mut Dice) -> Vec<u8> {
    let kind = "content-type: application/json\r\n";
    match dice.below(4) {
        0 => format!("GET /api/v1/namespaces/default HTTP/1.1\r\n{common}\r\n"),
        1 => format!("GET /healthz HTTP/1.1\r\n{common}\r\n"),
        2 => format!("{CREATE}\r\n{common}{kind}content-length: {}\r\n\r\n{BODY}", BODY.len()),
        _ => format!(
            "{CREATE}\r\n{common}{kind}transfer-encoding: chunked\r\n\r\n{:x}\r\n{BODY}\r\n0\r\n\r\n",
            BODY.len()
        ),
    }
    .into_bytes()
}

/// Forms in which two readers may not agree where a request ends.
fn smuggled(common: &str, dice: &mut Dice) -> Vec<u8> {
    let hidden = format!("GET /hidden HTTP/1.1\r\n{common}\r\n");
    let length = BODY.len();
    let head = dice.pick(&[
        "content-length: 5\r\ntransfer-encoding: chunked", "transfer-encoding: chunked\r\ncontent-length: 5",
        "content-length: 5\r\ncontent-length: 6", "content-length: 5, 5", "content-length: +5",
        "content-length: -5", "content-length: 5 ", "content-length: 0x5", "content-length : 5",
        "content-length: 18446744073709551616", "content-length:", "transfer-encoding: xchunked",
        // Longer than what a reader may keep of a line.
        "content-length:                                                                  5",
        "content-length: 0000000000000000000000000000000000000000000000000000000000000005",
        "transfer-encoding:                                                            chunked",
        "transfer-encoding: chunked, identity", "transfer-encoding: identity, chunked",
        "transfer-encoding : chunked", "transfer-encoding:\tchunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked", "transfer-encoding: CHUNKED",
        "transfer-encoding: \"chunked\"", "transfer-encoding:\r\n chunked",
        "x: y\ntransfer-encoding: chunked", "x: y\rtransfer-encoding: chunked",
        "transfer-encoding: chunked;q=1", "transfer-encoding\u{0}: chunked",
    ]);
    let body = match dice.below(8) {
        0 => format!("{length:x}\r\n{BODY}\r\n0\r\n\r\n{hidden}"),
        1 => format!("0\r\n\r\n{hidden}"),
        2 => format!("{length:x};a=\"b\r\nc\"\r\n{BODY}\r\n0\r\nx: y\r\n\r\n"),
        3 => format!("ffffffffffffffff\r\n{BODY}"),
        4 => format!("fffffffffffffffff\r\n{BODY}"),
        5 => format!("-1\r\n{BODY}\r\n0\r\n\r\n"),
        6 => format!("{length:x}\n{BODY}\n0\n\n"),
        _ => format!(
            "{:x}\r\n{BODY}\r\n0\r\n{}\r\n",
            length + 7,
            "x: y\r\n".repeat(*dice.item(&[1, 200, 20_000]))
        ),
    };
    format!("{CREATE}\r\n{common}content-type: application/json\r\n{head}\r\n\r\n{body}").into_bytes()
}

/// Lines that are nearly right.
fn odd(common: &str, dice: &mut Dice) -> Vec<u8> {
    let line = dice.pick(&[
        "GET  /healthz HTTP/1.1", "GET /healthz", "GET /healthz HTTP/0.9", "GET /healthz HTTP/1.0",
        "GET /healthz HTTP/2.0", "GET /healthz HTTP/1.1 x", "get /healthz HTTP/1.1",
        "GET http://example.com/healthz HTTP/1.1", "GET * HTTP/1.1", "OPTIONS * HTTP/1.1",
        "CONNECT example.com:443 HTTP/1.1", "GET healthz HTTP/1.1", "GET /\u{0} HTTP/1.1", "GET /é HTTP/1.1",
        "GET /%zz HTTP/1.1", "TRACE / HTTP/1.1", "PRI * HTTP/2.0", "\r\n\r\nGET /healthz HTTP/1.1",
        "GET /healthz#x HTTP/1.1", "GET //healthz HTTP/1.1", "GET /../healthz HTTP/1.1",
        "GET \\healthz HTTP/1.1", "X-Y /healthz HTTP/1.1", "GET\t/healthz HTTP/1.1",
    ]);
    let line = match dice.below(12) {
        0 => format!("GET /{} HTTP/1.1", "x".repeat(*dice.item(&[8_000, 70_000, 300_000]))),
        1 => format!("{} / HTTP/1.1", "X".repeat(*dice.item(&[20, 5_000]))),
        _ => line.to_owned(),
    };
    let headers = match dice.below(14) {
        0 => format!("x: {}", "y".repeat(*dice.item(&[8_000, 130_000, 500_000]))),
        1 => "x: y\r\n".repeat(*dice.item(&[99, 101, 5_000])) + "x: y",
        2 => "x: a\u{0}b".to_owned(),
        3 => " folded: x".to_owned(),
        4 => "x: a\r\n b".to_owned(),
        5 => ": y".to_owned(),
        6 => "no colon".to_owned(),
        7 => "host: other".to_owned(),
        8 => "expect: 100-continue".to_owned(),
        9 => {
            "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQCAAAAAAIAAAAA"
                .to_owned()
        }
        10 => {
            "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: x\r\nsec-websocket-version: 13"
                .to_owned()
        }
        11 => "é: y".to_owned(),
        _ => "x: y".to_owned(),
    };
    format!("{line}\r\n{common}{headers}\r\n\r\n").into_bytes()
}

/// A few bytes changed, missing or more.
fn noise(mut bytes: Vec<u8>, dice: &mut Dice) -> Vec<u8> {
    for _ in 0..dice.few() {
        let at = dice.below(bytes.len());
        match dice.below(4) {
            0 => bytes[at] = dice.byte(),
            1 => bytes.insert(at, *dice.item(b"\r\n\0 :\t/\xff")),
            2 if bytes.len() > 1 => drop(bytes.remove(at)),
            _ => {
                let end = (at + dice.below(40)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

/// The codes of the answers in what a server sent, without those that only say that it goes on.
pub fn codes(bytes: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(bytes);
    let heads = text.split("HTTP/1.1 ").skip(1);
    heads.filter_map(|head| head.get(..3)?.parse().ok()).filter(|code| *code >= 200).collect()
}
