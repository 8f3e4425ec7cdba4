//! Prefixes, canonical by construction: no bit is set beyond the length.
#![deny(clippy::indexing_slicing, clippy::string_slice)] // prefixes are parsed from untrusted text

use std::fmt::{self, Debug, Display};
use std::str::FromStr;

use crate::addr::Address;

/// A network prefix, for example `198.18.0.0/16`. Prefixes are ordered by address, then shorter first; a walk in this
/// order meets every prefix before the ones that it covers.
///
/// ```
/// use fullview_table::{Address, Prefix};
///
/// let prefix: Prefix<u32> = "198.18.0.0/15".parse()?;
/// assert!(prefix.contains(0xc613_ffff) && !prefix.contains(0xc614_0000));
/// assert_eq!((prefix.len(), prefix.last().to_ip().to_string()), (15, "198.19.255.255".to_owned()));
/// // Text with bits beyond the length is refused; `containing` cuts them off.
/// assert!("198.18.0.1/15".parse::<Prefix<u32>>().is_err());
/// assert_eq!(Prefix::containing(0xc612_0001, 15), prefix);
/// # Ok::<(), fullview_table::prefix::PrefixError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix<A> {
    addr: A,
    len: u8,
}

/// Why some text is not a prefix. The message names the correct form, where that is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// No `/`, or nothing on one side of it.
    #[error("{0:?} is not a prefix: write address/length, for example 198.18.0.0/16 or 2001:2::/48")]
    Form(String),
    /// The part before the slash is not an address of the expected family.
    #[error("{text:?} is not an {family} address")]
    Address {
        /// The text found.
        text: String,
        /// The family expected.
        family: crate::addr::Family,
    },
    /// The part after the slash is not a number from 0 to the width of the address.
    #[error("prefix length {text:?} is not a number from 0 to {max}")]
    Length {
        /// The text found.
        text: String,
        /// The width of an address: 32 or 128.
        max: u8,
    },
    /// Bits are set beyond the length.
    #[error("{given} has bits set beyond its length; the prefix that contains it is {canonical}")]
    HostBits {
        /// The text as given.
        given: String,
        /// The canonical form.
        canonical: String,
    },
}

impl<A: Address> Prefix<A> {
    /// The prefix of all addresses.
    pub const fn default_route() -> Self
    where
        A: num_traits::ConstZero,
    {
        Prefix { addr: A::ZERO, len: 0 }
    }

    /// The prefix if `len` fits the family and no bit beyond it is set.
    pub fn new(addr: A, len: u8) -> Option<Self> {
        (len <= A::BITS && addr & A::mask(len) == addr).then_some(Prefix { addr, len })
    }

    /// The prefix of length `len` (cut to the family's width) that contains `addr`.
    pub fn containing(addr: A, len: u8) -> Self {
        Prefix { addr: addr & A::mask(len), len: len.min(A::BITS) }
    }

    /// The prefix that contains one address only.
    pub fn host(addr: A) -> Self {
        Prefix { addr, len: A::BITS }
    }

    /// The lowest address: the network address.
    pub fn first(self) -> A {
        self.addr
    }

    /// The highest address.
    pub fn last(self) -> A {
        self.addr | !A::mask(self.len)
    }

    /// The number of significant bits.
    #[allow(clippy::len_without_is_empty)] // a prefix length, not a count of items
    pub fn len(self) -> u8 {
        self.len
    }

    /// Whether `addr` lies in this prefix.
    pub fn contains(self, addr: A) -> bool {
        addr & A::mask(self.len) == self.addr
    }

    /// Whether every address of `other` lies in this prefix (a prefix covers itself).
    pub fn covers(self, other: Self) -> bool {
        self.len <= other.len && self.contains(other.addr)
    }

    /// The prefix one bit shorter; `None` for the default route.
    pub fn parent(self) -> Option<Self> {
        self.len.checked_sub(1).map(|len| Prefix::containing(self.addr, len))
    }

    /// The other half of the parent, if that is the upper one.
    pub(crate) fn right_of(self) -> Option<Self> {
        let beside = Prefix::containing(self.last().checked_add(&A::one())?, self.len);
        (beside.parent() == self.parent()).then_some(beside)
    }
}

impl<A: Address> Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr.to_ip(), self.len)
    }
}

impl<A: Address> Debug for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl<A: Address> FromStr for Prefix<A> {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (addr, len) = text.split_once('/').ok_or_else(|| PrefixError::Form(text.into()))?;
        let ip = addr
            .parse::<A::Ip>()
            .map_err(|_| PrefixError::Address { text: addr.into(), family: A::FAMILY })?;
        let len = parse_length::<A>(len)?;
        let addr = A::from_ip(ip);
        Prefix::new(addr, len).ok_or_else(|| PrefixError::HostBits {
            given: text.into(),
            canonical: Prefix::containing(addr, len).to_string(),
        })
    }
}

/// Accepts digits only; `str::parse` would also accept a sign.
fn parse_length<A: Address>(text: &str) -> Result<u8, PrefixError> {
    let error = || PrefixError::Length { text: text.into(), max: A::BITS };
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(error());
    }
    text.parse::<u8>().ok().filter(|len| *len <= A::BITS).ok_or_else(error)
}

/// Makes [`Prefix`] a key of `prefix_trie::PrefixMap`.
impl<A: Address> prefix_trie::Prefix for Prefix<A> {
    type R = A;

    fn repr(&self) -> A {
        self.addr
    }
    fn prefix_len(&self) -> u8 {
        self.len
    }
    fn from_repr_len(repr: A, len: u8) -> Self {
        Prefix::containing(repr, len)
    }
    fn mask(&self) -> A {
        self.addr
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_bits_are_refused_and_the_canonical_form_is_offered() {
        let error = "10.0.0.1/8".parse::<Prefix<u32>>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "10.0.0.1/8 has bits set beyond its length; the prefix that contains it is 10.0.0.0/8"
        );
    }

    #[test]
    fn lengths_are_digits_within_the_family() {
        for bad in ["10.0.0.0/33", "10.0.0.0/+8", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/256", "10.0.0.0/8/8"]
        {
            assert!(bad.parse::<Prefix<u32>>().is_err(), "{bad}");
        }
        assert!("::/129".parse::<Prefix<u128>>().is_err());
        assert!("::/0".parse::<Prefix<u128>>().is_ok());
    }

    #[test]
    fn edges() {
        let prefix: Prefix<u32> = "198.18.0.0/15".parse().unwrap();
        assert_eq!(prefix.last().to_ip().to_string(), "198.19.255.255");
        assert!(prefix.covers("198.19.0.0/16".parse().unwrap()));
        assert!(!prefix.covers("198.0.0.0/8".parse().unwrap()));
        assert_eq!(prefix.parent().unwrap().to_string(), "198.16.0.0/14");
        let all = Prefix::<u128>::default_route();
        assert_eq!((all.first(), all.last(), all.parent()), (0, u128::MAX, None));
    }
}
