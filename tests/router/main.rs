//! The router on Linux from end to end: hosts in namespaces, cables between them, the kernel's routes, and packets through
//! our process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // also in helpers: a test fails by panicking

/// Makes tests of these functions, one for each place of the program in the kernel.
#[cfg(feature = "bpf")]
macro_rules! with_each_program {
    ($($test:ident),* $(,)?) => {
        mod at_xdp {
            $(#[test] fn $test() { super::$test("xdp"); })*
        }
        mod at_tc {
            $(#[test] fn $test() { super::$test("tc"); })*
        }
    };
}

mod basics;
mod bird;
#[cfg(feature = "bpf")]
mod busy_control;
mod connections;
mod control;
mod datagrams;
mod ecmp;
mod export;
mod exposition;
#[cfg(feature = "bpf")]
mod failover;
mod filter_workers;
mod filters;
mod flaps;
mod fresh;
mod frr;
mod full_view;
#[cfg(feature = "bpf")]
mod handover;
#[cfg(feature = "bpf")]
mod handover_faults;
#[cfg(feature = "bpf")]
mod handover_states;
#[cfg(feature = "bpf")]
mod interface_changes;
mod ipfix;
#[cfg(feature = "bpf")]
mod jumbo;
#[cfg(feature = "bpf")]
mod kernel_connections;
mod kernel_filter;
#[cfg(feature = "bpf")]
mod kernel_flows;
mod lab;
#[cfg(feature = "bpf")]
mod many_tables;
mod nftables;
mod operations;
mod ospf;
#[cfg(feature = "bpf")]
mod outage;
mod punts;
mod raw_packets;
mod resync;
#[cfg(feature = "bpf")]
mod rules;
mod silent;
mod soak;
#[cfg(feature = "bpf")]
mod sockets;
mod standalone;
#[cfg(feature = "bpf")]
mod takeover;
mod traffic;
mod trouble;
#[cfg(feature = "bpf")]
mod tunnels;
#[cfg(feature = "bpf")]
mod twin;
#[cfg(feature = "bpf")]
mod vrrp;
mod watch;
#[cfg(feature = "bpf")]
mod watchdog;
#[cfg(feature = "bpf")]
mod xdp;
