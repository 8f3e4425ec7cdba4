//! What the hash of a packet's flow is made of.

/// The hash by which a next-hop group picks a member. Each router needs a seed of its own: with the same seed, each one in a
/// row would see only flows with the hash values that the router before it sent there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowHash {
    /// The seed.
    pub seed: u64,
    /// What it covers of IPv4 packets.
    pub inet: FlowFields,
    /// What it covers of IPv6 packets.
    pub inet6: FlowFields,
}

/// The fields of a packet by which a next-hop group picks a member. No other field has an influence. The numbers are those of
/// `enum flow_fields` in `bpf/forward.c`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum FlowFields {
    /// The addresses; of IPv6 packets the flow label and the next header too (Linux: `fib_multipath_hash_policy` 0).
    Layer3,
    /// The addresses, the protocol and the ports, but of a fragment and of a packet whose ports do not follow its IP header the
    /// addresses only (Linux: `fib_multipath_hash_policy` 1).
    Layer4,
    /// The addresses and the flow label of an IPv6 packet that has a label (RFC 6438); of others as [`Self::Layer4`].
    #[default]
    LabelOrLayer4,
}
