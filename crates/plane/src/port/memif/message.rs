//! The messages of memif's control channel, version 2.0: 128 bytes each, the type first, no padding between fields,
//! in the byte order of the machine, since both ends are on one.

/// Bytes of every message.
pub const SIZE: usize = 128;

/// Major version in the upper byte.
const VERSION: u16 = 0x0200;

const ACK: u16 = 1;
const HELLO: u16 = 2;
const INIT: u16 = 3;
const ADD_REGION: u16 = 4;
const ADD_RING: u16 = 5;
const CONNECT: u16 = 6;
const CONNECTED: u16 = 7;
const DISCONNECT: u16 = 8;

/// The mode of Ethernet frames, not of IP packets.
const ETHERNET: u8 = 0;

/// The flag of a ring from client to server.
const TO_SERVER: u16 = 1;

/// Room for names and secrets.
const NAME: usize = 32;
const SECRET: usize = 24;

/// What a server sends.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerMessage {
    /// The first message, with the server's capabilities.
    Hello {
        /// Whether it supports this version.
        is_compatible: bool,
        /// The largest ring, as a power of two.
        max_log2_ring: u8,
    },
    /// The last request is granted.
    Ack,
    /// The connection is established.
    Connected,
    /// The server disconnects, with the reason.
    Disconnect(String),
    /// A message of a type that no server sends.
    Unknown(u16),
}

impl ServerMessage {
    /// Reads a message.
    pub fn parse(message: &[u8; SIZE]) -> ServerMessage {
        match half(message, 0) {
            ACK => ServerMessage::Ack,
            HELLO => ServerMessage::Hello {
                is_compatible: (half(message, 2 + NAME)..=half(message, 4 + NAME)).contains(&VERSION),
                max_log2_ring: message[12 + NAME],
            },
            CONNECTED => ServerMessage::Connected,
            DISCONNECT => ServerMessage::Disconnect(text(&message[6..102])),
            other => ServerMessage::Unknown(other),
        }
    }
}

fn half(message: &[u8; SIZE], at: usize) -> u16 {
    u16::from_ne_bytes([message[at], message[at + 1]])
}

/// Text up to its first zero byte. Invalid characters and control characters, which could move a terminal's cursor, are
/// replaced.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]);
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Writes a message field by field.
struct MessageWriter {
    message: [u8; SIZE],
    at: usize,
}

impl MessageWriter {
    fn new(kind: u16) -> MessageWriter {
        MessageWriter { message: [0; SIZE], at: 0 }.put(&kind.to_ne_bytes())
    }

    /// Every message below is shorter than [`SIZE`].
    fn put(mut self, field: &[u8]) -> MessageWriter {
        self.message[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
        self
    }

    /// Text in a field of that length, of which the last byte stays zero.
    fn put_text(self, text: &str, room: usize) -> MessageWriter {
        self.put_cut(text.as_bytes(), room - 1, room)
    }

    /// A secret may fill its field.
    fn put_secret(self, secret: &str) -> MessageWriter {
        self.put_cut(secret.as_bytes(), SECRET, SECRET)
    }

    fn put_cut(self, bytes: &[u8], most: usize, room: usize) -> MessageWriter {
        let end = self.at + room;
        let written = self.put(&bytes[..bytes.len().min(most)]);
        MessageWriter { at: end, ..written }
    }
}

/// Requests an interface by its number.
pub fn init(id: u32, name: &str, secret: &str) -> [u8; SIZE] {
    let numbers =
        MessageWriter::new(INIT).put(&VERSION.to_ne_bytes()).put(&id.to_ne_bytes()).put(&[ETHERNET]);
    numbers.put_secret(secret).put_text(name, NAME).message
}

/// Adds a memory region, whose file descriptor is sent along.
pub fn add_region(size: u64) -> [u8; SIZE] {
    MessageWriter::new(ADD_REGION).put(&0u16.to_ne_bytes()).put(&size.to_ne_bytes()).message
}

/// Adds a ring at an offset of the memory; the event descriptor of its reader is sent along.
pub fn add_ring(to_server: bool, offset: u32, log2_size: u8) -> [u8; SIZE] {
    let flags = if to_server { TO_SERVER } else { 0 };
    let head = MessageWriter::new(ADD_RING).put(&flags.to_ne_bytes()).put(&[0; 4]).put(&offset.to_ne_bytes());
    head.put(&[log2_size]).message
}

/// Requests the connection.
pub fn connect(name: &str) -> [u8; SIZE] {
    MessageWriter::new(CONNECT).put_text(name, NAME).message
}

/// Disconnects with a reason.
pub fn disconnect(why: &str) -> [u8; SIZE] {
    MessageWriter::new(DISCONNECT).put(&0u32.to_ne_bytes()).put_text(why, 96).message
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packed layout of DPDK's driver.
    #[test]
    fn fields_have_the_offsets_of_dpdk() {
        let message = init(0x0102_0304, "fullview", "secret");
        assert_eq!(half(&message, 0), INIT);
        assert_eq!(half(&message, 2), VERSION);
        assert_eq!(message[4..8], 0x0102_0304u32.to_ne_bytes());
        assert_eq!(
            (message[8], &message[9..16], &message[33..42]),
            (ETHERNET, &b"secret\0"[..], &b"fullview\0"[..])
        );
        let message = add_region(1 << 40);
        assert_eq!((half(&message, 2), &message[4..12]), (0, &(1u64 << 40).to_ne_bytes()[..]));
        let message = add_ring(true, 0x1234_5678, 10);
        assert_eq!((half(&message, 2), half(&message, 4), half(&message, 6)), (TO_SERVER, 0, 0));
        assert_eq!((&message[8..12], message[12]), (&0x1234_5678u32.to_ne_bytes()[..], 10));
        assert_eq!(half(&add_ring(false, 0, 10), 2), 0);
    }

    #[test]
    fn long_names_are_cut_and_a_secret_may_fill_its_field() {
        let message = init(0, &"n".repeat(40), &"s".repeat(40));
        assert_eq!((&message[9..33], message[33 + 30], message[33 + 31]), (&[b's'; 24][..], b'n', 0));
    }

    #[test]
    fn answers_are_read() {
        let mut hello = [0; SIZE];
        hello[..2].copy_from_slice(&HELLO.to_ne_bytes());
        hello[34..36].copy_from_slice(&VERSION.to_ne_bytes());
        hello[36..38].copy_from_slice(&VERSION.to_ne_bytes());
        hello[44] = 14;
        assert_eq!(
            ServerMessage::parse(&hello),
            ServerMessage::Hello { is_compatible: true, max_log2_ring: 14 }
        );
        hello[34..36].copy_from_slice(&0x0300u16.to_ne_bytes());
        assert_eq!(
            ServerMessage::parse(&hello),
            ServerMessage::Hello { is_compatible: false, max_log2_ring: 14 }
        );
        let message = disconnect("ID not found\x1b[2J");
        assert_eq!(
            ServerMessage::parse(&message),
            ServerMessage::Disconnect("ID not found\u{fffd}[2J".into())
        );
        assert_eq!(ServerMessage::parse(&[0xff; SIZE]), ServerMessage::Unknown(0xffff));
    }
}
