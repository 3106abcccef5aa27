//! Connection URLs of database servers.

use std::fmt;
use std::path::PathBuf;

/// A parsed connection URL.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Address {
    /// A name, an address, or the path to a socket, which begins with a slash.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The port that need not be shown.
    usual_port: u16,
    pub(crate) user: String,
    pub(crate) password: Option<Secret>,
    pub(crate) database: String,
    pub(crate) tls: TlsMode,
    pub(crate) root_certificate: Option<PathBuf>,
    pub(crate) application: Option<String>,
    /// `table=` is ours, not that of the database's own clients.
    pub(crate) table: Option<String>,
}

/// What is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// How URLs of one kind of database are read.
pub(crate) struct Dialect {
    /// What may stand before `://`.
    pub(crate) schemes: &'static [&'static str],
    /// What a URL looks like.
    pub(crate) example: &'static str,
    pub(crate) port: u16,
    /// Takes over a parameter, or says what is wrong with it. An error never quotes what may be secret.
    pub(crate) set: fn(&mut Address, &str, String) -> Result<(), String>,
}

/// How much is asked of the connection: what `sslmode` is in libpq.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TlsMode {
    Disable,
    /// TLS if the server has it, whoever the server is.
    #[default]
    Prefer,
    /// TLS, whoever the server is.
    Require,
    /// TLS with a certificate that somebody trusted has signed.
    VerifyCa,
    /// And that is for this host.
    VerifyFull,
}

impl Address {
    /// Reads `scheme://user:password@host:port/database?parameter=value`. An error never quotes what may be secret.
    pub(crate) fn parse(url: &str, dialect: &Dialect) -> Result<Self, String> {
        let scheme = url.split_once("://").filter(|(scheme, _)| dialect.schemes.contains(scheme));
        let (_, rest) = scheme.ok_or_else(|| format!("expected {}", dialect.example))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let (host, port) = host_and_port(host)?;
        let port = port.unwrap_or(dialect.port);
        let mut address = Self {
            host: decode(host, "the host")?,
            port,
            usual_port: dialect.port,
            user: decode(user, "the user")?,
            password: Some(decode(password, "the password")?).filter(|word| !word.is_empty()).map(Secret),
            database: decode(database, "the database")?,
            ..Self::default()
        };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let name = decode(name, "a parameter")?;
            let value = decode(value, &format!("the parameter {name}"))?;
            (dialect.set)(&mut address, &name, value)?;
        }
        if address.user.is_empty() {
            return Err(format!("it names no user: expected {}", dialect.example));
        }
        if address.host.is_empty() {
            address.host = "localhost".into();
        }
        Ok(address)
    }

    /// For messages: where, but not who.
    pub(crate) fn shown(&self) -> String {
        match self.host.starts_with('/') || self.port == self.usual_port {
            true => format!("{}/{}", self.host, self.database),
            false => format!("{}:{}/{}", self.host, self.port, self.database),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address").field("at", &self.shown()).field("tls", &self.tls).finish_non_exhaustive()
    }
}

fn host_and_port(text: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.contains(',') {
        return Err("it names several hosts: expected one".into());
    }
    match port {
        None | Some("") => Ok((host, None)),
        Some(port) => Ok((host, Some(port.parse().map_err(|_| "the port is no number".to_owned())?))),
    }
}

fn decode(text: &str, what: &str) -> Result<String, String> {
    let bad = || format!("{what} has a percent sign that is not followed by two digits");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16)).ok_or_else(bad);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| bad())?);
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(format!("{what} is no text")),
    }
}
