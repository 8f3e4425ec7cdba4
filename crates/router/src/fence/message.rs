//! Messages of nftables (linux/netfilter/nf_tables.h): one batch, which the kernel applies as a whole or not at all.

use netlink_packet_core::{NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST};

/// The name of the table, of the family `inet`.
pub const TABLE: &str = "fullview_fence";

const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// NFNL_SUBSYS_NFTABLES.
const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const DELETE_TABLE: u16 = SUBSYSTEM << 8 | 2;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
const NFPROTO_INET: u8 = 1;

/// NFT_TABLE_F_OWNER and NFT_TABLE_F_PERSIST.
const OWNED_AND_PERSISTENT: u32 = 2 | 4;
const HOOK_FORWARD: u32 = 2;
/// Before all other chains. What this one drops, none of them brings back.
const PRIORITY: i32 = -300;
const REGISTER: u32 = 1;
const VERDICT: u32 = 0;
const DROP: u32 = 0;
const EQUAL: u32 = 0;
/// The length of an interface's name with its end.
pub const NAME_LENGTH: usize = 16;

/// An attribute that holds others.
const NESTED: u16 = 1 << 15;

/// What a rule of the fence compares with the name of an interface: a key of `nft_meta_keys`.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum InterfaceTest {
    CameIn = 6,
    Leaves = 7,
    /// The interface itself where a VRF stands for it.
    CameInUnderVrf = 34,
}

impl InterfaceTest {
    pub const ALL: [InterfaceTest; 3] =
        [InterfaceTest::CameIn, InterfaceTest::Leaves, InterfaceTest::CameInUnderVrf];
}

/// A batch of messages, numbered from its first one on.
pub struct Batch {
    bytes: Vec<u8>,
    sequence: u32,
    /// Where the last message begins.
    last: usize,
}

impl Batch {
    pub fn begin(sequence: u32) -> Batch {
        let mut batch = Batch { bytes: Vec::new(), sequence, last: 0 };
        batch.push(BATCH_BEGIN, 0, [0, 0], SUBSYSTEM, &[]);
        batch
    }

    pub fn ensure_table(&mut self) {
        self.change(NEW_TABLE, NLM_F_CREATE, &text(1, TABLE));
    }

    pub fn delete_table(&mut self) {
        self.change(DELETE_TABLE, 0, &text(1, TABLE));
    }

    pub fn add_owned_table(&mut self) {
        self.change(NEW_TABLE, NLM_F_CREATE, &[text(1, TABLE), number(2, OWNED_AND_PERSISTENT)].concat());
    }

    pub fn add_forward_chain(&mut self, chain: &str) {
        let hook = [number(1, HOOK_FORWARD), number(2, PRIORITY.cast_unsigned())].concat();
        let body = [text(1, TABLE), text(3, chain), nested(4, &hook), text(7, "filter")].concat();
        self.change(NEW_CHAIN, NLM_F_CREATE, &body);
    }

    /// Drops the packets of interfaces whose names, with the bytes that end them, begin with `prefix`.
    pub fn add_drop(&mut self, chain: &str, test: InterfaceTest, prefix: &[u8]) {
        let expressions = [meta(test), compare(prefix), expression("counter", &[]), drop_packet()].concat();
        let body = [text(1, TABLE), text(2, chain), nested(4, &expressions)].concat();
        self.change(NEW_RULE, NLM_F_CREATE | NLM_F_APPEND, &body);
    }

    /// The bytes of the batch, and the number of its last change, which the kernel acknowledges.
    pub fn end(mut self) -> (Vec<u8>, u32) {
        let last = self.sequence - 1;
        let flags = self.last + 6;
        let acknowledged = (NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes();
        self.bytes[flags..flags + 2].iter_mut().zip(acknowledged).for_each(|(byte, flag)| *byte |= flag);
        self.push(BATCH_END, 0, [0, 0], SUBSYSTEM, &[]);
        (self.bytes, last)
    }

    fn change(&mut self, kind: u16, flags: u16, body: &[u8]) {
        self.last = self.bytes.len();
        self.push(kind, flags, [NFPROTO_INET, 0], 0, body);
    }

    /// Adds a message: struct nlmsghdr, struct nfgenmsg, attributes.
    fn push(&mut self, kind: u16, flags: u16, family: [u8; 2], resource: u16, body: &[u8]) {
        let length = (20 + body.len()) as u32;
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        self.bytes.extend(self.sequence.to_ne_bytes());
        self.bytes.extend([0; 4]);
        self.bytes.extend(family);
        self.bytes.extend(resource.to_be_bytes());
        self.bytes.extend(body);
        self.sequence += 1;
    }
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (4 + value.len()) as u16;
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn nested(kind: u16, attributes: &[u8]) -> Vec<u8> {
    attribute(kind | NESTED, attributes)
}

fn text(kind: u16, text: &str) -> Vec<u8> {
    attribute(kind, &[text.as_bytes(), &[0]].concat())
}

fn number(kind: u16, number: u32) -> Vec<u8> {
    attribute(kind, &number.to_be_bytes())
}

/// An element of the list of a rule's expressions: its name, and its own attributes.
fn expression(name: &str, attributes: &[u8]) -> Vec<u8> {
    nested(1, &[text(1, name), nested(2, attributes)].concat())
}

fn meta(test: InterfaceTest) -> Vec<u8> {
    expression("meta", &[number(1, REGISTER), number(2, test as u32)].concat())
}

/// Goes on with the rule if the register begins with these bytes.
fn compare(wanted: &[u8]) -> Vec<u8> {
    expression("cmp", &[number(1, REGISTER), number(2, EQUAL), nested(3, &attribute(1, wanted))].concat())
}

fn drop_packet() -> Vec<u8> {
    let verdict = nested(2, &number(1, DROP));
    expression("immediate", &[number(1, VERDICT), nested(2, &verdict)].concat())
}
