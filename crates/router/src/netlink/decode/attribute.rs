//! Attributes: length, type, value, padding; nothing is trusted about any of them.

use crate::netlink::uapi;

/// The attributes of a message one after the other. It ends where the rest is no attribute.
#[derive(Clone, Copy)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (len, kind) = (u16_at(self.0, 0)?, u16_at(self.0, 2)?);
        let value = self.0.get(4..usize::from(len))?;
        self.0 = self.0.get(usize::from(len).next_multiple_of(4)..).unwrap_or_default();
        Some((kind & uapi::NLA_TYPE_MASK, value))
    }
}

impl<'a> Attributes<'a> {
    /// The value of the first attribute of this type.
    pub fn get(self, kind: u16) -> Option<&'a [u8]> {
        self.into_iter().find_map(|(found, value)| (found == kind).then_some(value))
    }

    /// A 32-bit number.
    pub fn u32(self, kind: u16) -> Option<u32> {
        u32_at(self.get(kind)?, 0)
    }

    /// A 16-bit number.
    pub fn u16(self, kind: u16) -> Option<u16> {
        u16_at(self.get(kind)?, 0)
    }

    /// Attributes within one.
    pub fn nested(self, kind: u16) -> Option<Attributes<'a>> {
        self.get(kind).map(Attributes)
    }
}

/// A byte of the message.
pub fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// A number in the machine's byte order, as the kernel writes them.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// As [`u16_at`].
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
