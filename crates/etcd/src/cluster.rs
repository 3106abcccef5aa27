//! The members of a cluster and how they are doing; who the client is.

use bytes::Bytes;
use watchkeeper_wire::protobuf::{Error, Writer};

use crate::keys::Header;
use crate::message::{Decode, Encode, Fields as _, fields};

/// How one member is doing: the one that was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Which member, and its revision.
    pub header: Header,
    /// Its version: `3.6.8`.
    pub version: String,
    /// How large its database is on the disk.
    pub db_bytes: i64,
    /// How much of that is in use.
    pub db_bytes_in_use: i64,
    /// How large it may become, if etcd says so.
    pub db_bytes_quota: i64,
    /// Which member leads; 0 if none does.
    pub leader: u64,
    /// What is wrong: `NOSPACE`, `CORRUPT`, no leader.
    pub errors: Vec<String>,
    /// Whether it only learns and does not vote.
    pub is_learner: bool,
}

impl Decode for Status {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut status = Self::default();
        fields(message, |number, value| {
            match number {
                1 => status.header = value.message()?,
                2 => status.version = value.text()?,
                3 => status.db_bytes = value.integer()?,
                4 => status.leader = value.unsigned()?,
                8 => status.errors.push(value.text()?),
                9 => status.db_bytes_in_use = value.integer()?,
                10 => status.is_learner = value.flag()?,
                12 => status.db_bytes_quota = value.integer()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(status)
    }
}

/// A member of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// Its number.
    pub id: u64,
    /// Its name; empty before it has started for the first time.
    pub name: String,
    /// Where other members find it.
    pub peer_urls: Vec<String>,
    /// Where clients find it.
    pub client_urls: Vec<String>,
    /// Whether it only learns and does not vote.
    pub is_learner: bool,
}

impl Decode for Member {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut member = Self::default();
        fields(message, |number, value| {
            match number {
                1 => member.id = value.unsigned()?,
                2 => member.name = value.text()?,
                3 => member.peer_urls.push(value.text()?),
                4 => member.client_urls.push(value.text()?),
                5 => member.is_learner = value.flag()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(member)
    }
}

/// All members.
pub(crate) struct Members(pub(crate) Vec<Member>);

impl Decode for Members {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut members = Vec::new();
        fields(message, |number, value| {
            if number == 2 {
                members.push(value.message()?);
            }
            Ok(())
        })?;
        Ok(Self(members))
    }
}

/// Asks for all members, as the cluster has agreed on them.
pub(crate) struct MemberList;

impl Encode for MemberList {
    fn encode(&self, writer: &mut Writer) {
        writer.flag(1, true);
    }
}

/// Asks for another leader.
pub(crate) struct MoveLeader(pub(crate) u64);

impl Encode for MoveLeader {
    fn encode(&self, writer: &mut Writer) {
        // The same bits.
        writer.number(1, self.0 as i64);
    }
}

/// Takes back the alarm of a member about space.
pub(crate) struct Disarm(pub(crate) u64);

impl Encode for Disarm {
    fn encode(&self, writer: &mut Writer) {
        const DEACTIVATE: i64 = 2;
        const NO_SPACE: i64 = 1;
        writer.number(1, DEACTIVATE);
        writer.number(2, self.0 as i64);
        writer.number(3, NO_SPACE);
    }
}

/// Asks for a token.
pub(crate) struct Authenticate<'a> {
    pub(crate) name: &'a str,
    pub(crate) password: &'a str,
}

impl Encode for Authenticate<'_> {
    fn encode(&self, writer: &mut Writer) {
        writer.some_bytes(1, self.name.as_bytes());
        writer.some_bytes(2, self.password.as_bytes());
    }
}

/// A token.
pub(crate) struct Token(pub(crate) String);

impl Decode for Token {
    fn decode(message: &Bytes) -> Result<Self, Error> {
        let mut token = String::new();
        fields(message, |number, value| {
            if number == 2 {
                token = value.text()?;
            }
            Ok(())
        })?;
        Ok(Self(token))
    }
}
