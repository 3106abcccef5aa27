//! Certificates and requests for them, as far as an API server looks into them.

use watchkeeper_x509::CertificateRequest;
use watchkeeper_x509::der::{Reader, SEQUENCE};

use watchkeeper_go::base64;

/// The bytes of a request for a certificate. The error is what is wrong with it.
pub(crate) fn certificate_request(text: &[u8]) -> Result<Vec<u8>, String> {
    let block = blocks(text).into_iter().next();
    let Some(block) = block.filter(|block| block.label == "CERTIFICATE REQUEST") else {
        return Err("PEM block type must be CERTIFICATE REQUEST".into());
    };
    let mut reader = Reader::new(&block.bytes);
    match reader.expect(SEQUENCE) {
        Ok(_) if !reader.is_empty() => Err("asn1: syntax error: trailing data".into()),
        _ if CertificateRequest::read(&block.bytes).is_ok() => Ok(block.bytes),
        _ => Err("asn1: structure error: malformed certificate request".into()),
    }
}

/// The organizations that a request for a certificate names, which are groups.
pub(crate) fn organizations(request: &[u8]) -> Vec<String> {
    let request = CertificateRequest::read(request);
    request.map(|request| request.subject.organizations().map(str::to_owned).collect()).unwrap_or_default()
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
        block => match Reader::new(&block.bytes).expect(SEQUENCE) {
            Ok(_) => None,
            Err(_) => Some("x509: malformed certificate".into()),
        },
    })
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
    use watchkeeper_x509::{PublicKeyInfo, der, name, oid};

    use super::*;

    /// A request with the subject `O=team, CN=jane`, and without a signature.
    fn request() -> Vec<u8> {
        let key = PublicKeyInfo::write_ec(oid::P256, &[4; 65]);
        let subject = name([(oid::ORGANIZATION, "team"), (oid::COMMON_NAME, "jane")]);
        let signed =
            der::sequence(&[&der::unsigned(&[]), &subject, &key, &der::tagged(der::explicit(0), &[])]);
        der::sequence(&[&signed, &der::sequence(&[]), &der::bits(0, &[])])
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
