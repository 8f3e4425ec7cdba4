//! The messages in what one `recv` brought.

use super::attribute::{u16_at, u32_at};

/// `struct nlmsghdr` and what stands behind it.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its type (`RTM_`, `NLMSG_`).
    pub kind: u16,
    /// `NLM_F_`.
    pub flags: u16,
    /// Of the request it answers.
    pub sequence: u32,
    /// Without the header.
    pub body: &'a [u8],
}

/// Bytes of the header.
const HEADER: usize = 16;

/// One message after the other. It ends where the rest is none.
#[derive(Clone, Copy)]
pub struct Messages<'a>(pub &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let len = usize::try_from(u32_at(self.0, 0)?).ok()?;
        let body = self.0.get(HEADER..len)?;
        let message = Message {
            kind: u16_at(self.0, 4)?,
            flags: u16_at(self.0, 6)?,
            sequence: u32_at(self.0, 8)?,
            body,
        };
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    }
}
