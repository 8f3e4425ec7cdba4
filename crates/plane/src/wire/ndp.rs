//! Messages of neighbour discovery (RFC 4861), after the ICMPv6 header.

use super::ethernet::Mac;
use super::icmp_message::IcmpKind;
use super::icmpv6::{HEADER, Icmpv6Kind, Icmpv6Message};
use super::{Field, Malformed, check_len};

/// The hop limit of every message; a message from beyond the link would have a smaller one.
pub const HOP_LIMIT: u8 = 255;
/// The group of all nodes on the link.
pub const ALL_NODES: u128 = 0xff02 << 112 | 1;
/// The group of all routers on the link.
pub const ALL_ROUTERS: u128 = 0xff02 << 112 | 2;

/// Flag of an advertisement: the sender is a router.
pub const ROUTER: u32 = 1 << 31;
/// Flag of an advertisement: it answers a solicitation.
pub const SOLICITED: u32 = 1 << 30;
/// Flag of an advertisement: it replaces a cached address.
pub const OVERRIDE: u32 = 1 << 29;

const TARGET: Field<16> = Field(HEADER);
const TARGET_END: usize = HEADER + 16;
const REDIRECT_DESTINATION: Field<16> = Field(TARGET_END);
const REDIRECT_END: usize = TARGET_END + 16;
const ADVERTISEMENT_END: usize = 16;

/// Options with a MAC address, by its owner; a router may ignore the other options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LinkAddress {
    /// The MAC address of the sender.
    Source = 1,
    /// The MAC address of the target.
    Target = 2,
}

/// The solicited-node group of an address (RFC 4291, section 2.7.1).
pub const fn solicited_node(addr: u128) -> u128 {
    0xff02 << 112 | 0x01_ff00_0000 | addr & 0x00ff_ffff
}

/// The MAC address of a group (RFC 2464, section 7).
pub const fn group_mac(group: u128) -> Mac {
    let [a, b, c, d] = (group as u32).to_be_bytes();
    Mac([0x33, 0x33, a, b, c, d])
}

/// The target of a solicitation, an advertisement or a redirect, whose length and options must be correct
/// (sections 7.1.1 and 7.1.2).
pub fn target(message: &[u8]) -> Result<u128, Malformed> {
    check_len("neighbour discovery", message, TARGET_END)?;
    check_options(&message[TARGET_END..])?;
    Ok(TARGET.number(message))
}

/// The MAC address in an option of a solicitation or an advertisement.
pub fn link_address(message: &[u8], whose: LinkAddress) -> Option<Mac> {
    find(message.get(TARGET_END..)?, whose)
}

/// The sender's MAC address in a router solicitation, if it has the option.
pub fn solicitation_source(message: &[u8]) -> Result<Option<Mac>, Malformed> {
    check_len("router solicitation", message, HEADER)?;
    check_options(&message[HEADER..])?;
    Ok(find(&message[HEADER..], LinkAddress::Source))
}

fn find(options: &[u8], whose: LinkAddress) -> Option<Mac> {
    let option = Options(options).flatten().find(|option| option[0] == whose as u8 && option.len() == 8)?;
    Some(Mac(Field::<6>(2).get(option)))
}

fn check_options(bytes: &[u8]) -> Result<(), Malformed> {
    Options(bytes).try_for_each(|option| option.map(|_| ()))
}

/// Iterates over options; a damaged option is the last item.
struct Options<'a>(&'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = Result<&'a [u8], Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let have = self.0.len();
        let found = match self.0 {
            [] => return None,
            [_, units, ..] => usize::from(*units) * 8,
            [_] => 0,
        };
        if found == 0 || found > have {
            self.0 = &[];
            return Some(Err(Malformed::TotalLength { header: "neighbour discovery option", found, have }));
        }
        let (option, rest) = self.0.split_at(found);
        self.0 = rest;
        Some(Ok(option))
    }
}

/// Builds a message; the caller fills in its checksum.
pub struct Builder(Vec<u8>);

impl Builder {
    /// A solicitation for or an advertisement of `target`, with the four bytes after the checksum.
    pub fn neighbor(kind: Icmpv6Kind, rest: u32, target: u128) -> Builder {
        let mut builder = Builder::new(kind, rest, TARGET_END);
        TARGET.set_number(&mut builder.0, target);
        builder
    }

    /// A redirect: `destination` is better reached by `target`.
    pub fn redirect(target: u128, destination: u128) -> Builder {
        let mut builder = Builder::new(Icmpv6Kind::Redirect, 0, REDIRECT_END);
        TARGET.set_number(&mut builder.0, target);
        REDIRECT_DESTINATION.set_number(&mut builder.0, destination);
        builder
    }

    /// A router's advertisement: hop limit that hosts should use, flags, and for how many seconds it may be their
    /// default router.
    pub fn router(hop_limit: u8, flags: u8, lifetime: u16) -> Builder {
        let [high, low] = lifetime.to_be_bytes();
        let rest = u32::from_be_bytes([hop_limit, flags, high, low]);
        Builder::new(Icmpv6Kind::RouterAdvertisement, rest, ADVERTISEMENT_END)
    }

