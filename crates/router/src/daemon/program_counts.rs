//! The counters of another router's program.

use fullview_plane::counters::{InterfaceCounters, Traffic};
use fullview_plane::engine::{XdpCounters, XdpReason};

use crate::control::takeover::ProgramCounts;
use crate::mirror::Mirror;

/// The counters by this router's numbers of interfaces. Those of an interface that it does not have become those of none.
pub fn of_this_router(counts: &ProgramCounts, mirror: &Mirror) -> XdpCounters {
    let view = mirror.views().current();
    let name = counts.interface.as_deref();
    let mut numbered = (0..).zip(&view.parts().interfaces);
    let number =
        numbered.find(|(_, interface)| Some(interface.name.as_str()) == name).map(|(number, _)| number);
    let traffic = |[packets, bytes]: [u64; 2]| Traffic { packets, bytes };
    let traffic =
        InterfaceCounters { received: traffic(counts.received), sent: traffic(counts.sent), overruns: 0 };
    let refused = |reason: XdpReason| counts.refused.get(reason.name()).copied().unwrap_or(0);
    XdpCounters::of_one(number, traffic, refused)
}
