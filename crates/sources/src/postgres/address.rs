//! Connection URLs as libpq reads them.

use crate::database::{Address, Dialect, Secret, TlsMode};

const DIALECT: Dialect = Dialect {
    schemes: &["postgres", "postgresql"],
    example: "postgres://user@host/database",
    port: 5432,
    set,
};

/// Reads `postgres://user:password@host:port/database?sslmode=...`. The database is called as the user is, unless something else is said.
pub(super) fn parse(url: &str) -> Result<Address, String> {
    let mut address = Address::parse(url, &DIALECT)?;
    if address.database.is_empty() {
        address.database = address.user.clone();
    }
    Ok(address)
}

fn set(address: &mut Address, name: &str, value: String) -> Result<(), String> {
    match name {
        "host" => address.host = value,
        "port" => address.port = value.parse().map_err(|_| "the port is no number".to_owned())?,
        "user" => address.user = value,
        "password" => address.password = Some(Secret(value)),
        "dbname" => address.database = value,
        "application_name" => address.application = Some(value),
        "sslrootcert" if value == "system" => address.root_certificate = None,
        "sslrootcert" => address.root_certificate = Some(value.into()),
        "table" => address.table = Some(value),
        "sslmode" => {
            address.tls = match &*value {
                "disable" => TlsMode::Disable,
                "allow" | "prefer" => TlsMode::Prefer,
                "require" => TlsMode::Require,
                "verify-ca" => TlsMode::VerifyCa,
                "verify-full" => TlsMode::VerifyFull,
                _ => {
                    return Err("sslmode is none of disable, prefer, require, verify-ca, verify-full".into());
                }
            }
        }
        // What changes how rows are written is ours to decide; what is about waiting is, too.
        "connect_timeout" | "keepalives" | "target_session_attrs" | "channel_binding" | "gssencmode" => {}
        _ => return Err(format!("the parameter {name} is not known")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_as_libpq_does() {
        let address = parse("postgres://me:p%40ss@db.example.com:6432/shop?sslmode=verify-full").unwrap();
        assert_eq!(
            (&*address.host, address.port, &*address.user, &*address.database),
            ("db.example.com", 6432, "me", "shop")
        );
        assert_eq!((address.password, address.tls), (Some(Secret("p@ss".into())), TlsMode::VerifyFull));
        let address = parse("postgresql://me@[::1]/").unwrap();
        assert_eq!((&*address.host, address.port, &*address.database), ("::1", 5432, "me"));
        let address = parse("postgres://me@/shop?host=%2Frun%2Fpostgresql&port=5433&table=a.b").unwrap();
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
            let error = parse(url).unwrap_err();
            assert_eq!(error, expected);
        }
        let debugged = format!("{:?}", parse("postgres://a:word@h/db").unwrap());
        assert!(!debugged.contains("word") && !debugged.contains("a@"), "{debugged}");
        assert_eq!(format!("{:?}", Secret("word".into())), "(secret)");
    }
}
