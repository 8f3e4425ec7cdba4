//! How the kernel spreads the frames of an interface over a group of packet sockets.

use crate::flow_owner::{MULTIPLIER, SHIFT};

/// What decides which socket of a group gets a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// The kernel's hash of a flow, the same for both directions.
    #[default]
    Flows,
    /// What decides which worker judges a packet ([`crate::flow_owner`]), so that few packets have to be handed over: the number of
    /// a socket in its group is that of its worker.
    Owners,
}

/// The words of both addresses in a header.
const INET: [u32; 2] = [12, 16];
const INET6: [u32; 8] = [8, 12, 16, 20, 24, 28, 32, 36];

/// Computes the number of the worker, of so many, as [`crate::flow_owner::FlowOwners`] does (classic BPF). A group reads from the
/// network header on. ICMP errors go by their own addresses, as the packets that they quote are at no fixed place.
pub(super) fn by_owners(workers: usize) -> Vec<libc::sock_filter> {
    let protocol = libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL;
    let [inet, inet6] = [&INET[..], &INET6[..]].map(|words| owner_by(words, workers as u32));
    let choice = [
        load(protocol as u32),
        jump(libc::ETH_P_IP as u32, 2),
        jump(libc::ETH_P_IPV6 as u32, 1 + inet.len() as u8),
        instruction(libc::BPF_RET | libc::BPF_K, 0),
    ];
    choice.into_iter().chain(inet).chain(inet6).collect()
}

/// Adds the words at these offsets, and returns the owner by the sum.
fn owner_by(offsets: &[u32], workers: u32) -> Vec<libc::sock_filter> {
    let add = |offset: &u32| {
        [
            instruction(libc::BPF_MISC | libc::BPF_TAX, 0),
            load(*offset),
            instruction(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X, 0),
        ]
    };
    let product = [
        instruction(libc::BPF_ALU | libc::BPF_MUL | libc::BPF_K, MULTIPLIER),
        instruction(libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K, SHIFT),
        instruction(libc::BPF_ALU | libc::BPF_MUL | libc::BPF_K, workers),
        instruction(libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K, u32::BITS - SHIFT),
        instruction(libc::BPF_RET | libc::BPF_A, 0),
    ];
    let (first, others) = (&offsets[0], &offsets[1..]);
    [load(*first)].into_iter().chain(others.iter().flat_map(add)).chain(product).collect()
}

fn load(offset: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn instruction(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Jumps over so many instructions if the accumulator has this value.
fn jump(value: u32, over: u8) -> libc::sock_filter {
    let code = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    libc::sock_filter { code: code as u16, jt: over, jf: 0, k: value }
}
