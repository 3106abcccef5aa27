//! Certificates and requests for them, as far as an API server looks into them.

use crate::base64;

/// The object identifier of the name of an organization: 2.5.4.10.
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// The bytes of a request for a certificate. The error is what is wrong with it.
pub(crate) fn certificate_request(text: &[u8]) -> Result<Vec<u8>, String> {
    let block = blocks(text).into_iter().next();
    let Some(block) = block.filter(|block| block.label == "CERTIFICATE REQUEST") else {
        return Err("PEM block type must be CERTIFICATE REQUEST".into());
    };
    match element(&block.bytes) {
        Some((0x30, content, [])) if subject(content).is_some() => Ok(block.bytes),
        Some((0x30, _, rest)) if !rest.is_empty() => Err("asn1: syntax error: trailing data".into()),
        _ => Err("asn1: structure error: malformed certificate request".into()),
    }
}

/// The organizations that a request for a certificate names, which are groups.
pub(crate) fn organizations(request: &[u8]) -> Vec<String> {
    let content = element(request).map_or(&[][..], |(_, content, _)| content);
    let mut found = Vec::new();
    let mut sets = subject(content).unwrap_or_default();
    while let Some((_, set, rest)) = element(sets) {
        sets = rest;
        let mut attributes = set;
        while let Some((_, attribute, rest)) = element(attributes) {
            attributes = rest;
            let Some((0x06, ORGANIZATION, value)) = element(attribute) else { continue };
            if let Some((_, value, _)) = element(value) {
                found.push(String::from_utf8_lossy(value).into_owned());
            }
        }
    }
    found
}

/// What is wrong with a list of certificates.
pub(crate) fn certificates_problem(text: &[u8]) -> Option<String> {
    let blocks = blocks(text);
    if blocks.is_empty() {
        return Some("must contain at least one CERTIFICATE PEM block".into());
    }
    blocks.iter().find_map(|block| match block {
        block if block.label != "CERTIFICATE" => {
            Some(format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.label))
        }
        block if block.has_headers => Some("no PEM block headers are permitted".into()),
        block => match element(&block.bytes) {
            Some((0x30, ..)) => None,
            _ => Some("x509: malformed certificate".into()),
        },
    })
}

/// The subject of a request: after the version, inside of what is signed.
fn subject(content: &[u8]) -> Option<&[u8]> {
    let (0x30, signed, _) = element(content)? else { return None };
    let (0x02, _, rest) = element(signed)? else { return None };
    let (0x30, subject, _) = element(rest)? else { return None };
    Some(subject)
}

/// The tag and the content of the first value, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        long => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            if digits.is_empty() || digits.len() > 4 {
                return None;
            }
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// A block between two lines of dashes.
struct Block {
    label: String,
    has_headers: bool,
    bytes: Vec<u8>,
}

fn blocks(text: &[u8]) -> Vec<Block> {
    let text = String::from_utf8_lossy(text);
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let label = line.trim_end().strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----"));
        let Some(label) = label else { continue };
        let end = format!("-----END {label}-----");
        let mut inside = String::new();
        let mut has_headers = false;
        let mut is_closed = false;
        for line in lines.by_ref() {
            if line.trim_end() == end {
                is_closed = true;
                break;
            }
            if line.contains(':') {
                has_headers = true;
            } else {
                inside.push_str(line.trim());
            }
        }
        if let Ok(bytes) = base64::decode(&inside)
            && is_closed
        {
            blocks.push(Block { label: label.to_owned(), has_headers, bytes });
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request with the subject `O=team, CN=jane`, shortened to what is read of it.
    fn request() -> Vec<u8> {
        let text = |bytes: &[u8]| [&[0x0c, bytes.len() as u8], bytes].concat();
        let list = |tag: u8, parts: &[&[u8]]| {
            let content = parts.concat();
            [&[tag, content.len() as u8], &content[..]].concat()
        };
        let attribute =
            |id: u8, value: &[u8]| list(0x31, &[&list(0x30, &[&[0x06, 3, 0x55, 0x04, id], &text(value)])]);
        let subject = list(0x30, &[&attribute(10, b"team"), &attribute(3, b"jane")]);
        list(0x30, &[&list(0x30, &[&[0x02, 1, 0], &subject])])
    }

    fn written(label: &str, bytes: &[u8]) -> Vec<u8> {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", base64::encode(bytes)).into_bytes()
    }

    #[test]
    fn a_request_names_organizations() {
        let read = certificate_request(&written("CERTIFICATE REQUEST", &request()));
        assert_eq!(read.as_deref().map(organizations), Ok(vec!["team".to_owned()]));
    }

    #[test]
    fn what_is_no_request_is_refused_and_cut_bytes_do_no_harm() {
        let wrong = certificate_request(&written("CERTIFICATE", &request()));
        assert_eq!(wrong, Err("PEM block type must be CERTIFICATE REQUEST".into()));
        let longer = [request(), vec![0]].concat();
        let wrong = certificate_request(&written("CERTIFICATE REQUEST", &longer));
        assert_eq!(wrong, Err("asn1: syntax error: trailing data".into()));
        for end in 0..request().len() {
            assert!(
                certificate_request(&written("CERTIFICATE REQUEST", &request()[..end])).is_err(),
                "{end}"
            );
            organizations(&request()[..end]);
        }
    }

    #[test]
    fn a_list_of_certificates_is_nothing_else() {
        assert_eq!(certificates_problem(&written("CERTIFICATE", &request())), None);
        let both = [written("CERTIFICATE", &request()), written("PRIVATE KEY", &request())].concat();
        let problem = certificates_problem(&both);
        assert_eq!(
            problem.as_deref(),
            Some(r#"only CERTIFICATE PEM blocks are allowed, found "PRIVATE KEY""#)
        );
        let problem = certificates_problem(b"x");
        assert_eq!(problem.as_deref(), Some("must contain at least one CERTIFICATE PEM block"));
    }
}
