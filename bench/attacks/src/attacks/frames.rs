//! HTTP/2 as bytes, for those who do not keep its rules.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};
use watchkeeper_bench_target::Access;

/// How every connection begins: the preface, and settings of none.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

pub(crate) const HEADERS: u8 = 0x1;
pub(crate) const RST_STREAM: u8 = 0x3;
pub(crate) const GOAWAY: u8 = 0x7;
pub(crate) const CONTINUATION: u8 = 0x9;

pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    // At most 16 KiB are ever sent.
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The headers of a GET, without compression.
pub(crate) fn get(access: &Access, path: &str) -> Vec<u8> {
    // Indexed: `:method: GET` and `:scheme: https`; then literals with indexed names.
    let mut block = vec![0x82, 0x87];
    block.push(0x04);
    text(&mut block, path);
    block.push(0x01);
    text(&mut block, &access.address.to_string());
    if let Some(authorization) = &access.authorization {
        block.extend([0x0f, 0x08]);
        text(&mut block, authorization);
    }
    block
}

/// A text with its length in front, in the variable form of HPACK.
fn text(block: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    if length < 0x7f {
        block.push(length as u8);
    } else {
        block.push(0x7f);
        length -= 0x7f;
        while length >= 0x80 {
            block.push((length % 0x80) as u8 | 0x80);
            length /= 0x80;
        }
        block.push(length as u8);
    }
    block.extend(text.as_bytes());
}

/// Reads the next frame: its kind and its payload.
pub(crate) async fn next(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).await?;
    Ok((head[3], payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_its_length_its_kind_its_flags_and_its_stream_in_front() {
        assert_eq!(frame(HEADERS, END_HEADERS, 3, b"ab"), [0, 0, 2, 1, 4, 0, 0, 0, 3, b'a', b'b']);
    }

    #[test]
    fn lengths_have_seven_bits_and_then_more() {
        let of = |count| {
            let mut block = Vec::new();
            text(&mut block, &"a".repeat(count));
            block.into_iter().take_while(|&byte| byte != b'a').collect::<Vec<_>>()
        };
        assert_eq!(of(5), [5]);
        assert_eq!(of(127), [0x7f, 0]);
        assert_eq!(of(127 + 300), [0x7f, 0xac, 2]);
    }
}
