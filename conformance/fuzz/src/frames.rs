//! HTTP/2 as bytes: a valid conversation, then frames that are not.

use crate::Dice;

/// What a client begins with.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const WITH_PRIORITY: u8 = 0x20;

/// One frame, right or wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream it is about.
    pub stream: u32,
    /// What is in it.
    pub payload: Vec<u8>,
    /// The length that it claims to have, if that is not the length it has.
    pub claimed: Option<u32>,
}

impl Frame {
    fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self { kind, flags, stream, payload: payload.into(), claimed: None }
    }

    /// As it is sent.
    pub fn bytes(&self) -> Vec<u8> {
        let length = self.claimed.unwrap_or(self.payload.len() as u32);
        let mut out = length.to_be_bytes()[1..].to_vec();
        out.extend([self.kind, self.flags]);
        out.extend(self.stream.to_be_bytes());
        out.extend(&self.payload);
        out
    }
}

/// What a client sends on one connection.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// The frames after the preface.
    pub frames: Vec<Frame>,
    /// How many requests have to be answered: all of them if nothing was changed.
    pub requests: usize,
    /// Whether something was changed.
    pub mutated: bool,
}

impl Conversation {
    /// The conversation of a seed; every fifth is valid.
    pub fn generate(seed: u64, authority: &str, authorization: Option<&str>) -> Self {
        let mut dice = Dice::new(seed);
        let mutated = !dice.chance(20);
        let mut frames = vec![Frame::new(SETTINGS, 0, 0, setting(3, 100)), Frame::new(SETTINGS, 1, 0, [])];
        let requests = 1 + dice.below(4);
        for at in 0..requests {
            let mut headers = request(authority, authorization, &mut dice);
            let stream = 2 * at as u32 + 1;
            let body = headers.iter().any(|(name, _)| name == "content-type");
            if mutated && dice.chance(25) {
                bend(&mut headers, &mut dice);
            }
            let mut block = block(&headers);
            if mutated && dice.chance(15) {
                block = bent_block(block, &mut dice);
            }
            headers_of(block, stream, !body, &mut frames, &mut dice);
            if body {
                let json = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"f-"}}"#;
                let (first, second) = json.split_at(dice.below(json.len()));
                frames.push(Frame::new(DATA, 0, stream, first));
                frames.push(Frame::new(DATA, END_STREAM, stream, second));
            }
        }
        if mutated {
            for _ in 0..dice.few() {
                mutate(&mut frames, &mut dice);
            }
        }
        Self { frames, requests, mutated }
    }

    /// All of it, as it is sent.
    pub fn bytes(&self) -> Vec<u8> {
        self.frames.iter().fold(PREFACE.to_vec(), |mut bytes, frame| {
            bytes.extend(frame.bytes());
            bytes
        })
    }
}

fn request(authority: &str, authorization: Option<&str>, dice: &mut Dice) -> Vec<(String, Vec<u8>)> {
    let (method, path) = dice.item(&[
        ("GET", "/api/v1/namespaces/default"),
        ("GET", "/api/v1/configmaps?limit=1"),
        ("GET", "/healthz"),
        ("GET", "/apis"),
        ("POST", "/api/v1/namespaces/default/configmaps?dryRun=All"),
        ("GET", "/nothing"),
    ]);
    let mut headers =
        vec![(":method", *method), (":scheme", "https"), (":path", *path), (":authority", authority)];
    if let Some(authorization) = authorization {
        headers.push(("authorization", authorization));
    }
    if *method == "POST" {
        headers.push(("content-type", "application/json"));
    }
    headers.into_iter().map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())).collect()
}

