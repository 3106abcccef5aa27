//! Verifies the signature of a delivery. Without I/O and without a clock.

use http::HeaderMap;
use ring::hmac;
use subtle::ConstantTimeEq as _;
use watchkeeper_go::base64::STANDARD;

/// How deliveries are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// As in the specification of Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`.
    Standard,
    /// As GitHub does: `x-hub-signature-256`, `x-github-delivery`. Without a time.
    GitHub,
}

/// What a signed delivery says about itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signed {
    /// The same for every attempt to deliver the same thing.
    pub(super) id: String,
}

/// Why a delivery is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("the header {0} is missing or not as it should be")]
    Header(&'static str),
    #[error("the time is too far from ours")]
    Time,
    #[error("no signature is that of a known secret")]
    Signature,
}

/// Verifies a delivery with any of several secrets, at a time in seconds since 1970.
pub(super) fn verify(
    scheme: Scheme,
    secrets: &[Vec<u8>],
    headers: &HeaderMap,
    body: &[u8],
    now: u64,
    tolerance: u64,
) -> Result<Signed, Refusal> {
    let header = |name: &'static str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty());
        value.ok_or(Refusal::Header(name))
    };
    match scheme {
        Scheme::Standard => {
            let id = header("webhook-id")?;
            let timestamp = header("webhook-timestamp")?;
            let time: u64 = timestamp.parse().map_err(|_| Refusal::Header("webhook-timestamp"))?;
            let signatures: Vec<Vec<u8>> = header("webhook-signature")?
                .split(' ')
                .filter_map(|signature| STANDARD.decode(signature.strip_prefix("v1,")?).ok())
                .collect();
            is_signed(secrets, &[id.as_bytes(), b".", timestamp.as_bytes(), b".", body], &signatures)?;
            // The time is only worth something once it is known to be the sender's.
            if now.abs_diff(time) > tolerance {
                return Err(Refusal::Time);
            }
            Ok(Signed { id: id.to_owned() })
        }
        Scheme::GitHub => {
            let text = header("x-hub-signature-256")?;
            let signature =
                text.strip_prefix("sha256=").and_then(unhex).ok_or(Refusal::Header("x-hub-signature-256"))?;
            is_signed(secrets, &[body], &[signature])?;
            // The header with the id is not signed: whoever sends an old delivery again under the id of another one must not have that one
            // taken for a double.
            Ok(Signed { id: format!("{} {}", header("x-github-delivery")?, text.to_ascii_lowercase()) })
        }
    }
}

/// Compares all signatures with all secrets, and takes the same time whichever of them is right.
fn is_signed(secrets: &[Vec<u8>], parts: &[&[u8]], signatures: &[Vec<u8>]) -> Result<(), Refusal> {
    let mut found = subtle::Choice::from(0);
    for secret in secrets {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret));
        parts.iter().for_each(|part| context.update(part));
        let expected = context.sign();
        for signature in signatures {
            found |= expected.as_ref().ct_eq(signature);
        }
    }
    if bool::from(found) { Ok(()) } else { Err(Refusal::Signature) }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    /// The example of the specification.
    const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const TIME: u64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn standard(
        secrets: &[&str],
        id: &str,
        signature: &str,
        body: &[u8],
        now: u64,
    ) -> Result<Signed, Refusal> {
        let secrets: Vec<Vec<u8>> = secrets.iter().map(|secret| STANDARD.decode(secret).unwrap()).collect();
        let time = TIME.to_string();
        let headers =
            headers(&[("webhook-id", id), ("webhook-timestamp", &time), ("webhook-signature", signature)]);
        verify(Scheme::Standard, &secrets, &headers, body, now, 300)
    }

    #[test]
    fn the_example_of_the_specification_is_believed_and_nothing_that_differs_from_it() {
        assert_eq!(standard(&[SECRET], ID, SIGNATURE, BODY, TIME), Ok(Signed { id: ID.into() }));
        assert_eq!(standard(&[SECRET], "msg_other", SIGNATURE, BODY, TIME), Err(Refusal::Signature));
        assert_eq!(
            standard(&[SECRET], ID, SIGNATURE, br#"{"test":2432232314}"#, TIME),
            Err(Refusal::Signature)
        );
        assert_eq!(standard(&["c2VjcmV0"], ID, SIGNATURE, BODY, TIME), Err(Refusal::Signature));
        assert_eq!(standard(&[], ID, SIGNATURE, BODY, TIME), Err(Refusal::Signature));
        assert_eq!(
            standard(&[SECRET], ID, &SIGNATURE.replace("v1", "v1a"), BODY, TIME),
            Err(Refusal::Signature)
        );
        assert_eq!(standard(&[SECRET], "", SIGNATURE, BODY, TIME), Err(Refusal::Header("webhook-id")));
    }

    #[test]
    fn secrets_and_signatures_may_be_several_while_they_are_rotated() {
        assert!(standard(&["c2VjcmV0", SECRET], ID, SIGNATURE, BODY, TIME).is_ok());
        let several = format!("v1,AAAA {SIGNATURE} v1a,BBBB");
        assert!(standard(&[SECRET], ID, &several, BODY, TIME).is_ok());
    }

    #[test]
    fn what_is_too_old_or_too_new_is_not_believed() {
        for (now, believed) in
            [(TIME + 300, true), (TIME + 301, false), (TIME - 300, true), (TIME - 301, false)]
        {
            assert_eq!(standard(&[SECRET], ID, SIGNATURE, BODY, now).is_ok(), believed);
        }
    }

    #[test]
    fn the_example_of_github_is_believed() {
        let secret = vec![b"It's a Secret to Everybody".to_vec()];
        let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let check = |signature: &str, body: &[u8]| {
            let headers = headers(&[("x-hub-signature-256", signature), ("x-github-delivery", "7")]);
            verify(Scheme::GitHub, &secret, &headers, body, 0, 300)
        };
        assert_eq!(check(signature, b"Hello, World!"), Ok(Signed { id: format!("7 {signature}") }));
        assert_eq!(check(signature, b"Hello, World"), Err(Refusal::Signature));
        for wrong in ["sha1=00", "sha256=0", "sha256=zz", ""] {
            assert_eq!(
                check(wrong, b"Hello, World!"),
                Err(Refusal::Header("x-hub-signature-256")),
                "{wrong}"
            );
        }
    }
}
