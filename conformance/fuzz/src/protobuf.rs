//! Objects in protobuf, with their wires crossed.

use serde_json::Value;

use crate::Dice;

/// The first bytes of every body.
const MAGIC: &[u8] = b"k8s\0";

/// An object in its envelope, unharmed; `None` for kinds without protobuf.
pub(crate) fn encoded(object: &Value) -> Option<Vec<u8>> {
    watchkeeper_kinds::protobuf::encode(object)
}

/// Changes an encoded object: in the envelope, in the object, or anywhere.
pub(crate) fn mutate(bytes: &mut Vec<u8>, dice: &mut Dice) {
    match dice.below(20) {
        0 => bytes.truncate(dice.below(bytes.len() + 1)),
        1 => {
            let at = dice.below(bytes.len());
            bytes[at] ^= 1 << dice.below(8);
        }
        2 => bytes.extend_from_slice(&varint(dice.number())),
        _ => {
            let start = MAGIC.len().min(bytes.len());
            let message = message(&bytes[start..], dice, 0);
            bytes.truncate(start);
            bytes.extend_from_slice(&message);
        }
    }
}

/// A field as it is on the wire.
struct Field {
    number: u64,
    wire: u64,
    /// The number, or the bytes without their length.
    payload: Vec<u8>,
}

/// Changes one field of a message, mostly one that is deep inside.
fn message(bytes: &[u8], dice: &mut Dice, depth: usize) -> Vec<u8> {
    let Some(mut fields) = fields(bytes) else { return noise(bytes, dice) };
    if fields.is_empty() {
        return odd_field(dice);
    }
    let at = dice.below(fields.len());
    let nested =
        fields[at].wire == 2 && fields[at].payload.len() > 1 && self::fields(&fields[at].payload).is_some();
    if nested && depth < 20 && dice.chance(if depth < 2 { 95 } else { 70 }) {
        fields[at].payload = message(&fields[at].payload, dice, depth + 1);
        return fields.iter().flat_map(Field::bytes).collect();
    }
    match dice.below(9) {
        0 => drop(fields.remove(at)),
        1 => {
            let again = Field {
                number: fields[at].number,
                wire: fields[at].wire,
                payload: fields[at].payload.clone(),
            };
            fields.push(again);
        }
        2 => {
            fields[at].number =
                *dice.item(&[0, 1, 2, 3, 15, 16, 100, 1 << 28, (1 << 29) - 1, 1 << 29, 1 << 40]);
        }
        3 => fields[at].wire = dice.below(8) as u64,
        4 | 5 if fields[at].wire == 0 => fields[at].payload = number(dice),
        4 | 5 => fields[at].payload = noise(&fields[at].payload, dice),
        6 => {
            // The length says something else than there is.
            let mut out: Vec<u8> = fields[..at].iter().flat_map(Field::bytes).collect();
            out.extend(varint(fields[at].number << 3 | 2));
            out.extend(varint(*dice.item(&[
                0,
                1,
                0x7f,
                0xffff,
                0x7fff_ffff,
                0xffff_ffff,
                1 << 40,
                1 << 63,
                u64::MAX,
            ])));
            out.extend(&fields[at].payload);
            out.extend(fields[at + 1..].iter().flat_map(Field::bytes));
            return out;
        }
        7 => {
            let mut out: Vec<u8> = fields.iter().flat_map(Field::bytes).collect();
            out.extend(odd_field(dice));
            return out;
        }
        _ => {
            let times = *dice.item(&[2, 10, 1000]);
            let again = fields[at].bytes().repeat(times);
            return [fields.iter().flat_map(Field::bytes).collect(), again].concat();
        }
    }
    fields.iter().flat_map(Field::bytes).collect()
}

impl Field {
    fn bytes(&self) -> Vec<u8> {
        let key = varint(self.number << 3 | self.wire);
        match self.wire {
            2 => [key, varint(self.payload.len() as u64), self.payload.clone()].concat(),
            _ => [key, self.payload.clone()].concat(),
        }
    }
}

/// The fields of a message, if it is one.
fn fields(mut bytes: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = read_varint(&mut bytes)?;
        let (number, wire) = (key >> 3, key & 7);
        let length = match wire {
            0 => {
                let before = bytes;
                read_varint(&mut bytes)?;
                let payload = before[..before.len() - bytes.len()].to_vec();
                fields.push(Field { number, wire, payload });
                continue;
            }
            1 => 8,
            2 => usize::try_from(read_varint(&mut bytes)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let payload = bytes.get(..length)?.to_vec();
        bytes = &bytes[length..];
        fields.push(Field { number, wire, payload });
    }
    Some(fields)
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

/// A number at an edge, or one that is too long.
fn number(dice: &mut Dice) -> Vec<u8> {
    match dice.below(8) {
        0 => vec![0x80; 10],
        1 => vec![0xff; 11],
        2 => vec![0x80, 0x00],
        _ => varint(*dice.item(&[
            0,
            1,
            2,
            0x7f,
            0x80,
            1 << 31,
            (1 << 31) - 1,
            1 << 32,
            (1 << 63) - 1,
            1 << 63,
            u64::MAX,
        ])),
    }
}

fn noise(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut out = bytes.to_vec();
    match dice.below(6) {
        0 => out.truncate(dice.below(bytes.len() + 1)),
        1 => out.clear(),
        2 => out.extend((0..dice.below(9)).map(|_| dice.byte())),
        3 => out = dice.pick(&["", "x", "\u{202e}", "{", "9223372036854775808", "-1", "1e400", "1Ki"]).into(),
        4 => out = vec![0xff; dice.below(5)],
        _ if !out.is_empty() => {
            let at = dice.below(out.len());
            out[at] = dice.byte();
        }
        _ => {}
    }
    out
}

fn odd_field(dice: &mut Dice) -> Vec<u8> {
    let wire = dice.below(8) as u64;
    let key = varint(*dice.item(&[0, 1, 2, 15, 99, (1 << 29) - 1]) << 3 | wire);
    let payload = match wire {
        0 => number(dice),
        1 => vec![0xff; 8],
        2 => [varint(3), b"abc".to_vec()].concat(),
        // Groups, one in the other.
        3 => varint(3).repeat(*dice.item(&[1, 100, 20_000])),
        _ => vec![0; 4],
    };
    [key, payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_changed_objects_can_still_be_read_as_something() {
        let object = serde_json::json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"a": "b"}, "generation": 3},
            "spec": {"containers": [{"name": "a", "image": "b", "ports": [{"containerPort": 80}]}], "priority": 1},
        });
        let whole = encoded(&object).unwrap();
        let (mut changed, mut read) = (0, 0);
        for seed in 0..300 {
            let mut bytes = whole.clone();
            mutate(&mut bytes, &mut Dice::new(seed));
            changed += usize::from(bytes != whole);
            read += usize::from(watchkeeper_kinds::protobuf::decode(&bytes).is_ok());
        }
        assert!(changed > 270 && read > 100, "{changed} changed, {read} read");
    }
}
