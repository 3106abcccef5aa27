//! Bytes as text, as Go's standard encoding writes and reads them.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Padded, without line breaks.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..4 {
            let index = (word >> (18 - 6 * position)) & 0x3f;
            text.push(if position > chunk.len() { '=' } else { char::from(ALPHABET[index as usize]) });
        }
    }
    text
}

/// The bytes, or Go's words for the first byte that is out of place. Line breaks are passed over.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut rest = text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\n' | b'\r'));
    let corrupt = |at: usize| format!("illegal base64 data at input byte {at}");
    let (mut word, mut digits) = (0_u32, 0_u32);
    while let Some((at, byte)) = rest.next() {
        if let Some(digit) = ALPHABET.iter().position(|known| *known == byte) {
            word = word << 6 | digit as u32;
            digits += 1;
            if digits == 4 {
                bytes.extend_from_slice(&word.to_be_bytes()[1..]);
                (word, digits) = (0, 0);
            }
            continue;
        }
        match (byte, digits) {
            (b'=', 2) => match rest.next() {
                Some((_, b'=')) => bytes.push((word >> 4) as u8),
                Some((second, _)) => return Err(corrupt(second - 1)),
                None => return Err(corrupt(text.len())),
            },
            (b'=', 3) => bytes.extend_from_slice(&(word >> 2).to_be_bytes()[2..]),
            _ => return Err(corrupt(at)),
        }
        return rest.next().map_or(Ok(bytes), |(after, _)| Err(corrupt(after)));
    }
    if digits == 0 { Ok(bytes) } else { Err(corrupt(text.len() - digits as usize)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_again() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(decode("Zm9v\nYg==\n").unwrap(), b"foob");
    }

    #[test]
    fn the_byte_out_of_place_is_named() {
        for (text, at) in
            [("a-b=", 1), ("Zg", 0), ("Zm9vY", 4), ("Zg=", 3), ("Zg==x", 4), ("=", 0), ("Zg=x", 2)]
        {
            assert_eq!(
                decode(text).unwrap_err(),
                format!("illegal base64 data at input byte {at}"),
                "{text}"
            );
        }
    }
}
