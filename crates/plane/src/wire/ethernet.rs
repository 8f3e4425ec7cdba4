//! Ethernet II frames, with at most one IEEE 802.1Q tag.

use std::fmt::{self, Display};
use std::str::FromStr;

use super::{Field, Malformed, check_len};

/// Bytes before the payload of an untagged frame.
pub const HEADER: usize = 14;
/// Bytes an 802.1Q tag adds.
pub const TAG: usize = 4;
/// The smallest frame on a wire, without the FCS.
pub const MIN_FRAME: usize = 60;

const DESTINATION: Field<6> = Field(0);
const SOURCE: Field<6> = Field(6);
const ETHERTYPE: Field<2> = Field(12);
const TAG_CONTROL: Field<2> = Field(14);
const TAGGED_ETHERTYPE: Field<2> = Field(16);

/// A MAC address, in the order of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The broadcast address.
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// Whether this is a multicast or the broadcast address: the first bit on the wire.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Text that is not a MAC address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a MAC address: write six two-digit hexadecimal numbers with colons, as 02:00:00:00:00:01"
)]
pub struct MacParseError(String);

impl FromStr for Mac {
    type Err = MacParseError;

    fn from_str(text: &str) -> Result<Mac, MacParseError> {
        parse_mac(text).ok_or_else(|| MacParseError(text.to_owned()))
    }
}

fn parse_mac(text: &str) -> Option<Mac> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let digits = parts.next().filter(|part| part.len() == 2 && !part.starts_with('+'))?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    parts.next().is_none().then_some(Mac(mac))
}

/// The protocol of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: EtherType = EtherType(0x0800);
    /// ARP.
    pub const ARP: EtherType = EtherType(0x0806);
    /// An 802.1Q tag, which the type of the payload follows.
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IPv6.
    pub const IPV6: EtherType = EtherType(0x86dd);
}

/// A view of a frame without preamble and FCS.
#[derive(Clone, Copy, Debug)]
pub struct Frame<T>(T);

impl<T: AsRef<[u8]>> Frame<T> {
    /// A view whose accessors panic where `bytes` is too short: 14 bytes, 18 if tagged.
    #[inline(always)]
    pub const fn new_unchecked(bytes: T) -> Frame<T> {
        Frame(bytes)
    }

    /// A view none of whose accessors can panic.
    pub fn new_checked(bytes: T) -> Result<Frame<T>, Malformed> {
        check_len("Ethernet", bytes.as_ref(), HEADER)?;
        let frame = Frame(bytes);
        check_len("Ethernet with a VLAN tag", frame.0.as_ref(), frame.header_len())?;
        Ok(frame)
    }

    /// The destination address.
    #[inline(always)]
    pub fn destination(&self) -> Mac {
        Mac(DESTINATION.get(self.0.as_ref()))
    }

    /// The source address.
    #[inline(always)]
    pub fn source(&self) -> Mac {
        Mac(SOURCE.get(self.0.as_ref()))
    }

    /// The type field that follows the addresses: [`EtherType::VLAN`] if there is a tag.
    #[inline(always)]
    pub fn outer_ethertype(&self) -> EtherType {
        EtherType(ETHERTYPE.number(self.0.as_ref()))
    }

    /// Whether there is an 802.1Q tag.
    #[inline(always)]
    pub fn is_tagged(&self) -> bool {
        self.outer_ethertype() == EtherType::VLAN
    }

    /// The tag's control word, if there is a tag: priority (3 bits), drop eligible (1), VLAN (12).
    pub fn tag_control(&self) -> Option<u16> {
        self.is_tagged().then(|| TAG_CONTROL.number(self.0.as_ref()))
    }

    /// The VLAN, if there is a tag. 0 is no VLAN: such a tag carries a priority only.
    pub fn vlan(&self) -> Option<u16> {
        self.tag_control().map(|control| control & 0x0fff)
    }

    /// The protocol of the payload, after the tag if there is one.
    pub fn ethertype(&self) -> EtherType {
        if self.is_tagged() {
            EtherType(TAGGED_ETHERTYPE.number(self.0.as_ref()))
        } else {
            self.outer_ethertype()
        }
    }

    /// Bytes before the payload.
    pub fn header_len(&self) -> usize {
        if self.is_tagged() { HEADER + TAG } else { HEADER }
    }

    /// The payload, padding included.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[self.header_len()..]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Frame<T> {
    /// Sets the destination address.
    #[inline(always)]
    pub fn set_destination(&mut self, mac: Mac) {
        DESTINATION.set(self.0.as_mut(), mac.0);
    }

    /// Sets the source address.
    #[inline(always)]
    pub fn set_source(&mut self, mac: Mac) {
        SOURCE.set(self.0.as_mut(), mac.0);
    }

    /// Sets the type field that follows the addresses.
    #[inline(always)]
    pub fn set_outer_ethertype(&mut self, ethertype: EtherType) {
        ETHERTYPE.set_number(self.0.as_mut(), ethertype.0);
    }

    /// Writes a tag over the 4 bytes after the addresses: [`EtherType::VLAN`] and `control`. The caller has put the type of
    /// the payload after them.
    pub fn set_tag(&mut self, control: u16) {
        self.set_outer_ethertype(EtherType::VLAN);
        TAG_CONTROL.set_number(self.0.as_mut(), control);
    }

    /// The payload, to change in place.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let start = self.header_len();
        &mut self.0.as_mut()[start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macs_print_as_they_are_written() {
        let mac: Mac = "02:00:5e:10:00:Ff".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:5e:10:00:ff");
        assert!(!mac.is_group() && Mac::BROADCAST.is_group());
        for bad in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "2:0:0:0:0:1",
            "+2:00:00:00:00:01",
            "0g:00:00:00:00:00",
        ] {
            let error = bad.parse::<Mac>().unwrap_err().to_string();
            assert!(error.contains("six two-digit"), "{error}");
        }
    }

    #[test]
    fn tags_are_seen_and_skipped() {
        let mut bytes = [0; 20];
        bytes[12..20].copy_from_slice(&[0x81, 0x00, 0xa0, 0x64, 0x08, 0x00, 7, 8]);
        let frame = Frame::new_checked(&bytes[..]).unwrap();
        assert_eq!(
            (frame.vlan(), frame.ethertype(), frame.payload()),
            (Some(100), EtherType::IPV4, &[7, 8][..])
        );
        assert!(Frame::new_checked(&bytes[..17]).is_err(), "the tag is truncated");
        assert!(Frame::new_checked(&bytes[..13]).is_err());
    }

    #[test]
    fn what_is_set_is_read_back() {
        let mut bytes = [0; 18];
        let mut frame = Frame::new_checked(&mut bytes[..]).unwrap();
        frame.set_destination(Mac([1; 6]));
        frame.set_source(Mac([2; 6]));
        frame.set_outer_ethertype(EtherType::IPV6);
        assert_eq!((frame.destination(), frame.source()), (Mac([1; 6]), Mac([2; 6])));
        assert_eq!((frame.ethertype(), frame.payload_mut().len()), (EtherType::IPV6, 4));
    }
}
