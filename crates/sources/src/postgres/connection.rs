//! One connection to a server: the part of the PostgreSQL protocol that is needed.
//!
//! Statements are sent as text and values come as text, as they do in logical replication: a row is then the same however it was
//! read. Nothing happens but while a method is awaited, no task is spawned, and dropping the connection closes it. Methods that read
//! may be dropped while they wait; those that write may not.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use postgres_protocol::message::frontend;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::bytes::Parts;
use super::failure::{Failure, Refusal};
use crate::database::Socket;

/// A message larger than this is none: PostgreSQL has no values of more than 1 GiB.
const MAX_MESSAGE: usize = 1 << 30;

pub(super) struct Connection {
    socket: Socket,
    received: BytesMut,
    to_send: BytesMut,
    notifications: VecDeque<Notification>,
    /// How long the server may be silent while it owes an answer.
    timeout: Duration,
}

/// What somebody said with NOTIFY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notification {
    pub(super) process: i32,
    pub(super) channel: String,
    pub(super) payload: String,
}

/// A message, by what can be done with it.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) tag: u8,
    pub(super) body: Bytes,
}

/// The values of a row, as texts.
pub(super) type Values = Vec<Option<Bytes>>;

impl Connection {
    pub(super) fn new(socket: Socket, timeout: Duration) -> Self {
        Self {
            socket,
            received: BytesMut::with_capacity(64 << 10),
            to_send: BytesMut::new(),
            notifications: VecDeque::new(),
            timeout,
        }
    }

    /// Sends what `write` writes.
    pub(super) async fn send(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        write(&mut self.to_send)?;
        let sent = tokio::time::timeout(self.timeout, async {
            self.socket.write_all(&self.to_send).await?;
            self.socket.flush().await
        });
        match sent.await {
            Ok(sent) => sent?,
            Err(_) => return Err(self.silent()),
        }
        self.to_send.clear();
        Ok(())
    }

    /// The next message that is not told aside.
    pub(super) async fn receive(&mut self) -> Result<Message, Failure> {
        loop {
            if let Some(message) = self.received_message()? {
                return Ok(message);
            }
            match tokio::time::timeout(self.timeout, self.socket.read_buf(&mut self.received)).await {
                Ok(Ok(0)) => return Err(Failure::Connection("the server closed the connection".into())),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => return Err(self.silent()),
            }
        }
    }

    /// A message that is here already. Notices, notifications and parameters are told aside: they come at any time.
    pub(super) fn received_message(&mut self) -> Result<Option<Message>, Failure> {
        loop {
            let Some((&tag, rest)) = self.received.split_first() else { return Ok(None) };
            let Some(length) = rest.first_chunk::<4>() else { return Ok(None) };
            let length = u32::from_be_bytes(*length) as usize;
            if !(4..=MAX_MESSAGE).contains(&length) {
                return Err(Failure::Connection(
                    "this is no PostgreSQL server: a message has no length".into(),
                ));
            }
            if self.received.len() <= length {
                self.received.reserve(length);
                return Ok(None);
            }
            let body = self.received.split_to(length + 1).freeze().slice(5..);
            match tag {
                b'S' | b'N' => {}
                b'A' => {
                    let mut parts = Parts::new(body);
                    let (process, channel, payload) = (parts.i32()?, parts.text()?, parts.text()?);
                    self.notifications.push_back(Notification { process, channel, payload });
                }
                b'E' => return Err(Failure::Server(Refusal::parse(body)?)),
                tag => return Ok(Some(Message { tag, body })),
            }
        }
    }

    /// Waits for notifications, for as long as this. Only between statements.
    pub(super) async fn notifications(&mut self, wait: Duration) -> Result<Vec<Notification>, Failure> {
        let due = tokio::time::Instant::now() + wait;
        while self.notifications.is_empty() {
            if let Some(message) = self.received_message()? {
                return Err(unexpected(&message));
            }
            if !self.notifications.is_empty() {
                break;
            }
            match tokio::time::timeout_at(due, self.socket.read_buf(&mut self.received)).await {
                Ok(Ok(0)) => return Err(Failure::Connection("the server closed the connection".into())),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => break,
            }
        }
        Ok(self.notifications.drain(..).collect())
    }

    /// Begins a statement, whose rows are then read with [`row`](Self::row).
    pub(super) async fn begin(&mut self, statement: &str) -> Result<(), Failure> {
        self.send(|out| frontend::query(statement, out)).await
    }

    /// The next row of what was begun, of all its statements one after the other.
    pub(super) async fn row(&mut self) -> Result<Option<Values>, Failure> {
        loop {
            let message = self.receive().await?;
            match message.tag {
                b'D' => {
                    let mut parts = Parts::new(message.body);
                    let columns = parts.u16()?;
                    return Ok(Some((0..columns).map(|_| parts.value()).collect::<Result<_, _>>()?));
                }
                b'T' | b'C' | b'I' => {}
                b'Z' => return Ok(None),
                _ => return Err(unexpected(&message)),
            }
        }
    }

    /// All rows of a statement that has few, as texts.
    pub(super) async fn query(&mut self, statement: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        self.begin(statement).await?;
        let mut rows = Vec::new();
        while let Some(values) = self.row().await? {
            let text = |value: Bytes| String::from_utf8_lossy(&value).into_owned();
            rows.push(values.into_iter().map(|value| value.map(text)).collect());
        }
        Ok(rows)
    }

    fn silent(&self) -> Failure {
        Failure::Connection(format!("the server has been silent for {:?}", self.timeout))
    }
}

/// A message that does not belong here.
pub(super) fn unexpected(message: &Message) -> Failure {
    Failure::Connection(format!(
        "the server sent a message {:?} that is not expected",
        char::from(message.tag)
    ))
}

/// A name as it stands in a statement.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as it stands in a statement of a connection of ours.
pub fn literal(text: &str) -> String {
    // Backslashes mean nothing: every connection has standard_conforming_strings on.
    format!("'{}'", text.replace('\'', "''"))
}