/// Changes the list of headers.
fn bend(headers: &mut Vec<(String, Vec<u8>)>, dice: &mut Dice) {
    let at = dice.below(headers.len());
    match dice.below(9) {
        0 => drop(headers.remove(at)),
        1 => {
            let again = headers[at].clone();
            headers.push(again);
        }
        2 => headers.swap(0, at),
        3 => {
            headers[at].1 =
                dice.pick(&["", " ", "\u{0}", "x\r\ny: z", "*", "CONNECT", "é", "http", "//", "%"]).into();
        }
        4 => {
            headers[at].0 =
                dice.pick(&["", ":", ":unknown", ":status", "Upper", "a b", "x\n", ":protocol"]).to_owned();
        }
        5 => headers.push((
            dice.pick(&[
                "connection", "transfer-encoding", "upgrade", "te", "host", "keep-alive", "proxy-connection",
            ])
            .into(),
            dice.pick(&["close", "chunked", "websocket", "trailers", "x", "gzip"]).into(),
        )),
        6 => headers.push((
            "content-length".into(),
            dice.pick(&["0", "1", "-1", "99999999999999999999", "x", "71"]).into(),
        )),
        7 => headers.push(("x".into(), vec![b'x'; *dice.item(&[100, 16_000, 60_000, 200_000])])),
        _ => headers.extend((0..*dice.item(&[10, 200, 2000])).map(|at| (format!("x-{at}"), b"y".to_vec()))),
    }
}

/// A block of headers without compression.
fn block(headers: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in headers {
        out.push(0);
        string(name.as_bytes(), &mut out);
        string(value, &mut out);
    }
    out
}

fn string(bytes: &[u8], out: &mut Vec<u8>) {
    let mut length = bytes.len();
    if length < 127 {
        out.push(length as u8);
    } else {
        out.push(127);
        length -= 127;
        while length >= 128 {
            out.push(length as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
    }
    out.extend_from_slice(bytes);
}

/// Compression that is none: indexes of nothing, sizes that are not allowed, numbers without end, bad padding.
fn bent_block(mut block: Vec<u8>, dice: &mut Dice) -> Vec<u8> {
    let odd: &[&[u8]] = &[
        &[0x80],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0xbf],
        &[0x3f, 0xff, 0xff, 0xff, 0x7f],
        &[0x20],
        &[0x3f, 0xe1, 0x1f],
        &[0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x00, 0x81, 0x00, 0x81, 0x00],
        &[0x40, 0x01, b'a', 0x82, 0xff, 0xff],
        &[0x10, 0x7f],
        &[0xff; 30],
        &[0x00, 0x00, 0x00],
        &[0x82, 0x82],
    ];
    let piece = *dice.item(odd);
    match dice.below(4) {
        0 => [piece, &block].concat(),
        1 => [&block, piece].concat(),
        2 => {
            block.truncate(dice.below(block.len() + 1));
            block
        }
        _ => {
            let at = dice.below(block.len());
            block[at] = dice.byte();
            block
        }
    }
}

/// A block of headers in one frame or several, with padding and priority now and then.
fn headers_of(block: Vec<u8>, stream: u32, is_end: bool, frames: &mut Vec<Frame>, dice: &mut Dice) {
    let end = if is_end { END_STREAM } else { 0 };
    let pieces: Vec<&[u8]> = if dice.chance(30) || block.len() > 16_000 {
        block.chunks((block.len() / 3).clamp(1, 16_000)).collect()
    } else {
        vec![&block]
    };
    let last = pieces.len().saturating_sub(1);
    for (at, piece) in pieces.into_iter().enumerate() {
        let done = if at == last { END_HEADERS } else { 0 };
        frames.push(match (at, dice.below(5)) {
            (0, 0) => Frame::new(HEADERS, end | done | PADDED, stream, [&[3], piece, &[0, 0, 0]].concat()),
            (0, 1) => {
                Frame::new(HEADERS, end | done | WITH_PRIORITY, stream, [&[0, 0, 0, 0, 15], piece].concat())
            }
            (0, _) => Frame::new(HEADERS, end | done, stream, piece),
            _ => Frame::new(CONTINUATION, done, stream, piece),
        });
    }
}

fn setting(name: u16, value: u32) -> Vec<u8> {
    [name.to_be_bytes().to_vec(), value.to_be_bytes().to_vec()].concat()
}

/// Changes one frame, or puts one where none belongs.
fn mutate(frames: &mut Vec<Frame>, dice: &mut Dice) {
    let at = dice.below(frames.len());
    match dice.below(12) {
        0 => frames[at].stream = stream(dice),
        1 => frames[at].flags = dice.byte(),
        2 => frames[at].kind = *dice.item(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0xff]),
        3 => frames[at].claimed = Some(*dice.item(&[0, 1, 4, 8, 9, 16_384, 16_385, 0xff_ffff])),
        4 => {
            let length = dice.below(frames[at].payload.len() + 1);
            frames[at].payload.truncate(length);
        }
        5 => {
            let again = frames[at].clone();
            frames.insert(dice.below(frames.len()), again);
        }
        6 => drop((frames.len() > 1).then(|| frames.remove(at))),
        7 => {
            let other = dice.below(frames.len());
            frames.swap(at, other);
        }
        _ => {
            let frame = odd_frame(dice);
            let times = *dice.item(&[1, 1, 1, 1, 3, 50, 300]);
            let frames_more = std::iter::repeat_n(frame, times);
            frames.splice(at..at, frames_more);
        }
    }
}

