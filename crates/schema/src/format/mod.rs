//! The values of `format` that kube-apiserver enforces; all others mean nothing.

mod address;
mod number;
mod time;

use crate::schema::Type;

/// What a format demands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Format {
    /// Of a text: that it passes.
    Text(fn(&str) -> bool),
    /// Of a number: that it fits.
    Int32,
    /// Always true of an integer.
    Int64,
    /// Of a number: that it is not beyond all 32-bit floats.
    Float,
    /// Always true of a number.
    Double,
}

impl Format {
    /// What `name` means for values of a type; `None` is a type that is not said, or integer-or-string.
    pub(crate) fn for_type(name: &str, kind: Option<&Type>) -> Option<Self> {
        match (kind, name) {
            (Some(Type::Integer), "int32") => Some(Self::Int32),
            (Some(Type::Integer), "int64") => Some(Self::Int64),
            (Some(Type::Number), "float") => Some(Self::Float),
            (Some(Type::Number), "double") => Some(Self::Double),
            (None | Some(Type::String), name) => text_format(name).map(Self::Text),
            _ => None,
        }
    }
}

fn text_format(name: &str) -> Option<fn(&str) -> bool> {
    Some(match name.replace('-', "").as_str() {
        "bsonobjectid" => is_bson_object_id,
        "uri" => address::is_request_uri,
        "email" => address::is_email,
        "hostname" => address::is_hostname,
        "ipv4" => address::is_ipv4,
        "ipv6" => address::is_ipv6,
        "cidr" => address::is_cidr,
        "mac" => address::is_mac,
        "uuid" => |text| is_uuid(text, None),
        "uuid3" => |text| is_uuid(text, Some(b'3')),
        "uuid4" => |text| is_uuid(text, Some(b'4')),
        "uuid5" => |text| is_uuid(text, Some(b'5')),
        "isbn" => |text| number::is_isbn10(text) || number::is_isbn13(text),
        "isbn10" => number::is_isbn10,
        "isbn13" => number::is_isbn13,
        "creditcard" => number::is_credit_card,
        "ssn" => number::is_ssn,
        "hexcolor" => is_hex_color,
        "rgbcolor" => number::is_rgb_color,
        "byte" => is_base64,
        "password" => |_| true,
        "date" => time::is_date,
        "datetime" => time::is_date_time,
        "duration" => time::is_duration,
        "k8sshortname" => is_short_name,
        "k8slongname" => is_long_name,
        _ => return None,
    })
}

fn is_bson_object_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Dashes are optional, one by one.
fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut rest = text.as_bytes();
    let mut digits = Vec::with_capacity(32);
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else {
            return false;
        };
        digits.extend_from_slice(group);
        rest = after;
    }
    rest.is_empty()
        && digits.iter().all(u8::is_ascii_hexdigit)
        && version.is_none_or(|version| digits[12] == version)
        && (!matches!(version, Some(b'4' | b'5'))
            || matches!(digits[16], b'8' | b'9' | b'a' | b'b' | b'A' | b'B'))
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Padded, standard alphabet, not empty.
fn is_base64(text: &str) -> bool {
    let bytes = text.as_bytes();
    let body = bytes.strip_suffix(b"==").or_else(|| bytes.strip_suffix(b"=")).unwrap_or(bytes);
    !bytes.is_empty()
        && bytes.len().is_multiple_of(4)
        && body.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn is_short_name(text: &str) -> bool {
    text.len() <= 63 && is_name_segment(text)
}

fn is_long_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_name_segment)
}

fn is_name_segment(text: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(plain)
        && bytes.last().is_some_and(plain)
        && bytes.iter().all(|byte| plain(byte) || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(name: &str, text: &str) -> bool {
        let Some(Format::Text(check)) = Format::for_type(name, None) else { panic!("{name}") };
        check(text)
    }

    #[test]
    fn formats_accept_and_refuse_what_kube_apiserver_does() {
        for (name, good, bad) in [
            ("bsonobjectid", &["507f1f77bcf86cd799439011"][..], &["507f1f77bcf86cd79943901", "z"][..]),
            (
                "uuid",
                &["123e4567-e89b-12d3-a456-426614174000", "123E4567e89b12d3a456426614174000"],
                &["123e4567-e89b-12d3-a456-42661417400", "", "123e4567--e89b-12d3-a456-426614174000"],
            ),
            ("uuid3", &["bcd02e22-68f0-3046-a512-327cca9def8f"], &["bcd02e22-68f0-4046-a512-327cca9def8f"]),
            ("uuid4", &["025b0d74-00a2-4048-bf57-227c5111bb34"], &["025b0d74-00a2-4048-cf57-227c5111bb34"]),
            ("uuid5", &["886313e1-3b8a-5372-9b90-0c9aee199e5d"], &["886313e1-3b8a-4372-9b90-0c9aee199e5d"]),
            ("hexcolor", &["#fff", "FFFFFF"], &["#ffff", "#ggg", ""]),
            ("byte", &["aGVsbG8=", "aGVs", "aA=="], &["", "aGVsbG8", "a===", "ab-_"]),
            ("password", &["", "x"], &[]),
            ("k8s-short-name", &["a", "a-b", "0"], &["", "-a", "a-", "A", "a.b"]),
            ("k8s-long-name", &["a.b", "a"], &["", "a..b", "a.B", ".a"]),
            ("date-time", &["2020-01-01T00:00:00Z"], &["2020-01-01"]),
        ] {
            for text in good {
                assert!(passes(name, text), "{name} {text:?}");
            }
            for text in bad {
                assert!(!passes(name, text), "{name} {text:?}");
            }
        }
    }

    #[test]
    fn a_format_that_does_not_fit_the_type_means_nothing() {
        assert!(Format::for_type("int32", Some(&Type::String)).is_none());
        assert!(Format::for_type("date", Some(&Type::Integer)).is_none());
        assert!(Format::for_type("float", Some(&Type::Integer)).is_none());
        assert!(Format::for_type("quantity", Some(&Type::String)).is_none());
        assert!(Format::for_type("date", Some(&Type::Object)).is_none());
        assert!(matches!(Format::for_type("int32", Some(&Type::Integer)), Some(Format::Int32)));
    }
}
