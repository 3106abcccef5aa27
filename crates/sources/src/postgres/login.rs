//! The startup and authentication of a connection, up to where statements can be sent.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

use super::bytes::Parts;
use super::connection::{Connection, unexpected};
use super::failure::Failure;
use super::settings::Settings;
use super::socket;
use crate::database::{Address, Secret};

/// How values are written, so that a row is the same whatever the server's or the role's settings are; and that a table which hides some of its
/// rows from this role is an error rather than a table with fewer rows.
const SESSION: &str = "SET datestyle = 'ISO'; SET timezone = 'UTC'; SET intervalstyle = 'iso_8601'; \
    SET bytea_output = 'hex'; SET extra_float_digits = 3; SET client_encoding = 'UTF8'; \
    SET standard_conforming_strings = on; SET row_security = off; SET statement_timeout = 0; \
    SET idle_in_transaction_session_timeout = 0";

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Statements,
    Replication,
}

/// Connects, in the time that there is for it.
pub(super) async fn connect(settings: &Settings, purpose: Purpose) -> Result<Connection, Failure> {
    let connecting = async {
        let address = settings.address.as_ref().map_err(|why| Failure::Settings(why.clone()))?;
        let password = match &settings.password_file {
            None => address.password.clone(),
            Some(path) => {
                let bad = |error| Failure::Settings(format!("the password in {}: {error}", path.display()));
                let text = tokio::fs::read_to_string(path).await.map_err(bad)?;
                Some(Secret(text.trim_end_matches(['\r', '\n']).to_owned()))
            }
        };
        let socket = socket::connect(address).await?;
        let mut connection = Connection::new(socket, settings.timeout);
        begin(&mut connection, address, password.as_ref(), purpose).await?;
        connection.query(SESSION).await?;
        Ok(connection)
    };
    match tokio::time::timeout(settings.timeout, connecting).await {
        Ok(connected) => connected.map_err(|failure| advise(failure, purpose)),
        Err(_) => Err(Failure::Connection(format!("not connected after {:?}", settings.timeout))),
    }
}

/// Says what to do where the server only says what is wrong.
fn advise(failure: Failure, purpose: Purpose) -> Failure {
    match failure {
        Failure::Server(mut refusal) if refusal.code == "42501" && purpose == Purpose::Replication => {
            refusal.message += "; as a superuser: ALTER ROLE ... REPLICATION";
            Failure::Server(refusal)
        }
        failure => failure,
    }
}

async fn begin(
    connection: &mut Connection,
    address: &Address,
    password: Option<&Secret>,
    purpose: Purpose,
) -> Result<(), Failure> {
    let application = address.application.as_deref().unwrap_or("watchkeeper");
    let mut parameters = vec![
        ("user", &*address.user),
        ("database", &*address.database),
        ("application_name", application),
        ("client_encoding", "UTF8"),
    ];
    if purpose == Purpose::Replication {
        parameters.push(("replication", "database"));
    }
    connection.send(|out| frontend::startup_message(parameters, out)).await?;
    loop {
        let message = connection.receive().await?;
        match message.tag {
            b'R' => authenticate(connection, &address.user, password, Parts::new(message.body)).await?,
            b'K' => {}
            b'Z' => return Ok(()),
            _ => return Err(unexpected(&message)),
        }
    }
}

async fn authenticate(
    connection: &mut Connection,
    user: &str,
    password: Option<&Secret>,
    mut request: Parts,
) -> Result<(), Failure> {
    let method = request.u32()?;
    if method == 0 {
        return Ok(());
    }
    let Some(Secret(password)) = password else {
        return Err(Failure::Settings("the server asks for a password, and there is none".into()));
    };
    match method {
        3 => connection.send(|out| frontend::password_message(password.as_bytes(), out)).await,
        5 => {
            let salt = request.u32()?.to_be_bytes();
            let hash = md5_hash(user.as_bytes(), password.as_bytes(), salt);
            connection.send(|out| frontend::password_message(hash.as_bytes(), out)).await
        }
        10 => {
            let mut offered = false;
            while !request.is_empty() {
                offered |= request.text()? == SCRAM_SHA_256;
            }
            if !offered {
                return Err(Failure::Settings("the server knows no way to log in that we know".into()));
            }
            scram(connection, password).await
        }
        _ => Err(Failure::Settings(format!(
            "the server asks to log in by method {method}; we know passwords: md5 and scram-sha-256"
        ))),
    }
}

async fn scram(connection: &mut Connection, password: &str) -> Result<(), Failure> {
    let mut scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
    connection.send(|out| frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), out)).await?;
    scram.update(&step(connection, 11).await?)?;
    connection.send(|out| frontend::sasl_response(scram.message(), out)).await?;
    // The server has to know the password, too.
    scram.finish(&step(connection, 12).await?)?;
    Ok(())
}

async fn step(connection: &mut Connection, expected: u32) -> Result<bytes::Bytes, Failure> {
    let message = connection.receive().await?;
    let tag = message.tag;
    let mut parts = Parts::new(message.body);
    if tag == b'R' && parts.u32()? == expected {
        return Ok(parts.rest());
    }
    Err(Failure::Connection("the server did not log in as it should".into()))
}
