use memchr::{memchr, memchr_iter};

/// Bytes of text for each token that is reserved. English has about four, other scripts two to three: three errs on the safe side for most.
const BYTES_PER_TOKEN: u64 = 3;
/// Tokens that are always reserved, for what the vendor puts around a prompt.
const OVERHEAD: u64 = 16;
/// A text of at least so many bytes without a space is an image or the like.
const MEDIA_BYTES: usize = 4_096;
/// Tokens that are reserved for an image.
const MEDIA_TOKENS: u64 = 2_000;

/// How many tokens the prompt of a request will be, rather too many than too few. All of the JSON counts; images count the same, whatever their size.
pub fn tokens_of(body: &[u8]) -> u64 {
    let (mut text, mut media, mut start) = (body.len() as u64, 0_u64, 0);
    if body.len() >= MEDIA_BYTES {
        for quote in memchr_iter(b'"', body) {
            let piece = &body[start..quote];
            if piece.len() >= MEDIA_BYTES && memchr(b' ', piece).is_none() && memchr(b'\\', piece).is_none() {
                text = text.saturating_sub(piece.len() as u64);
                media += 1;
            }
            start = quote + 1;
        }
    }
    text.div_ceil(BYTES_PER_TOKEN) + media * MEDIA_TOKENS + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_count_the_same_whatever_their_size() {
        let with = |bytes: usize| {
            tokens_of(format!("{{\"url\":\"data:image/png;base64,{}\"}}", "A".repeat(bytes)).as_bytes())
        };
        assert_eq!(with(10_000), with(1_000_000));
        assert!(tokens_of("word ".repeat(10_000).as_bytes()) > 16_000);
    }
}