    fn new(kind: Icmpv6Kind, rest: u32, len: usize) -> Builder {
        let mut bytes = vec![0; len];
        let mut message = Icmpv6Message::new_unchecked(&mut bytes);
        debug_assert!(kind.type_and_code().0 >= 133);
        message.set_kind(kind);
        message.set_rest(rest);
        Builder(bytes)
    }

    /// Adds a MAC address.
    pub fn link_address(mut self, whose: LinkAddress, mac: Mac) -> Builder {
        self.0.extend([whose as u8, 1]);
        self.0.extend(mac.0);
        self
    }

    /// Adds the MTU of the link.
    pub fn mtu(mut self, mtu: u32) -> Builder {
        self.0.extend([5, 1, 0, 0]);
        self.0.extend(mtu.to_be_bytes());
        self
    }

    /// Adds a prefix that is on the link and that hosts may take addresses from, with its two lifetimes in seconds.
    pub fn prefix(mut self, first: u128, len: u8, valid: u32, preferred: u32) -> Builder {
        const ON_LINK_AND_AUTONOMOUS: u8 = 0xc0;
        self.0.extend([3, 4, len, ON_LINK_AND_AUTONOMOUS]);
        self.0.extend(valid.to_be_bytes());
        self.0.extend(preferred.to_be_bytes());
        self.0.extend([0; 4]);
        self.0.extend(first.to_be_bytes());
        self
    }

    /// Adds as much of the packet a redirect is about as fits into a message of `longest` bytes, in whole units of
    /// eight bytes.
    pub fn redirected(mut self, packet: &[u8], longest: usize) -> Builder {
        const HEADER: usize = 8;
        const MOST_UNITS: usize = 254;
        let room = longest.saturating_sub(self.0.len() + HEADER);
        let units = (packet.len().min(room) / 8).min(MOST_UNITS);
        self.0.extend([4, (units + 1) as u8, 0, 0, 0, 0, 0, 0]);
        self.0.extend(&packet[..units * 8]);
        self
    }

    /// The message.
    pub fn build(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: u128 = 0x2001_0db8 << 96 | 0x12_3456;

    #[test]
    fn groups_follow_from_addresses() {
        assert_eq!(solicited_node(ADDRESS), 0xff02 << 112 | 0x0001_ff12_3456);
        assert_eq!(group_mac(solicited_node(ADDRESS)), Mac([0x33, 0x33, 0xff, 0x12, 0x34, 0x56]));
        assert_eq!(group_mac(ALL_NODES), Mac([0x33, 0x33, 0, 0, 0, 1]));
    }

    #[test]
    fn what_is_built_is_read_back() {
        let mac = Mac([2, 0, 0, 0, 0, 7]);
        let built = Builder::neighbor(Icmpv6Kind::NeighborAdvertisement, SOLICITED | OVERRIDE, ADDRESS);
        let built = built.mtu(1500).link_address(LinkAddress::Target, mac).build();
        assert_eq!(target(&built), Ok(ADDRESS));
        assert_eq!(link_address(&built, LinkAddress::Target), Some(mac));
        assert_eq!(link_address(&built, LinkAddress::Source), None);
        assert_eq!(Icmpv6Message::new_unchecked(&built[..]).rest(), SOLICITED | OVERRIDE);
        let solicitation = [&[133, 0, 0, 0, 0, 0, 0, 0, 1, 1][..], &mac.0].concat();
        assert_eq!(solicitation_source(&solicitation), Ok(Some(mac)));
    }

    #[test]
    fn damaged_options_refuse_the_message() {
        let built = Builder::neighbor(Icmpv6Kind::NeighborSolicitation, 0, ADDRESS).mtu(1500).build();
        for units in [0, 2] {
            let mut damaged = built.clone();
            damaged[TARGET_END + 1] = units;
            assert!(target(&damaged).is_err(), "an option of {units} units where there is room for one");
        }
        assert!(target(&built[..TARGET_END + 1]).is_err() && target(&built[..TARGET_END - 1]).is_err());
    }

    #[test]
    fn a_redirect_quotes_whole_units() {
        let quoting = |packet: &[u8], longest| {
            let built = Builder::redirect(1, 2).redirected(packet, longest).build();
            assert_eq!(built[REDIRECT_END], 4);
            (built.len() - REDIRECT_END, built[REDIRECT_END + 1])
        };
        assert_eq!([quoting(&[9; 48], 1240), quoting(&[9; 55], 1240)], [(56, 7); 2]);
        assert_eq!(quoting(&[9; 2000], REDIRECT_END + 30), (24, 3));
        assert_eq!(quoting(&[9; 4000], 9000), (255 * 8, 255));
        assert_eq!(quoting(&[9; 48], 0), (8, 1));
        assert_eq!(
            Builder::router(64, 0, 1800).prefix(ADDRESS, 64, 2, 1).build().len(),
            ADVERTISEMENT_END + 32
        );
    }
}
