//! One connection to a server: the part of the MySQL protocol that is needed.
//!
//! Statements are sent as text and values come as text. Nothing happens but while a method is awaited, no task is spawned, and dropping the
//! connection closes it.

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::failure::{Failure, Refusal};
use super::wire::Parts;
use crate::database::{Address, Socket};

/// Packets of this length go on in the next one.
const FULL: usize = 0xff_ffff;
/// What is larger than this is no packet: `max_allowed_packet` is 1 GiB at most.
const MAX_PACKET: usize = 1 << 30;

const COM_QUERY: u8 = 3;
const OK: u8 = 0;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;
/// The server asks for a file of ours, which it never gets.
const LOCAL_INFILE: u8 = 0xfb;

pub(super) struct Connection {
    /// None while TLS is being agreed on, and when that has failed.
    socket: Option<Socket>,
    received: BytesMut,
    /// The number that the next packet has.
    sequence: u8,
    /// How long the server may be silent while it owes an answer.
    timeout: Duration,
    /// How many columns the rows have that are being read.
    columns: usize,
}

/// The values of a row, as texts.
pub(super) type Values = Vec<Option<Bytes>>;

impl Connection {
    pub(super) fn new(socket: Socket, timeout: Duration) -> Self {
        Self {
            socket: Some(socket),
            received: BytesMut::with_capacity(64 << 10),
            sequence: 0,
            timeout,
            columns: 0,
        }
    }

    /// Whether nobody on the way can read what is sent.
    pub(super) fn is_private(&self) -> bool {
        self.socket.as_ref().is_some_and(Socket::is_private)
    }

    /// Begins TLS.
    pub(super) async fn secure(&mut self, address: &Address) -> Result<(), Failure> {
        if !self.received.is_empty() {
            return Err(Failure::Connection("something was slipped in before TLS began".into()));
        }
        let Some(socket) = self.socket.take() else { return Err(closed()) };
        self.socket = Some(socket.secure(address).await?);
        Ok(())
    }

    /// Sends a packet.
    pub(super) async fn send(&mut self, body: &[u8]) -> Result<(), Failure> {
        if body.len() >= FULL {
            return Err(Failure::Settings("a statement of 16 MiB and more is not sent".into()));
        }
        let length = u32::try_from(body.len()).unwrap_or_default().to_le_bytes();
        let mut packet = Vec::with_capacity(body.len() + 4);
        packet.extend_from_slice(&[length[0], length[1], length[2], self.sequence]);
        packet.extend_from_slice(body);
        self.sequence = self.sequence.wrapping_add(1);
        let Some(socket) = &mut self.socket else { return Err(closed()) };
        let sent = tokio::time::timeout(self.timeout, async {
            socket.write_all(&packet).await?;
            socket.flush().await
        });
        match sent.await {
            Ok(sent) => Ok(sent?),
            Err(_) => Err(self.silent()),
        }
    }

    /// The next packet, whatever is in it.
    async fn packet(&mut self) -> Result<Bytes, Failure> {
        let (mut body, more) = self.part().await?;
        if !more {
            return Ok(body);
        }
        let mut whole = BytesMut::from(&*body);
        loop {
            let more;
            (body, more) = self.part().await?;
            if whole.len() + body.len() > MAX_PACKET {
                return Err(Failure::garbled("a packet of more than 1 GiB"));
            }
            whole.extend_from_slice(&body);
            if !more {
                return Ok(whole.freeze());
            }
        }
    }

    /// A part of a packet, and whether there is another one.
    async fn part(&mut self) -> Result<(Bytes, bool), Failure> {
        loop {
            if let Some(&[a, b, c, sequence]) = self.received.first_chunk::<4>() {
                let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
                if self.received.len() >= 4 + length {
                    if sequence != self.sequence {
                        return Err(Failure::garbled("a packet is missing"));
                    }
                    self.sequence = sequence.wrapping_add(1);
                    self.received.advance(4);
                    return Ok((self.received.split_to(length).freeze(), length == FULL));
                }
                self.received.reserve(4 + length);
            }
            let Some(socket) = &mut self.socket else { return Err(closed()) };
            match tokio::time::timeout(self.timeout, socket.read_buf(&mut self.received)).await {
                Ok(Ok(0)) => return Err(Failure::Connection("the server closed the connection".into())),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => return Err(self.silent()),
            }
        }
    }

    /// The next packet, unless it says that something was refused.
    pub(super) async fn receive(&mut self) -> Result<Bytes, Failure> {
        let packet = self.packet().await?;
        match packet.first() {
            Some(&ERR) => Err(Failure::Server(Refusal::parse(&packet[1..]))),
            Some(_) => Ok(packet),
            None => Err(Failure::garbled("an empty packet")),
        }
    }

    /// Begins a statement, whose rows are then read with [`row`](Self::row).
    pub(super) async fn begin(&mut self, statement: &str) -> Result<(), Failure> {
        self.sequence = 0;
        self.columns = 0;
        let mut body = Vec::with_capacity(statement.len() + 1);
        body.push(COM_QUERY);
        body.extend_from_slice(statement.as_bytes());
        self.send(&body).await?;
        let answer = self.receive().await?;
        match answer.first() {
            Some(&OK) => Ok(()),
            Some(&LOCAL_INFILE) => Err(Failure::garbled("it asks for a file")),
            _ => {
                let columns = Parts::new(answer).length()?;
                self.columns =
                    usize::try_from(columns).ok().filter(|columns| *columns <= 4096).unwrap_or_default();
                if self.columns == 0 {
                    return Err(Failure::garbled("rows without columns"));
                }
                // What the columns are is known from the table already.
                for _ in 0..=self.columns {
                    self.receive().await?;
                }
                Ok(())
            }
        }
    }

    /// The next row of what was begun.
    pub(super) async fn row(&mut self) -> Result<Option<Values>, Failure> {
        if self.columns == 0 {
            return Ok(None);
        }
        let packet = self.packet().await?;
        match packet.first() {
            Some(&ERR) => Err(Failure::Server(Refusal::parse(&packet[1..]))),
            Some(&EOF) if packet.len() < 9 => {
                self.columns = 0;
                Ok(None)
            }
            _ => {
                let mut parts = Parts::new(packet);
                let values = (0..self.columns).map(|_| parts.value()).collect::<Result<_, _>>()?;
                if !parts.is_empty() {
                    return Err(Failure::garbled("a row has too many values"));
                }
                Ok(Some(values))
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

fn closed() -> Failure {
    Failure::Connection("the connection is closed".into())
}

/// A name as it stands in a statement.
pub(super) fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as it stands in a statement.
pub(super) fn literal(text: &str) -> String {
    // Backslashes mean nothing: every connection has NO_BACKSLASH_ESCAPES.
    format!("'{}'", text.replace('\'', "''"))
}