fn stream(dice: &mut Dice) -> u32 {
    *dice.item(&[0, 1, 1, 2, 3, 3, 5, 7, 101, 0x7fff_ffff, 0x8000_0001, 0xffff_ffff])
}

fn odd_frame(dice: &mut Dice) -> Frame {
    let stream = stream(dice);
    let number = *dice.item(&[0_u32, 1, 65_535, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]);
    match dice.below(12) {
        0 => Frame::new(WINDOW, 0, stream, number.to_be_bytes()),
        1 => Frame::new(
            SETTINGS,
            0,
            if dice.chance(90) { 0 } else { stream },
            setting(*dice.item(&[0, 1, 2, 3, 4, 5, 6, 8, 99]), number),
        ),
        2 => Frame::new(SETTINGS, 0, 0, vec![0; dice.below(13)]),
        3 => Frame::new(SETTINGS, 1, 0, vec![0; 6]),
        4 => Frame::new(PRIORITY, 0, stream, [stream.to_be_bytes().as_slice(), &[255]].concat()),
        5 => Frame::new(RESET, 0, stream, number.to_be_bytes()),
        6 => Frame::new(
            PING,
            dice.byte() & 1,
            if dice.chance(90) { 0 } else { stream },
            vec![0; *dice.item(&[8, 8, 8, 0, 7, 9])],
        ),
        7 => Frame::new(GOAWAY, 0, 0, [number.to_be_bytes(), number.to_be_bytes()].concat()),
        8 => Frame::new(
            DATA,
            *dice.item(&[0, END_STREAM, PADDED, PADDED | END_STREAM]),
            stream,
            vec![*dice.item(&[0, 1, 3, 255]); dice.below(6)],
        ),
        9 => Frame::new(CONTINUATION, dice.byte() & END_HEADERS, stream, vec![0x82]),
        10 => Frame::new(5, END_HEADERS, stream, [2_u32.to_be_bytes().as_slice(), &[0x82]].concat()),
        _ => Frame::new(*dice.item(&[10, 11, 0x10, 0xfe]), dice.byte(), stream, vec![1; dice.below(20)]),
    }
}

/// What a server sent: how many streams were answered with headers or reset, and whether it said goodbye.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Streams with headers.
    pub answered: usize,
    /// Streams that were reset.
    pub reset: usize,
    /// Whether there was a GOAWAY.
    pub goodbye: bool,
}

impl Heard {
    /// Reads the frames of a server, as far as they are whole.
    pub fn read(mut bytes: &[u8]) -> Self {
        let mut heard = Self::default();
        while let Some((head, rest)) = bytes.split_at_checked(9) {
            let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            match head[3] {
                HEADERS => heard.answered += 1,
                RESET => heard.reset += 1,
                GOAWAY => heard.goodbye = true,
                _ => {}
            }
            bytes = rest.get(length..).unwrap_or_default();
        }
        heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_as_long_as_it_says_unless_it_lies() {
        let mut frame = Frame::new(PING, 0, 1, [7; 8]);
        assert_eq!(frame.bytes(), [&[0, 0, 8, 6, 0, 0, 0, 0, 1][..], &[7; 8]].concat());
        frame.claimed = Some(0x01_0203);
        assert_eq!(frame.bytes()[..3], [1, 2, 3]);
        let sent =
            [Frame::new(HEADERS, 0, 1, [1, 2]).bytes(), Frame::new(GOAWAY, 0, 0, [0; 8]).bytes(), vec![0; 4]]
                .concat();
        assert_eq!(Heard::read(&sent), Heard { answered: 1, reset: 0, goodbye: true });
    }
}
