//! Connection URLs, with the parameters that the clients of MySQL and MariaDB have.

use crate::database::{Address, Dialect, TlsMode};

const DIALECT: Dialect =
    Dialect { schemes: &["mysql", "mariadb"], example: "mysql://user@host/database", port: 3306, set };

/// Reads `mysql://user:password@host:port/database?ssl-mode=...`.
pub(super) fn parse(url: &str) -> Result<Address, String> {
    let address = Address::parse(url, &DIALECT)?;
    match address.database.is_empty() {
        true => Err("it names no database: expected mysql://user@host/database".into()),
        false => Ok(address),
    }
}

fn set(address: &mut Address, name: &str, value: String) -> Result<(), String> {
    match name {
        "socket" if value.starts_with('/') => address.host = value,
        "socket" => return Err("the socket is not a path that begins with a slash".into()),
        "table" => address.table = Some(value),
        "ssl-ca" | "sslrootcert" => address.root_certificate = Some(value.into()),
        "ssl-mode" | "sslmode" => {
            address.tls = match &*value.to_ascii_lowercase().replace('_', "-") {
                "disabled" | "disable" => TlsMode::Disable,
                "preferred" | "prefer" => TlsMode::Prefer,
                "required" | "require" => TlsMode::Require,
                "verify-ca" => TlsMode::VerifyCa,
                "verify-identity" | "verify-full" => TlsMode::VerifyFull,
                _ => {
                    return Err(
                        "ssl-mode is none of disabled, preferred, required, verify_ca, verify_identity"
                            .into(),
                    );
                }
            }
        }
        // What changes how rows are written is ours to decide; what is about waiting is, too.
        "charset" | "collation" | "connect-timeout" => {}
        _ => return Err(format!("the parameter {name} is not known")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_where_and_how() {
        let address =
            parse("mysql://me:p%40ss@db.example.com/shop?ssl-mode=VERIFY_IDENTITY&table=routes").unwrap();
        assert_eq!((&*address.host, address.port, &*address.database), ("db.example.com", 3306, "shop"));
        assert_eq!((address.tls, address.table.as_deref()), (TlsMode::VerifyFull, Some("routes")));
        assert_eq!(address.shown(), "db.example.com/shop");
        let address = parse("mariadb://me@/shop?socket=/run/mysqld/mysqld.sock").unwrap();
        assert_eq!(&*address.host, "/run/mysqld/mysqld.sock");
        assert_eq!(parse("mysql://me@h:3307/shop").unwrap().shown(), "h:3307/shop");
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (url, expected) in [
            ("postgres://x", "expected mysql://user@host/database"),
            ("mysql://host/db", "it names no user: expected mysql://user@host/database"),
            ("mysql://a:word@h", "it names no database: expected mysql://user@host/database"),
            ("mysql://a:word@h/db?wrod=word", "the parameter wrod is not known"),
            ("mysql://a:word@h/db?socket=word", "the socket is not a path that begins with a slash"),
            (
                "mysql://a:word@h/db?ssl-mode=word",
                "ssl-mode is none of disabled, preferred, required, verify_ca, verify_identity",
            ),
        ] {
            assert_eq!(parse(url).unwrap_err(), expected);
        }
    }
}
