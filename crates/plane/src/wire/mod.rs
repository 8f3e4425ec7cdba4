//! Wire formats: views over bytes, one protocol a file.
//!
//! A view judges nothing but its own length: `new_checked` promises that no accessor can reach beyond the bytes, and
//! that is all. What a value means, and whether it may be forwarded, is for [`crate::forward`] to say. Each file names
//! every field of its header once, so that no offset appears twice.

pub mod arp;
pub mod checksum;
pub mod ethernet;
pub mod extension;
pub mod icmp;
pub mod icmp_message;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod ndp;
pub mod transport;
pub mod udp;

/// Why bytes cannot be viewed as a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Fewer bytes than the fixed part of the header.
    #[error("{header}: {have} bytes, its header takes {need}")]
    TooShort {
        /// Of which protocol.
        header: &'static str,
        /// Bytes there are.
        have: usize,
        /// Bytes the header needs.
        need: usize,
    },
    /// The version field holds another protocol's number.
    #[error("{header}: version field is {found}")]
    Version {
        /// Of which protocol.
        header: &'static str,
        /// What the field holds.
        found: u8,
    },
    /// The header's own length field is below its minimum or beyond the bytes.
    #[error("{header}: header length field says {found} bytes of {have}")]
    HeaderLength {
        /// Of which protocol.
        header: &'static str,
        /// What the field says, in bytes.
        found: usize,
        /// Bytes there are.
        have: usize,
    },
    /// The length of header and payload together is below the header's or beyond the bytes.
    #[error("{header}: length field says {found} bytes of {have}")]
    TotalLength {
        /// Of which protocol.
        header: &'static str,
        /// What the field says, in bytes.
        found: usize,
        /// Bytes there are.
        have: usize,
    },
}

/// Where a field of `N` bytes lies. Reading one at a constant offset of an array costs no bounds check.
#[derive(Clone, Copy)]
pub(crate) struct Field<const N: usize>(pub usize);

impl<const N: usize> Field<N> {
    #[inline(always)]
    pub fn get(self, bytes: &[u8]) -> [u8; N] {
        let mut value = [0; N];
        value.copy_from_slice(&bytes[self.0..self.0 + N]);
        value
    }

    #[inline(always)]
    pub fn set(self, bytes: &mut [u8], value: [u8; N]) {
        bytes[self.0..self.0 + N].copy_from_slice(&value);
    }
}

/// A field as the unsigned number it holds in network byte order.
macro_rules! number {
    ($width:literal, $number:ident) => {
        impl Field<$width> {
            #[inline(always)]
            pub fn number(self, bytes: &[u8]) -> $number {
                $number::from_be_bytes(self.get(bytes))
            }

            #[inline(always)]
            pub fn set_number(self, bytes: &mut [u8], value: $number) {
                self.set(bytes, value.to_be_bytes());
            }
        }
    };
}

number!(1, u8);
number!(2, u16);
number!(4, u32);
number!(16, u128);

/// `Ok` if `bytes` holds the fixed part of a header.
fn check_len(header: &'static str, bytes: &[u8], need: usize) -> Result<(), Malformed> {
    if bytes.len() < need {
        return Err(Malformed::TooShort { header, have: bytes.len(), need });
    }
    Ok(())
}
