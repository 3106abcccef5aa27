/// The text of a file, without a mark of its byte order. Editors of Windows write UTF-16.
pub(super) fn decode(bytes: Vec<u8>) -> Result<String, String> {
    let wide = |from: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].as_chunks().0.iter().map(|pair| from(*pair)).collect();
        String::from_utf16(&units).map_err(|_| "it is not in UTF-16".to_owned())
    };
    match bytes.as_slice() {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest.to_vec()),
        _ => utf8(bytes),
    }
}

fn utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| "it is not in UTF-8".to_owned())
}
