//! What the drivers of interfaces can do for XDP programs, asked from the kernel by generic netlink (family `netdev`, Linux
//! 6.3 and newer).

use std::io;

use netlink_packet_core::{NlaBuffer, NlasIterator, parse_u16, parse_u32, parse_u64};
use netlink_sys::protocols::NETLINK_GENERIC;
use netlink_sys::{Socket, SocketAddr};

use crate::route::LinkIndex;

/// linux/genetlink.h: the family that lists families, its command and its attributes.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const FAMILY_GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;

/// linux/netdev.h: the family, its group of notifications, its command and its attributes.
const NETDEV: &[u8] = b"netdev\0";
const NOTIFICATIONS: &[u8] = b"mgmt\0";
const GET_DEVICE: u8 = 1;
const INDEX: u16 = 1;
const FEATURES: u16 = 3;
const METADATA: u16 = 5;

/// `NETDEV_XDP_ACT_REDIRECT`, `NETDEV_XDP_ACT_NDO_XMIT`, `NETDEV_XDP_ACT_NDO_XMIT_SG`, `NETDEV_XDP_RX_METADATA_VLAN_TAG`.
const SENDS_REDIRECTED: u64 = 1 << 1;
const TAKES_REDIRECTED: u64 = 1 << 2;
const TAKES_MULTI_BUFFER: u64 = 1 << 6;
const TELLS_TAGS: u64 = 1 << 2;

/// Bytes of a netlink message and of a generic message before the attributes.
const HEADERS: usize = 16 + 4;
/// Bytes for what one call receives.
const BUFFER: usize = 16 << 10;

/// What a driver can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpFeatures {
    /// It sends frames that it received to other devices.
    pub sends_redirected: bool,
    /// It takes frames that other devices received.
    pub takes_redirected: bool,
    /// It takes them also if they are in several buffers.
    pub takes_multi_buffer: bool,
    /// It tells programs the VLAN tags that it stripped.
    pub tells_tags: bool,
}

impl XdpFeatures {
    /// What is assumed where the kernel does not know.
    pub const UNKNOWN: XdpFeatures = XdpFeatures {
        sends_redirected: true,
        takes_redirected: true,
        takes_multi_buffer: false,
        tells_tags: false,
    };
}

/// Asks the kernel about drivers, and notices when their features change.
pub struct FeatureReader(Option<NetdevFamily>);

struct NetdevFamily {
    number: u16,
    requests: Socket,
    notifications: Socket,
}

impl FeatureReader {
    /// Older kernels have no such family: all their drivers are assumed to be able.
    pub fn open() -> FeatureReader {
        FeatureReader(NetdevFamily::open().ok().flatten())
    }

    /// The present features of a device; `None` if the kernel does not know.
    pub fn known(&self, device: LinkIndex) -> Option<XdpFeatures> {
        self.0.as_ref().and_then(|family| family.features(device).ok().flatten())
    }

    /// Whether features may have changed since the last call.
    pub fn have_changed(&self) -> bool {
        let Some(family) = &self.0 else { return false };
        let mut is_changed = false;
        loop {
            match receive(&family.notifications) {
                Ok(_) => is_changed = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return is_changed,
                // The kernel dropped notifications.
                Err(_) => return true,
            }
        }
    }
}

impl NetdevFamily {
    fn open() -> io::Result<Option<NetdevFamily>> {
        let (requests, mut notifications) = (socket()?, socket()?);
        let answer = request(&requests, CONTROLLER, GET_FAMILY, FAMILY_NAME, NETDEV)?;
        let Some((number, group)) = family(&answer) else { return Ok(None) };
        notifications.bind_auto()?;
        notifications.add_membership(group)?;
        Ok(Some(NetdevFamily { number, requests, notifications }))
    }

    fn features(&self, device: LinkIndex) -> io::Result<Option<XdpFeatures>> {
        let answer = request(&self.requests, self.number, GET_DEVICE, INDEX, &device.to_ne_bytes())?;
        let number = |kind| parse_u64(&find(&answer, kind)?).ok();
        Ok(number(FEATURES).map(|features| XdpFeatures {
            sends_redirected: features & SENDS_REDIRECTED != 0,
            takes_redirected: features & TAKES_REDIRECTED != 0,
            takes_multi_buffer: features & TAKES_MULTI_BUFFER != 0,
            tells_tags: number(METADATA).unwrap_or(0) & TELLS_TAGS != 0,
        }))
    }
}

fn socket() -> io::Result<Socket> {
    let socket = Socket::new(NETLINK_GENERIC)?;
    socket.set_non_blocking(true)?;
    Ok(socket)
}

/// Sends a request with one attribute, and returns the attributes of the answer, which the kernel makes at once.
fn request(socket: &Socket, family: u16, command: u8, kind: u16, value: &[u8]) -> io::Result<Vec<u8>> {
    let attribute_len = 4 + value.len();
    let len = HEADERS + attribute_len.next_multiple_of(4);
    let mut message = Vec::with_capacity(len);
    message.extend((len as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    message.extend([0; 8]); // sequence number and port
    message.extend([command, 1, 0, 0]);
    message.extend((attribute_len as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(len, 0);
    socket.send_to(&message, &SocketAddr::new(0, 0), 0)?;
    let answer = receive(socket)?;
    // An error has another type, and is no answer.
    let is_answer = answer.get(4..6) == Some(&family.to_ne_bytes());
    Ok(if is_answer { answer.get(HEADERS..).unwrap_or_default().to_vec() } else { Vec::new() })
}

fn receive(socket: &Socket) -> io::Result<Vec<u8>> {
    let mut buffer = Vec::with_capacity(BUFFER);
    socket.recv(&mut buffer, 0)?;
    Ok(buffer)
}

/// The number of the family, and that of its group of notifications.
fn family(answer: &[u8]) -> Option<(u16, u32)> {
    let number = parse_u16(&find(answer, FAMILY_ID)?).ok()?;
    let groups = find(answer, FAMILY_GROUPS)?;
    let mut groups = attributes(&groups).map(|(_, group)| group);
    let group = groups.find(|group| find(group, GROUP_NAME).is_some_and(|name| name == NOTIFICATIONS))?;
    Some((number, parse_u32(&find(&group, GROUP_ID)?).ok()?))
}

fn find(bytes: &[u8], kind: u16) -> Option<Vec<u8>> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, Vec<u8>)> {
    let of = |attribute: NlaBuffer<&[u8]>| (attribute.kind(), attribute.value().to_vec());
    NlasIterator::new(bytes).map_while(Result::ok).map(of)
}
