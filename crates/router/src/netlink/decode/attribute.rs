//! Messages and attributes, one after the other. The iterators end where the rest is damaged; an attribute that cannot
//! be parsed is skipped alone. The messages of `netlink-packet-route` would reject everything for one odd attribute,
//! and a newer kernel may send attributes in a form that the library does not know.

use std::net::IpAddr;

use netlink_packet_core::{NetlinkBuffer, NlaBuffer, NlasIterator, parse_u16, parse_u32};

/// An attribute: its type and its value.
pub(crate) type Attribute<'a> = NlaBuffer<&'a [u8]>;

/// The messages of what one call received.
#[derive(Clone, Copy)]
pub struct Messages<'a>(pub &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = NetlinkBuffer<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let message = NetlinkBuffer::new_checked(self.0).ok()?;
        let len = usize::try_from(message.length()).ok()?;
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    }
}

/// The attributes behind a header of `header` bytes; `None` if the message is shorter than that.
pub(crate) fn attributes(body: &[u8], header: usize) -> Option<impl Iterator<Item = Attribute<'_>> + Clone> {
    Some(nested(body.get(header..)?))
}

/// The attributes within the value of one.
pub(crate) fn nested(value: &[u8]) -> impl Iterator<Item = Attribute<'_>> + Clone {
    NlasIterator::new(value).map_while(Result::ok)
}

/// The first attribute of this type.
pub(super) fn find<'a>(attributes: &impl Attributes<'a>, kind: u16) -> Option<Attribute<'a>> {
    attributes.clone().find(|attribute| attribute.kind() == kind)
}

/// A 32-bit number.
pub(super) fn find_u32<'a>(attributes: &impl Attributes<'a>, kind: u16) -> Option<u32> {
    parse_u32(find(attributes, kind)?.value()).ok()
}

/// A 16-bit number.
pub(super) fn find_u16<'a>(attributes: &impl Attributes<'a>, kind: u16) -> Option<u16> {
    parse_u16(find(attributes, kind)?.value()).ok()
}

/// The value of the first attribute of this type.
pub(crate) fn find_value<'a>(attributes: &impl Attributes<'a>, kind: u16) -> Option<&'a [u8]> {
    find(attributes, kind).map(value)
}

/// The value, which lives as long as the message.
pub(super) fn value(attribute: Attribute<'_>) -> &[u8] {
    let end = usize::from(attribute.length());
    attribute.into_inner().get(4..end).unwrap_or_default()
}

/// Attributes that can be searched more than once.
pub(crate) trait Attributes<'a>: Iterator<Item = Attribute<'a>> + Clone {}
impl<'a, I: Iterator<Item = Attribute<'a>> + Clone> Attributes<'a> for I {}

/// An address of the family that its length implies.
pub(super) fn ip(value: &[u8]) -> Option<IpAddr> {
    let inet = <[u8; 4]>::try_from(value).map(IpAddr::from);
    inet.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from)).ok()
}

/// The name of a link, which may be any bytes up to the first zero.
pub(crate) fn name(value: &[u8]) -> String {
    String::from_utf8_lossy(value.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}
