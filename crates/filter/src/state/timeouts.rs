//! How long a state lives after its last packet.

use super::phase::Phase;
use crate::packet::protocol::{ICMP, ICMP6, TCP, UDP};

/// No timeout may exceed 24 days, because times are compared in 32 bits of milliseconds.
pub const MAX_TIMEOUT: u32 = 24 * 24 * 3600 * 1000;

/// Timeouts in milliseconds, named as in pf.conf(5), whose `normal` optimization is the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub tcp_first: u32,
    pub tcp_opening: u32,
    pub tcp_established: u32,
    pub tcp_closing: u32,
    pub tcp_finwait: u32,
    pub tcp_closed: u32,
    pub udp_first: u32,
    pub udp_single: u32,
    pub udp_multiple: u32,
    pub icmp_first: u32,
    pub icmp_error: u32,
    pub other_first: u32,
    pub other_single: u32,
    pub other_multiple: u32,
    /// How long a source without states is remembered.
    pub source: u32,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            tcp_first: 120_000,
            tcp_opening: 30_000,
            tcp_established: 86_400_000,
            tcp_closing: 900_000,
            tcp_finwait: 45_000,
            tcp_closed: 90_000,
            udp_first: 60_000,
            udp_single: 30_000,
            udp_multiple: 60_000,
            icmp_first: 20_000,
            icmp_error: 10_000,
            other_first: 60_000,
            other_single: 30_000,
            other_multiple: 60_000,
            source: 0,
        }
    }
}

impl Timeouts {
    /// ipfw's defaults: the variables `net.inet.ip.fw.dyn_*_lifetime` of ipfw(8). FreeBSD asks the ends of an idle
    /// connection whether it is still there (`dyn_keepalive`) and keeps its state if they answer. This filter sends nothing
    /// of its own, so an established connection has the time of RFC 5382 (REQ-5), two hours and four minutes.
    pub fn ipfw() -> Self {
        Timeouts {
            tcp_first: 20_000,
            tcp_opening: 20_000,
            tcp_established: 7_440_000,
            tcp_closing: 300_000,
            tcp_finwait: 1_000,
            tcp_closed: 1_000,
            udp_first: 10_000,
            udp_single: 10_000,
            udp_multiple: 10_000,
            icmp_first: 5_000,
            icmp_error: 5_000,
            other_first: 5_000,
            other_single: 5_000,
            other_multiple: 5_000,
            source: 0,
        }
    }

    /// Those of ipfw's `nat`, whose mappings FreeBSD keeps apart from dynamic rules: the times of libalias(3). A connection
    /// that one end has closed stays for the segments of the other one.
    pub fn libalias() -> Self {
        Timeouts {
            tcp_first: 300_000,
            tcp_opening: 300_000,
            tcp_established: 86_400_000,
            tcp_closing: 90_000,
            tcp_finwait: 90_000,
            tcp_closed: 10_000,
            udp_first: 60_000,
            udp_single: 60_000,
            udp_multiple: 60_000,
            icmp_first: 60_000,
            icmp_error: 60_000,
            other_first: 60_000,
            other_single: 60_000,
            other_multiple: 60_000,
            source: 0,
        }
    }

    /// How long a state of this protocol lives whose ends have come so far.
    #[inline(always)]
    pub(crate) fn of(&self, protocol: u8, phases: [Phase; 2]) -> u32 {
        match protocol {
            TCP => self.tcp(phases),
            UDP => by_answers(phases, [self.udp_first, self.udp_single, self.udp_multiple]),
            ICMP | ICMP6 => by_answers(phases, [self.icmp_first, self.icmp_error, self.icmp_error]),
            _ => by_answers(phases, [self.other_first, self.other_single, self.other_multiple]),
        }
    }

    #[inline(always)]
    fn tcp(&self, [first, second]: [Phase; 2]) -> u32 {
        let (least, most) = (first.min(second), first.max(second));
        if least >= Phase::Finished || most == Phase::Reset {
            self.tcp_closed
        } else if least == Phase::Closing {
            self.tcp_finwait
        } else if least == Phase::Silent && most == Phase::Opened {
            self.tcp_first
        } else if least < Phase::Established {
            self.tcp_opening
        } else if most >= Phase::Closing {
            self.tcp_closing
        } else {
            self.tcp_established
        }
    }

    /// The shortest of those of states: no state expires before.
    pub(crate) fn shortest(&self) -> u32 {
        self.all().min().unwrap_or(0)
    }

    /// The longest of all, also of sources.
    pub(crate) fn longest(&self) -> u32 {
        self.all().max().unwrap_or(0).max(self.source)
    }

    /// Those of states.
    fn all(&self) -> impl Iterator<Item = u32> {
        let tcp = [self.tcp_first, self.tcp_opening, self.tcp_established, self.tcp_closing];
        let tcp_end = [self.tcp_finwait, self.tcp_closed];
        let udp = [self.udp_first, self.udp_single, self.udp_multiple];
        let rest =
            [self.icmp_first, self.icmp_error, self.other_first, self.other_single, self.other_multiple];
        tcp.into_iter().chain(tcp_end).chain(udp).chain(rest)
    }
}

/// One packet only; packets of one end; answers too.
#[inline(always)]
fn by_answers(phases: [Phase; 2], [first, single, multiple]: [u32; 3]) -> u32 {
    if phases == [Phase::Established; 2] {
        multiple
    } else if phases == [Phase::Opened, Phase::Silent] {
        first
    } else {
        single
    }
}
