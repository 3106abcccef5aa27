//! Parses the messages of pgoutput, version 1. Without I/O.

use bytes::Bytes;

use super::bytes::{Garbled, Parts};

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A transaction that was committed follows.
    Begin,
    /// It ends; the log goes on at this position.
    Commit {
        end: u64,
    },
    /// What a table looks like from here on.
    Relation(Relation),
    Insert {
        relation: u32,
        new: Tuple,
    },
    Update {
        relation: u32,
        /// What it was: its key only, if that has changed, or all of it, if the table's identity is that.
        old: Option<Tuple>,
        new: Tuple,
    },
    Delete {
        relation: u32,
        old: Tuple,
    },
    Truncate {
        relations: Vec<u32>,
    },
    /// Of no interest: where it came from, types, messages.
    Other,
}

/// What a table looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    pub(super) oid: u32,
    /// Name and type.
    pub(super) columns: Vec<(String, u32)>,
}

/// The values of a row.
pub(super) type Tuple = Vec<Cell>;

/// A value in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Null,
    /// Large, stored apart, and not touched by an update: the log does not have it.
    Unchanged,
    Text(Bytes),
}

impl Entry {
    /// Reads exactly one message.
    pub(super) fn parse(message: Bytes) -> Result<Self, Garbled> {
        let mut parts = Parts::new(message);
        let entry = match parts.u8()? {
            b'B' => {
                let (_final, _time, _transaction) = (parts.u64()?, parts.u64()?, parts.u32()?);
                Self::Begin
            }
            b'C' => {
                let (_flags, _start, end, _time) = (parts.u8()?, parts.u64()?, parts.u64()?, parts.u64()?);
                Self::Commit { end }
            }
            b'R' => Self::Relation(relation(&mut parts)?),
            b'I' => {
                let relation = parts.u32()?;
                expect(&mut parts, b'N')?;
                Self::Insert { relation, new: tuple(&mut parts)? }
            }
            b'U' => {
                let relation = parts.u32()?;
                let old = match parts.u8()? {
                    b'K' | b'O' => {
                        let old = tuple(&mut parts)?;
                        expect(&mut parts, b'N')?;
                        Some(old)
                    }
                    b'N' => None,
                    _ => return Err(Garbled("an update has no new row")),
                };
                Self::Update { relation, old, new: tuple(&mut parts)? }
            }
            b'D' => {
                let relation = parts.u32()?;
                match parts.u8()? {
                    b'K' | b'O' => Self::Delete { relation, old: tuple(&mut parts)? },
                    _ => return Err(Garbled("a deletion has no old row")),
                }
            }
            b'T' => {
                let (count, _options) = (parts.u32()?, parts.u8()?);
                let relations: Result<_, _> = (0..count).map(|_| parts.u32()).collect();
                Self::Truncate { relations: relations? }
            }
            b'O' | b'Y' | b'M' => return Ok(Self::Other),
            _ => return Err(Garbled("an entry of the log is of a type that is not known")),
        };
        if parts.is_empty() { Ok(entry) } else { Err(Garbled("an entry of the log is too long")) }
    }
}

fn expect(parts: &mut Parts, tag: u8) -> Result<(), Garbled> {
    if parts.u8()? == tag { Ok(()) } else { Err(Garbled("an entry of the log has no new row")) }
}

fn relation(parts: &mut Parts) -> Result<Relation, Garbled> {
    let oid = parts.u32()?;
    let (_schema, _name, _identity) = (parts.text()?, parts.text()?, parts.u8()?);
    let columns = (0..parts.u16()?).map(|_| {
        let (_flags, name, oid, _modifier) = (parts.u8()?, parts.text()?, parts.u32()?, parts.u32()?);
        Ok((name, oid))
    });
    Ok(Relation { oid, columns: columns.collect::<Result<_, _>>()? })
}

