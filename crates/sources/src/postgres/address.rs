//! Where a server is and how to get in: connection URLs as libpq reads them.

use std::fmt;
use std::path::PathBuf;

/// A parsed connection URL.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Address {
    /// A name, an address, or the directory of a socket, which begins with a slash.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    pub(super) database: String,
    pub(super) tls: TlsMode,
    pub(super) root_certificate: Option<PathBuf>,
    pub(super) application: Option<String>,
    /// `table=` is ours, not libpq's.
    pub(super) table: Option<String>,
}

/// What is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(pub(super) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// `sslmode`: how much is asked of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TlsMode {
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
    /// Reads `postgres://user:password@host:port/database?sslmode=...`. An error never quotes what may be secret.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let rest = url
            .strip_prefix("postgres://")
            .or_else(|| url.strip_prefix("postgresql://"))
            .ok_or("expected postgres://user@host/database")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let (host, port) = host_and_port(host)?;
        let mut address = Self {
            host: decode(host, "the host")?,
            port,
            user: decode(user, "the user")?,
            password: Some(decode(password, "the password")?).filter(|word| !word.is_empty()).map(Secret),
            database: decode(database, "the database")?,
            ..Self::default()
        };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let name = decode(name, "a parameter")?;
            let value = decode(value, &format!("the parameter {name}"))?;
            address.set(&name, value)?;
        }
        if address.user.is_empty() {
            return Err("it names no user: expected postgres://user@host/database".into());
        }
        if address.host.is_empty() {
            address.host = "localhost".into();
        }
        if address.database.is_empty() {
            address.database = address.user.clone();
        }
        Ok(address)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "host" => self.host = value,
            "port" => self.port = value.parse().map_err(|_| "the port is no number".to_owned())?,
            "user" => self.user = value,
            "password" => self.password = Some(Secret(value)),
            "dbname" => self.database = value,
            "application_name" => self.application = Some(value),
            "sslrootcert" if value == "system" => self.root_certificate = None,
            "sslrootcert" => self.root_certificate = Some(value.into()),
            "table" => self.table = Some(value),
            "sslmode" => {
                self.tls = match &*value {
                    "disable" => TlsMode::Disable,
                    "allow" | "prefer" => TlsMode::Prefer,
                    "require" => TlsMode::Require,
                    "verify-ca" => TlsMode::VerifyCa,
                    "verify-full" => TlsMode::VerifyFull,
                    _ => {
                        return Err(
                            "sslmode is none of disable, prefer, require, verify-ca, verify-full".into()
                        );
                    }
                }
            }
            // What changes how rows are written is ours to decide; what is about waiting is, too.
            "connect_timeout" | "keepalives" | "target_session_attrs" | "channel_binding" | "gssencmode" => {}
            _ => return Err(format!("the parameter {name} is not known")),
        }
        Ok(())
    }

    /// For messages: where, but not who.
    pub(super) fn shown(&self) -> String {
        match self.host.starts_with('/') || self.port == 5432 {
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

fn host_and_port(text: &str) -> Result<(&str, u16), String> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.contains(',') {
        return Err("it names several hosts: expected one".into());
    }
    match port {
        None | Some("") => Ok((host, 5432)),
        Some(port) => Ok((host, port.parse().map_err(|_| "the port is no number".to_owned())?)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_as_libpq_does() {
        let address =
            Address::parse("postgres://me:p%40ss@db.example.com:6432/shop?sslmode=verify-full").unwrap();
        assert_eq!(
            (&*address.host, address.port, &*address.user, &*address.database),
            ("db.example.com", 6432, "me", "shop")
        );
        assert_eq!((address.password, address.tls), (Some(Secret("p@ss".into())), TlsMode::VerifyFull));
        let address = Address::parse("postgresql://me@[::1]/").unwrap();
        assert_eq!((&*address.host, address.port, &*address.database), ("::1", 5432, "me"));
        let address =
            Address::parse("postgres://me@/shop?host=%2Frun%2Fpostgresql&port=5433&table=a.b").unwrap();
        assert_eq!((&*address.host, address.port), ("/run/postgresql", 5433));
        assert_eq!(address.table.as_deref(), Some("a.b"));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (url, expected) in [
            ("http://x", "expected postgres://user@host/database"),
            ("postgres://host/db", "it names no user: expected postgres://user@host/database"),
            ("postgres://a:word@h:x/db", "the port is no number"),
            ("postgres://a:wo%rd@h/db", "the password has a percent sign that is not followed by two digits"),
            ("postgres://a:word@h,i/db", "it names several hosts: expected one"),
            (
                "postgres://a:word@h/db?sslmode=word",
                "sslmode is none of disable, prefer, require, verify-ca, verify-full",
            ),
            ("postgres://a:word@h/db?wrod=word", "the parameter wrod is not known"),
        ] {
            let error = Address::parse(url).unwrap_err();
            assert_eq!(error, expected);
        }
        let debugged = format!("{:?}", Address::parse("postgres://a:word@h/db").unwrap());
        assert!(!debugged.contains("word") && !debugged.contains("a@"), "{debugged}");
        assert_eq!(format!("{:?}", Secret("word".into())), "(secret)");
    }
}
