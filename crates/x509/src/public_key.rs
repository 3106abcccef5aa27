use crate::der::{self, BIT_STRING, INTEGER, OBJECT_ID, SEQUENCE};
use crate::{Malformed, oid};

/// A public key in its general form, as certificates have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKeyInfo<'a> {
    /// The key alone, as its algorithm wants it.
    pub bytes: &'a [u8],
    /// The key, taken apart.
    pub key: PublicKey<'a>,
}

/// A public key, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicKey<'a> {
    /// A key for RSA. Both numbers are without leading zeros.
    Rsa {
        /// The product of the two primes.
        modulus: &'a [u8],
        /// The exponent.
        exponent: &'a [u8],
    },
    /// A point on an elliptic curve that has a name.
    Ec {
        /// The [object identifier](oid) of the curve.
        curve: &'a [u8],
        /// The point, as it is written.
        point: &'a [u8],
    },
    /// A key for something else.
    Other,
}

impl<'a> PublicKeyInfo<'a> {
    /// Reads a `SubjectPublicKeyInfo`.
    pub fn read(encoded: &'a [u8]) -> Result<Self, Malformed> {
        let mut info = der::only(SEQUENCE, encoded)?.reader();
        let mut algorithm = info.expect(SEQUENCE)?.reader();
        let bytes = info.expect(BIT_STRING)?.whole_bits()?;
        info.finish()?;
        let key = match algorithm.expect(OBJECT_ID)?.object_id()? {
            oid::RSA => {
                let mut numbers = der::only(SEQUENCE, bytes)?.reader();
                let modulus = numbers.expect(INTEGER)?.unsigned()?;
                let exponent = numbers.expect(INTEGER)?.unsigned()?;
                numbers.finish()?;
                PublicKey::Rsa { modulus, exponent }
            }
            oid::EC_PUBLIC_KEY => match algorithm.optional(OBJECT_ID)? {
                Some(curve) => PublicKey::Ec { curve: curve.object_id()?, point: bytes },
                None => PublicKey::Other,
            },
            _ => PublicKey::Other,
        };
        Ok(Self { bytes, key })
    }

    /// Writes the key of an elliptic curve.
    pub fn write_ec(curve: &[u8], point: &[u8]) -> Vec<u8> {
        let algorithm = der::sequence(&[&der::object_id(oid::EC_PUBLIC_KEY), &der::object_id(curve)]);
        der::sequence(&[&algorithm, &der::bits(0, point)])
    }

    /// Writes a key for RSA, given as the sequence of its two numbers.
    pub fn write_rsa(numbers: &[u8]) -> Vec<u8> {
        let algorithm = der::sequence(&[&der::object_id(oid::RSA), &der::tagged(der::NULL, &[])]);
        der::sequence(&[&algorithm, &der::bits(0, numbers)])
    }
}
