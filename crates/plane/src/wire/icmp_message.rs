//! What ICMP and ICMPv6 have in common: type, code, checksum, and four bytes whose meaning depends on the type.
//!
//! The two protocols differ in what the numbers mean, which is [`IcmpKind`], and in what the checksum covers; each
//! adds that in its own file.

use std::marker::PhantomData;

use super::{Field, Malformed, check_len};

/// Bytes of the header.
pub const HEADER: usize = 8;

const TYPE: Field<1> = Field(0);
const CODE: Field<1> = Field(1);
const CHECKSUM: Field<2> = Field(2);
const IDENTIFIER: Field<2> = Field(4);
const SEQUENCE: Field<2> = Field(6);
const REST: Field<4> = Field(4);

/// What the type and code fields of one protocol stand for.
pub trait IcmpKind: Copy + PartialEq + Sized + 'static {
    /// How errors name the protocol.
    const PROTOCOL: &'static str;
    /// Every message that has a name, with its type and its code.
    const NAMED: &'static [(Self, u8, u8)];

    /// A message without a name.
    fn other(kind: u8, code: u8) -> Self;

    /// Type and code of a message without a name.
    fn other_numbers(self) -> (u8, u8);

    /// The type and code fields.
    fn type_and_code(self) -> (u8, u8) {
        let named = Self::NAMED.iter().find(|(named, ..)| *named == self);
        named.map_or_else(|| self.other_numbers(), |(_, kind, code)| (*kind, *code))
    }

    /// What type and code fields stand for.
    fn from_type_and_code(kind: u8, code: u8) -> Self {
        let named = Self::NAMED.iter().find(|(_, named, of)| (*named, *of) == (kind, code));
        named.map_or_else(|| Self::other(kind, code), |(named, ..)| *named)
    }
}

/// A message from its header on; `K` says of which protocol.
#[derive(Clone, Copy, Debug)]
pub struct IcmpMessage<T, K> {
    pub(super) bytes: T,
    kind: PhantomData<K>,
}

impl<T: AsRef<[u8]>, K: IcmpKind> IcmpMessage<T, K> {
    /// A view whose accessors panic where `bytes` is too short.
    pub const fn new_unchecked(bytes: T) -> IcmpMessage<T, K> {
        IcmpMessage { bytes, kind: PhantomData }
    }

    /// A view none of whose accessors can panic.
    pub fn new_checked(bytes: T) -> Result<IcmpMessage<T, K>, Malformed> {
        check_len(K::PROTOCOL, bytes.as_ref(), HEADER)?;
        Ok(IcmpMessage::new_unchecked(bytes))
    }

    /// What it says.
    pub fn kind(&self) -> K {
        let bytes = self.bytes.as_ref();
        K::from_type_and_code(TYPE.number(bytes), CODE.number(bytes))
    }

    /// Of an echo: which sender asks.
    pub fn identifier(&self) -> u16 {
        IDENTIFIER.number(self.bytes.as_ref())
    }

    /// Of an echo: which question.
    pub fn sequence(&self) -> u16 {
        SEQUENCE.number(self.bytes.as_ref())
    }

    /// The four bytes behind the checksum.
    pub fn rest(&self) -> u32 {
        REST.number(self.bytes.as_ref())
    }

    /// An echo's data, or the start of the packet an error is about.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[HEADER..]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>, K: IcmpKind> IcmpMessage<T, K> {
    /// Sets type and code.
    pub fn set_kind(&mut self, kind: K) {
        let (kind, code) = kind.type_and_code();
        TYPE.set_number(self.bytes.as_mut(), kind);
        CODE.set_number(self.bytes.as_mut(), code);
    }

    /// Sets identifier and sequence number of an echo.
    pub fn set_echo(&mut self, identifier: u16, sequence: u16) {
        IDENTIFIER.set_number(self.bytes.as_mut(), identifier);
        SEQUENCE.set_number(self.bytes.as_mut(), sequence);
    }

    /// Sets the four bytes behind the checksum: an MTU, a pointer, flags, or 0 where they are unused.
    pub fn set_rest(&mut self, value: u32) {
        REST.set_number(self.bytes.as_mut(), value);
    }

    pub(super) fn set_checksum(&mut self, value: u16) {
        CHECKSUM.set_number(self.bytes.as_mut(), value);
    }
}

/// Every pair of numbers becomes a message and comes back.
#[cfg(test)]
pub(super) fn check_numbers<K: IcmpKind>() {
    for kind in 0..=u8::MAX {
        for code in 0..=u8::MAX {
            assert_eq!(K::from_type_and_code(kind, code).type_and_code(), (kind, code));
        }
    }
}
