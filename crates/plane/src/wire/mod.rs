//! Wire formats: views of bytes, one protocol per file.
//!
//! A view checks only its own lengths: `new_checked` guarantees that no accessor reads beyond the bytes. The forwarding
//! path decides what a value means and whether a packet may be forwarded. Each file defines every field of its header
//! once, so that no offset appears twice.

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
pub mod sctp;
pub mod tcp;
pub mod transport;
pub mod udp;

/// Why bytes cannot be viewed as a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// There are fewer bytes than the fixed part of the header needs.
    #[error("{header}: {have} bytes, its header takes {need}")]
    TooShort {
        /// The protocol.
        header: &'static str,
        /// Bytes available.
        have: usize,
        /// Bytes the header needs.
        need: usize,
    },
    /// The version field has another protocol's number.
    #[error("{header}: version field is {found}")]
    Version {
        /// The protocol.
        header: &'static str,
        /// The value of the field.
        found: u8,
    },
    /// The header's own length field is below its minimum or beyond the bytes.
    #[error("{header}: header length field says {found} bytes of {have}")]
    HeaderLength {
        /// The protocol.
        header: &'static str,
        /// The value of the field in bytes.
        found: usize,
        /// Bytes available.
        have: usize,
    },
    /// The length of header and payload together is below the header's or beyond the bytes.
    #[error("{header}: length field says {found} bytes of {have}")]
    TotalLength {
        /// The protocol.
        header: &'static str,
        /// The value of the field in bytes.
        found: usize,
        /// Bytes available.
        have: usize,
    },
}

/// A field of `N` bytes at an offset. Reading it at a constant offset of an array needs no bounds check.
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

/// Accessors for a field that holds an unsigned number in network byte order.
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

/// Checks that `bytes` holds the fixed part of a header.
fn check_len(header: &'static str, bytes: &[u8], need: usize) -> Result<(), Malformed> {
    if bytes.len() < need {
        return Err(Malformed::TooShort { header, have: bytes.len(), need });
    }
    Ok(())
}
