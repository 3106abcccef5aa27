//! Tokens of browsers, which cannot set headers of WebSockets: one of the offered subprotocols is the token.

use http::HeaderMap;
use http::header::{HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use watchkeeper_go::base64::RAW_URL;

/// What the subprotocol begins with that is a token.
const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// A token that is not offered as kube-apiserver wants it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InvalidOffer;

/// Takes the token out of the subprotocols that a client offers, so that it is neither seen behind the gate nor said back. `None` if
/// there is none. As in kube-apiserver, a client that offers nothing else is turned away, and so is one whose token cannot be read.
pub(super) fn take(headers: &mut HeaderMap) -> Result<Option<Vec<u8>>, InvalidOffer> {
    let is_web_socket =
        headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !is_web_socket {
        return Ok(None);
    }
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let offered = values.flat_map(|value| value.split(',')).map(str::trim);
    let (tokens, others): (Vec<&str>, Vec<&str>) = offered.partition(|protocol| protocol.starts_with(PREFIX));
    let Some(token) = tokens.first().and_then(|token| token.strip_prefix(PREFIX)) else { return Ok(None) };
    let token = RAW_URL.decode(token);
    let is_readable =
        token.as_ref().is_ok_and(|token| !token.is_empty() && std::str::from_utf8(token).is_ok());
    let is_right = is_readable && tokens.len() == 1 && others.iter().any(|other| !other.is_empty());
    let rest = HeaderValue::from_str(&others.join(","));
    match rest {
        Ok(rest) if !others.is_empty() => drop(headers.insert(SEC_WEBSOCKET_PROTOCOL, rest)),
        _ => drop(headers.remove(SEC_WEBSOCKET_PROTOCOL)),
    }
    if is_right { Ok(token.ok()) } else { Err(InvalidOffer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offering(protocols: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_str(protocols).unwrap());
        headers
    }

    #[test]
    fn a_token_among_the_subprotocols_is_taken_out() {
        let token = format!("{PREFIX}{}", RAW_URL.encode("secret"));
        for (offered, rest) in [
            (format!("base64.binary.k8s.io, {token}"), "base64.binary.k8s.io"),
            (format!("{token},a , b"), "a,b"),
        ] {
            let mut headers = offering(&offered);
            assert_eq!(take(&mut headers), Ok(Some(b"secret".to_vec())));
            assert_eq!(headers[SEC_WEBSOCKET_PROTOCOL], rest);
        }
        for wrong in
            [token.clone(), format!("a,{token},{token}"), format!("a,{PREFIX}?"), format!("a,{PREFIX}")]
        {
            let mut headers = offering(&wrong);
            assert_eq!(take(&mut headers), Err(InvalidOffer), "{wrong}");
            let left = headers.get(SEC_WEBSOCKET_PROTOCOL).map(|left| left.to_str().unwrap());
            assert!(left.is_none_or(|left| !left.contains(PREFIX)), "{left:?}");
        }
        let mut headers = offering("a, b");
        assert_eq!(take(&mut headers), Ok(None));
        assert_eq!(headers[SEC_WEBSOCKET_PROTOCOL], "a, b");
    }
}
