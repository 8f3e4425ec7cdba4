//! What a core does that forwards packets, as stages of a profile.

use fullview_bench::subject::stages as own_stages;
use fullview_profile::Stacks;
use fullview_profile::stages::{StageShare, shares};

/// The first that fits a function counts; a function of none belongs to the stage that called it. Functions of the kernel
/// have its word and their name in place of a file.
const KERNEL_STAGES: [(&str, &str); 47] = [
    ("[kernel]/fib_", "route lookup"),
    ("[kernel]/__fib_", "route lookup"),
    ("[kernel]/ip_route_", "route lookup"),
    ("[kernel]/bpf_ipv4_fib_lookup", "route lookup"),
    ("[kernel]/bpf_ipv6_fib_lookup", "route lookup"),
    ("[kernel]/nf_", "netfilter"),
    ("[kernel]/__nf_", "netfilter"),
    ("[kernel]/nft_", "netfilter"),
    ("[kernel]/ipt_", "netfilter"),
    ("[kernel]/xt_", "netfilter"),
    ("[kernel]/ipv4_conntrack", "netfilter"),
    ("[kernel]/bpf_prog_", "the BPF program"),
    ("[kernel]/__htab_map", "maps of the BPF program"),
    ("[kernel]/htab_", "maps of the BPF program"),
    ("[kernel]/trie_", "maps of the BPF program"),
    ("[kernel]/array_map", "maps of the BPF program"),
    ("[kernel]/xsk_", "AF_XDP sockets"),
    ("[kernel]/__xsk_", "AF_XDP sockets"),
    ("[kernel]/packet_", "packet sockets"),
    ("[kernel]/tpacket_", "packet sockets"),
    ("[kernel]/inet_gro", "GRO"),
    ("[kernel]/udp4_gro", "GRO"),
    ("[kernel]/udp_gro", "GRO"),
    ("[kernel]/dev_gro_receive", "GRO"),
    ("[kernel]/ip_", "IP"),
    ("[kernel]/neigh_", "IP"),
    ("[kernel]/kmem_cache_", "memory of packets"),
    ("[kernel]/__alloc_skb", "memory of packets"),
    ("[kernel]/skb_", "memory of packets"),
    ("[kernel]/sk_skb_reason_drop", "memory of packets"),
    ("[kernel]/consume_skb", "memory of packets"),
    ("[kernel]/sock_wfree", "memory of packets"),
    ("[kernel]/kfree_skb", "memory of packets"),
    ("[kernel]/page_pool_", "memory of packets"),
    ("[kernel]/veth_", "veth devices"),
    ("[kernel]/xdp_", "veth devices"),
    ("[kernel]/__dev_queue_xmit", "veth devices"),
    ("[kernel]/__netif_receive_skb", "veth devices"),
    ("[kernel]/schedule", "waiting and switching"),
    ("[kernel]/__schedule", "waiting and switching"),
    ("[kernel]/napi_threaded_poll", "polling and softirqs"),
    ("[kernel]/__napi_poll", "polling and softirqs"),
    ("[kernel]/do_softirq", "polling and softirqs"),
    ("[kernel]/net_rx_action", "polling and softirqs"),
    ("[kernel]/handle_softirqs", "polling and softirqs"),
    ("[kernel]/do_syscall_64", "system calls"),
    ("[kernel]/el0t_64_sync", "system calls"),
];

/// The function in which everything belongs to the right host: the device's own packets come to a thread.
const RECEIVER: &str = "net_rx_action_[k]";

/// Functions of which a stack holds one if it is about packets.
pub const FORWARDING: [&str; 6] =
    ["napi_threaded_poll", "__napi_poll", "net_rx_action", "fullview_plane", "packet_sendmsg", "xsk_sendmsg"];

/// The stage of that function where a right host receives on the device's core.
const RECEIVER_STAGE: (&str, &str) = ("[kernel]/net_rx_action", "the right host receives");

/// The shares of the stages. With a receiver on the device's core, what it does is a stage of its own.
pub fn stage_shares(stacks: &Stacks, has_receiver: bool) -> Vec<StageShare> {
    match has_receiver {
        true => shares(&stacks.cut_at(RECEIVER), &stages(&[RECEIVER_STAGE])),
        false => shares(stacks, &stages(&[])),
    }
}

/// Parts of the paths of sources, and the stage that they are. The kernel as a whole is none.
fn stages(first: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    let own = own_stages().iter().filter(|(part, _)| *part != "[kernel]");
    first.iter().chain(&KERNEL_STAGES).chain(own).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_is_no_other_part_of_ip() {
        let all = stages(&[]);
        let stage = |function: &str| all.iter().find(|(part, _)| function.contains(part)).map(|one| one.1);
        assert_eq!(stage("[kernel]/ip_route_input_noref"), Some("route lookup"));
        assert_eq!(stage("[kernel]/ip_forward"), Some("IP"));
        assert_eq!(stage("[kernel]/_raw_spin_lock"), None, "it belongs to its caller");
        assert_eq!(stage("/src/crates/table/src/fib/mod.rs"), Some("lookup"));
    }
}
