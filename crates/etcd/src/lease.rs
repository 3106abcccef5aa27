use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};
use watchkeeper_wire::protobuf::{self, Writer};

use crate::duplex::Duplex;
use crate::error::{Code, Error};
use crate::keys::Header;
use crate::message::{Decode, Encode, Fields as _, fields};

/// A lease: the keys that were put with it go when it runs out or is revoked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// When it was made or kept alive.
    pub header: Header,
    /// Its number.
    pub id: i64,
    /// How many seconds it lasts from then on.
    pub seconds: i64,
}

impl Decode for Lease {
    fn decode(message: &Bytes) -> Result<Self, protobuf::Error> {
        let mut lease = Self::default();
        fields(message, |number, value| {
            match number {
                1 => lease.header = value.message()?,
                2 => lease.id = value.integer()?,
                3 => lease.seconds = value.integer()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(lease)
    }
}

/// Asks for a lease of so many seconds.
pub(crate) struct Grant(pub(crate) i64);

impl Encode for Grant {
    fn encode(&self, writer: &mut Writer) {
        writer.number(1, self.0);
    }
}

/// Names a lease that is to end, or to be kept alive.
pub(crate) struct Revoke(pub(crate) i64);

impl Encode for Revoke {
    fn encode(&self, writer: &mut Writer) {
        writer.number(1, self.0);
    }
}

/// A stream on which leases are kept alive; from [`Client::keep_alive`](crate::Client::keep_alive).
///
/// After an error it is over, and another one has to be opened. The lease may still be there then.
pub struct KeepAlive {
    stream: Duplex,
    timeout: Duration,
}

impl KeepAlive {
    pub(crate) fn new(stream: Duplex, timeout: Duration) -> Self {
        Self { stream, timeout }
    }

    /// Keeps a lease alive: from now on it lasts as long as when it was made. A lease that is gone is
    /// [refused](Error::Refused) with [`Code::NOT_FOUND`].
    pub async fn renew(&mut self, id: i64) -> Result<Lease, Error> {
        let deadline = Instant::now() + self.timeout;
        let renewed = async {
            self.stream.send(&Revoke(id)).await?;
            loop {
                let lease = Lease::decode(&self.stream.next().await?)?;
                if lease.id == id {
                    return Ok(lease);
                }
            }
        };
        let lease = timeout_at(deadline, renewed)
            .await
            .unwrap_or_else(|_| Err(Error::Unavailable("a lease is not kept alive in time".into())))?;
        match lease.seconds {
            ..=0 => {
                Err(Error::Refused { code: Code::NOT_FOUND, message: format!("there is no lease {id:x}") })
            }
            _ => Ok(lease),
        }
    }
}

impl fmt::Debug for KeepAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeepAlive")
    }
}
