//! Ids and names that are made up.

/// The characters of made-up names: no vowels, so that no words come out, and nothing that looks like something else.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A random (version 4) UUID.
pub(crate) fn uid() -> String {
    let random = (fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62)) | (4 << 76) | (2 << 62);
    // Every answer has one: digit by digit is a fraction of what formatting takes.
    let mut uid = String::with_capacity(36);
    for digit in 0..32_u32 {
        if matches!(digit, 8 | 12 | 16 | 20) {
            uid.push('-');
        }
        uid.push(char::from(b"0123456789abcdef"[(random >> (4 * (31 - digit)) & 0xf) as usize]));
    }
    uid
}

/// A part of a whole: from 0 up to and without 1.
pub(crate) fn share() -> f64 {
    fastrand::f64()
}

/// The end of a made-up name.
pub(crate) fn suffix() -> String {
    (0..5).map(|_| char::from(LETTERS[fastrand::usize(..LETTERS.len())])).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn ids_are_random_uuids() {
        let uid = super::uid();
        let parts: Vec<usize> = uid.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(&uid[14..15], "4");
        assert!("89ab".contains(&uid[19..20]));
        assert_ne!(uid, super::uid());
    }
}