fn tuple(parts: &mut Parts) -> Result<Tuple, Garbled> {
    let count = parts.u16()?;
    let cell = |_| match parts.u8()? {
        b'n' => Ok(Cell::Null),
        b'u' => Ok(Cell::Unchanged),
        b't' => parts.value()?.map(Cell::Text).ok_or(Garbled("a value has no length")),
        _ => Err(Garbled("a value is of a kind that was not asked for")),
    };
    (0..count).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::{BufMut as _, BytesMut};
    use proptest::prelude::*;

    fn put_text(out: &mut BytesMut, text: &str) {
        out.put_slice(text.as_bytes());
        out.put_u8(0);
    }

    fn put_tuple(out: &mut BytesMut, tuple: &Tuple) {
        out.put_u16(tuple.len() as u16);
        for cell in tuple {
            match cell {
                Cell::Null => out.put_u8(b'n'),
                Cell::Unchanged => out.put_u8(b'u'),
                Cell::Text(text) => {
                    out.put_u8(b't');
                    out.put_i32(text.len() as i32);
                    out.put_slice(text);
                }
            }
        }
    }

    /// A message as the server writes it.
    fn encode(entry: &Entry, full: bool) -> Bytes {
        let mut out = BytesMut::new();
        let mark = if full { b'O' } else { b'K' };
        match entry {
            Entry::Begin => {
                out.put_u8(b'B');
                out.put_bytes(0, 20);
            }
            Entry::Commit { end } => {
                out.put_u8(b'C');
                out.put_bytes(0, 9);
                out.put_u64(*end);
                out.put_u64(0);
            }
            Entry::Relation(relation) => {
                out.put_u8(b'R');
                out.put_u32(relation.oid);
                put_text(&mut out, "public");
                put_text(&mut out, "routes");
                out.put_u8(b'd');
                out.put_u16(relation.columns.len() as u16);
                for (name, oid) in &relation.columns {
                    out.put_u8(0);
                    put_text(&mut out, name);
                    out.put_u32(*oid);
                    out.put_u32(u32::MAX);
                }
            }
            Entry::Insert { relation, new } => {
                out.put_u8(b'I');
                out.put_u32(*relation);
                out.put_u8(b'N');
                put_tuple(&mut out, new);
            }
            Entry::Update { relation, old, new } => {
                out.put_u8(b'U');
                out.put_u32(*relation);
                if let Some(old) = old {
                    out.put_u8(mark);
                    put_tuple(&mut out, old);
                }
                out.put_u8(b'N');
                put_tuple(&mut out, new);
            }
            Entry::Delete { relation, old } => {
                out.put_u8(b'D');
                out.put_u32(*relation);
                out.put_u8(mark);
                put_tuple(&mut out, old);
            }
            Entry::Truncate { relations } => {
                out.put_u8(b'T');
                out.put_u32(relations.len() as u32);
                out.put_u8(1);
                relations.iter().for_each(|oid| out.put_u32(*oid));
            }
            Entry::Other => out.put_u8(b'Y'),
        }
        out.freeze()
    }

    fn tuples() -> impl Strategy<Value = Tuple> {
        let text = proptest::collection::vec(any::<u8>(), 0..9).prop_map(|text| Cell::Text(text.into()));
        proptest::collection::vec(prop_oneof![Just(Cell::Null), Just(Cell::Unchanged), text], 0..5)
    }

    fn entries() -> impl Strategy<Value = Entry> {
        prop_oneof![
            Just(Entry::Begin),
            any::<u64>().prop_map(|end| Entry::Commit { end }),
            (any::<u32>(), proptest::collection::vec(("[a-zé]{0,5}", any::<u32>()), 0..5))
                .prop_map(|(oid, columns)| Entry::Relation(Relation { oid, columns })),
            (any::<u32>(), tuples()).prop_map(|(relation, new)| Entry::Insert { relation, new }),
            (any::<u32>(), proptest::option::of(tuples()), tuples())
                .prop_map(|(relation, old, new)| Entry::Update { relation, old, new }),
            (any::<u32>(), tuples()).prop_map(|(relation, old)| Entry::Delete { relation, old }),
            proptest::collection::vec(any::<u32>(), 0..5).prop_map(|relations| Entry::Truncate { relations }),
        ]
    }

    proptest! {
        #[test]
        fn what_the_server_writes_is_read_back(entry in entries(), full in any::<bool>()) {
            prop_assert_eq!(Entry::parse(encode(&entry, full)), Ok(entry));
        }

        #[test]
        fn what_is_cut_off_or_too_long_is_refused(entry in entries(), cut in any::<proptest::sample::Index>()) {
            let whole = encode(&entry, false);
            prop_assert!(Entry::parse(whole.slice(..cut.index(whole.len()))).is_err());
            let mut longer = BytesMut::from(&whole[..]);
            longer.put_u8(0);
            prop_assert!(Entry::parse(longer.freeze()).is_err());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40), tag in proptest::sample::select(b"BCRIUDTOYM".to_vec())) {
            let _ = Entry::parse(bytes.clone().into());
            let _ = Entry::parse([vec![tag], bytes].concat().into());
        }
    }
}
