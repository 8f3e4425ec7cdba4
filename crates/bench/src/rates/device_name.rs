//! Names of the devices that can be measured.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What is between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceName {
    /// No device: a cable. Its rates are the test bed's own
    Link,
    /// The Linux kernel's forwarding
    Kernel,
    /// The same, with rules of nftables that keep the state of each flow
    KernelStateful,
    /// The same rules, of the host's iptables
    KernelIptables,
    /// The same rules of nftables, with a flowtable for known flows
    KernelFlowtable,
    /// An XDP program that asks the kernel's tables by `bpf_fib_lookup`
    FibLookup,
    /// A kernel that does not forward: its rates are 0
    Off,
    /// `fullview forward --engine auto`
    Auto,
    /// `fullview forward --engine threads`
    Threads,
    /// The same with ports of AF_XDP (`--port xdp`)
    ThreadsXdp,
    /// `fullview forward --engine tc`
    Tc,
    /// `fullview forward --engine xdp`
    Xdp,
    /// `fullview forward --engine xdp-generic`
    XdpGeneric,
}

impl DeviceName {
    /// Those that are measured if none is named.
    pub const USUAL: [DeviceName; 8] = {
        use DeviceName::*;
        [Link, Kernel, KernelStateful, Auto, Threads, Tc, Xdp, XdpGeneric]
    };

    /// How the command line names it.
    pub fn word(self) -> &'static str {
        match self {
            DeviceName::Link => "link",
            DeviceName::Kernel => "kernel",
            DeviceName::KernelStateful => "kernel-stateful",
            DeviceName::KernelIptables => "kernel-iptables",
            DeviceName::KernelFlowtable => "kernel-flowtable",
            DeviceName::FibLookup => "fib-lookup",
            DeviceName::Off => "off",
            DeviceName::Auto => "auto",
            DeviceName::Threads => "threads",
            DeviceName::ThreadsXdp => "threads-xdp",
            DeviceName::Tc => "tc",
            DeviceName::Xdp => "xdp",
            DeviceName::XdpGeneric => "xdp-generic",
        }
    }

    /// The word of `--engine`, of devices that are this program.
    pub fn engine(self) -> Option<&'static str> {
        use DeviceName::*;
        match self {
            Auto | Threads | Tc | Xdp | XdpGeneric => Some(self.word()),
            ThreadsXdp => Some(Threads.word()),
            _ => None,
        }
    }

    /// Further arguments of `fullview forward`.
    pub fn options(self) -> &'static [&'static str] {
        if self == DeviceName::ThreadsXdp { &["--quiet", "--port", "xdp"] } else { &["--quiet"] }
    }
}
