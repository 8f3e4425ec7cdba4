//! Numbers in the bytes that two processes exchange, in little-endian order.

/// The fields that are left of some bytes. Each call takes the next one; `None` if there are too few bytes.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub fn u128(&mut self) -> Option<u128> {
        self.take().map(u128::from_le_bytes)
    }

    /// All that is left, as text.
    pub fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.0).ok()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fails if anything is left.
    pub fn end(self) -> Option<()> {
        self.is_empty().then_some(())
    }
}

/// Bytes that fields are added to.
pub trait PutFields {
    fn put<const N: usize>(&mut self, field: [u8; N]);
}

impl PutFields for Vec<u8> {
    #[inline]
    fn put<const N: usize>(&mut self, field: [u8; N]) {
        self.extend_from_slice(&field);
    }
}
