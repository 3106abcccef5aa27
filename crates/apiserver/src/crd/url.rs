use watchkeeper_go::quote as quoted;

/// A URL as Go's `net/url` reads it, as far as a webhook's address is concerned.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) scheme: String,
    /// Name and password, if there is an `@`.
    pub(super) user: Option<String>,
    /// With the port.
    pub(super) host: String,
    pub(super) query: String,
    pub(super) fragment: String,
}

impl Url {
    /// Reads a URL, or says what Go says against it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = Self::read(rest, false).map_err(|problem| wrap(rest, &problem))?;
        url.fragment = unescape(fragment).map_err(|problem| wrap(text, &problem))?;
        Ok(url)
    }

    /// Reads what a request may be for: an absolute URL or an absolute path, without a fragment.
    pub(super) fn parse_request(text: &str) -> Result<Self, String> {
        Self::read(text, true).map_err(|problem| wrap(text, &problem))
    }

    fn read(text: &str, via_request: bool) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".into());
        }
        if text.is_empty() && via_request {
            return Err("empty url".into());
        }
        if text == "*" {
            return Ok(Self::default());
        }
        let (scheme, rest) = split_scheme(text)?;
        let mut url = Self { scheme: scheme.to_lowercase(), ..Self::default() };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        url.query = query.into();
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                return Ok(url);
            }
            if via_request {
                return Err("invalid URI for request".into());
            }
            let segment = rest.split('/').next().unwrap_or_default();
            if segment.contains(':') {
                return Err("first path segment in URL cannot contain colon".into());
            }
        }
        let has_authority = !url.scheme.is_empty() || !via_request && !rest.starts_with("///");
        let path = match rest.strip_prefix("//").filter(|_| has_authority) {
            Some(rest) => {
                let end = rest.find('/').unwrap_or(rest.len());
                let (authority, path) = rest.split_at(end);
                url.read_authority(authority)?;
                path
            }
            None => rest,
        };
        unescape(path)?;
        Ok(url)
    }

    fn read_authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        self.host = read_host(host)?;
        if let Some(user) = user {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
            if !user.bytes().all(allowed) {
                return Err("net/url: invalid userinfo".into());
            }
            unescape(user)?;
            self.user = Some(user.into());
        }
        Ok(())
    }
}

fn wrap(text: &str, problem: &str) -> String {
    format!("parse {}: {problem}", quoted(text))
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".into()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn read_host(host: &str) -> Result<String, String> {
    if host.starts_with('[') {
        let Some((_, port)) = host.rsplit_once(']') else {
            return Err("missing ']' in host".into());
        };
        check_port(port)?;
    } else if let Some(at) = host.rfind(':') {
        check_port(&host[at..])?;
    }
    let allowed =
        |byte: u8| byte >= 0x80 || byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&byte);
    if let Some(at) = host.bytes().position(|byte| !allowed(byte)) {
        let end = (at + 1..=host.len()).find(|end| host.is_char_boundary(*end)).unwrap_or(host.len());
        let shown = host.get(at..end).unwrap_or_default();
        return Err(format!("invalid character {} in host name", quoted(shown)));
    }
    // Only bytes beyond ASCII may be escaped in a host.
    let mut rest = host;
    while let Some(at) = rest.find('%') {
        let escape: String = rest[at..].chars().take(3).collect();
        let byte = escape.get(1..).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if escape.len() < 3 || byte.is_none_or(|byte| byte < 0x80) && escape != "%25" {
            return Err(format!("invalid URL escape {}", quoted(&escape)));
        }
        rest = &rest[at + 3..];
    }
    unescape(host)
}

fn check_port(port: &str) -> Result<(), String> {
    let digits = port.strip_prefix(':').unwrap_or(port);
    if port.is_empty() || port.starts_with(':') && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(());
    }
    Err(format!("invalid port {} after host", quoted(port)))
}

fn unescape(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        if *byte != b'%' {
            bytes.push(*byte);
            rest = after;
            continue;
        }
        let hex = after.get(..2).filter(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        let Some(hex) = hex.and_then(|hex| std::str::from_utf8(hex).ok()) else {
            let shown = String::from_utf8_lossy(&rest[..rest.len().min(3)]);
            return Err(format!("invalid URL escape {}", quoted(&shown)));
        };
        bytes.push(u8::from_str_radix(hex, 16).unwrap_or_default());
        rest = &after[2..];
    }
    Ok(String::from_utf8_lossy(&bytes).into())
}
