//! The common format of ICMP and ICMPv6: type, code, checksum, and four bytes whose meaning depends on the type.
//!
//! The protocols differ in the meaning of type and code, which [`IcmpKind`] describes, and in the bytes that the checksum
//! covers; the file of each protocol adds both.

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

/// The messages of one protocol, by type and code.
pub trait IcmpKind: Copy + PartialEq + Sized + 'static {
    /// The protocol's name in errors.
    const PROTOCOL: &'static str;
    /// All messages with a name, their types and codes.
    const NAMED: &'static [(Self, u8, u8)];

    /// A message without a name.
    fn other(kind: u8, code: u8) -> Self;

    /// Type and code of a message without a name.
    fn other_numbers(self) -> (u8, u8);

    /// Type and code.
    fn type_and_code(self) -> (u8, u8) {
        let named = Self::NAMED.iter().find(|(named, ..)| *named == self);
        named.map_or_else(|| self.other_numbers(), |(_, kind, code)| (*kind, *code))
    }

    /// The message with this type and code.
    fn from_type_and_code(kind: u8, code: u8) -> Self {
        let named = Self::NAMED.iter().find(|(_, named, of)| (*named, *of) == (kind, code));
        named.map_or_else(|| Self::other(kind, code), |(named, ..)| *named)
    }
}

/// A view of a message from its header on; `K` is the protocol.
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

    /// The kind of message, by type and code.
    pub fn kind(&self) -> K {
        let bytes = self.bytes.as_ref();
        K::from_type_and_code(TYPE.number(bytes), CODE.number(bytes))
    }

    /// The identifier of an echo message.
    pub fn identifier(&self) -> u16 {
        IDENTIFIER.number(self.bytes.as_ref())
    }

    /// The sequence number of an echo message.
    pub fn sequence(&self) -> u16 {
        SEQUENCE.number(self.bytes.as_ref())
    }

    /// The four bytes after the checksum.
    pub fn rest(&self) -> u32 {
        REST.number(self.bytes.as_ref())
    }

    /// The data of an echo message, or the quoted packet of an error.
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

    /// Sets the four bytes after the checksum: an MTU, a pointer, flags, or 0 where they are unused.
    pub fn set_rest(&mut self, value: u32) {
        REST.set_number(self.bytes.as_mut(), value);
    }

    pub(super) fn set_checksum(&mut self, value: u16) {
        CHECKSUM.set_number(self.bytes.as_mut(), value);
    }
}

/// Checks that every type and code survives the conversion to a message and back.
#[cfg(test)]
pub(super) fn check_numbers<K: IcmpKind>() {
    for kind in 0..=u8::MAX {
        for code in 0..=u8::MAX {
            assert_eq!(K::from_type_and_code(kind, code).type_and_code(), (kind, code));
        }
    }
}
