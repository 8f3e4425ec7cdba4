//! Where the program of an interface runs, and why there.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use fullview_plane::port::link::Link;

use super::xdp_features::XdpFeatures;

/// A place in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// XDP, in the driver.
    Driver,
    /// XDP, behind the driver.
    Generic,
    /// tcx ingress, where the kernel has made an skb of the frame.
    Tcx,
}

impl Hook {
    /// The word of `--engine`.
    pub fn name(self) -> &'static str {
        match self {
            Hook::Driver => "xdp",
            Hook::Generic => "xdp-generic",
            Hook::Tcx => "tc",
        }
    }

    /// The hook of this word.
    pub fn named(word: &str) -> Option<Hook> {
        [Hook::Driver, Hook::Generic, Hook::Tcx].into_iter().find(|hook| hook.name() == word)
    }
}

/// Why the program runs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookReason {
    Configured,
    /// A discipline shapes what leaves, and frames that XDP redirects would not meet it.
    Shaped,
    DriverForwards,
    DriverCannot,
    /// This driver would split what it now receives in one piece.
    Splits(&'static str),
    /// The card would no longer merge frames.
    Merges,
    /// The driver strips VLAN tags and does not tell them.
    HidesTags,
    /// The program takes the place of another router's program, and a link cannot move.
    TakenOver,
}

impl Display for HookReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HookReason::Configured => f.write_str("as configured"),
            HookReason::Shaped => f.write_str("what leaves is shaped by tc, which XDP would bypass"),
            HookReason::DriverForwards => f.write_str("the driver forwards by XDP and loses no offload"),
            HookReason::DriverCannot => f.write_str("the driver does not both send and take frames by XDP"),
            HookReason::Splits(driver) => {
                write!(f, "driver {driver} passes TCP segments in one large frame, which XDP would split")
            }
            HookReason::Merges => f.write_str("the card merges received frames (LRO), which XDP would end"),
            HookReason::HidesTags => f.write_str("the driver strips VLAN tags and does not tell them to XDP"),
            HookReason::TakenOver => f.write_str("there is the program of the router that this one replaces"),
        }
    }
}

/// A hook and the reason for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookChoice {
    pub hook: Hook,
    pub reason: HookReason,
}

impl HookChoice {
    /// Whether frames that come in there leave without queueing disciplines: those that XDP redirects do.
    pub fn leaves_unqueued(self) -> bool {
        self.hook != Hook::Tcx
    }

    const fn tcx(reason: HookReason) -> HookChoice {
        HookChoice { hook: Hook::Tcx, reason }
    }
}

/// How hooks are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookRule {
    /// The same for all interfaces.
    Always(HookChoice),
    /// For each interface the one that never makes it slower.
    Best,
}

/// The hooks of another router's programs, by the names of their interfaces.
pub type TakenHooks = BTreeMap<String, Hook>;

/// Drivers that receive many TCP segments in one frame, because the other end leaves the splitting to hardware that there is
/// not, or that the host has. With an XDP program they make that end split them, and a router handles each segment alone:
/// that costs more than XDP saves. A bond is here because what its members do may change.
pub const SPLITTING: [&str; 7] = ["veth", "virtio_net", "tun", "vif", "vmxnet3", "hv_netvsc", "bonding"];

/// What is known about an interface.
struct InterfaceFacts {
    driver: String,
    /// `None` if the kernel cannot say.
    features: Option<XdpFeatures>,
    merges_frames: bool,
    strips_tags: bool,
}

impl HookRule {
    /// Whether frames leave without queueing disciplines by any interface, also by one that comes later.
    pub fn leaves_unqueued(self) -> bool {
        matches!(self, HookRule::Always(choice) if choice.leaves_unqueued())
    }

    /// The hook for an interface whose driver has these features. It is chosen while no program is attached, because a
    /// program changes what the driver does.
    pub fn choose(self, name: &str, features: Option<XdpFeatures>, taken: &TakenHooks) -> HookChoice {
        let choice = match self {
            HookRule::Always(choice) => choice,
            HookRule::Best => best(&InterfaceFacts::read(name, features)),
        };
        match taken.get(name) {
            Some(hook) if *hook != choice.hook => HookChoice { hook: *hook, reason: HookReason::TakenOver },
            _ => choice,
        }
    }
}

impl InterfaceFacts {
    /// What cannot be read is taken as none: the driver's features decide then.
    fn read(name: &str, features: Option<XdpFeatures>) -> InterfaceFacts {
        let link = Link::named(name).ok();
        let link = link.as_ref();
        InterfaceFacts {
            driver: link.and_then(|link| link.driver().ok()).unwrap_or_default(),
            features,
            merges_frames: link.is_some_and(|link| link.merges_frames().unwrap_or(false)),
            strips_tags: link.is_some_and(|link| link.strips_tags().unwrap_or(false)),
        }
    }
}

fn best(facts: &InterfaceFacts) -> HookChoice {
    if let Some(driver) = SPLITTING.into_iter().find(|driver| facts.driver == *driver) {
        return HookChoice::tcx(HookReason::Splits(driver));
    }
    let is_able = |features: &XdpFeatures| features.sends_redirected && features.takes_redirected;
    let Some(features) = facts.features.filter(is_able) else {
        return HookChoice::tcx(HookReason::DriverCannot);
    };
    if facts.merges_frames {
        return HookChoice::tcx(HookReason::Merges);
    }
    if facts.strips_tags && !features.tells_tags {
        return HookChoice::tcx(HookReason::HidesTags);
    }
    HookChoice { hook: Hook::Driver, reason: HookReason::DriverForwards }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABLE: XdpFeatures = XdpFeatures {
        sends_redirected: true,
        takes_redirected: true,
        takes_multi_buffer: true,
        tells_tags: true,
    };

    fn card() -> InterfaceFacts {
        InterfaceFacts {
            driver: "mlx5_core".into(),
            features: Some(ABLE),
            merges_frames: false,
            strips_tags: true,
        }
    }

    #[test]
    fn a_card_that_loses_nothing_runs_the_program_in_its_driver() {
        let choice = HookChoice { hook: Hook::Driver, reason: HookReason::DriverForwards };
        assert_eq!(best(&card()), choice);
        let features = Some(XdpFeatures { tells_tags: false, ..ABLE });
        assert_eq!(best(&InterfaceFacts { features, strips_tags: false, ..card() }), choice);
    }

    #[test]
    fn any_other_interface_runs_the_program_at_tcx() {
        let without_takers = Some(XdpFeatures { takes_redirected: false, ..ABLE });
        let without_tags = Some(XdpFeatures { tells_tags: false, ..ABLE });
        let others = [
            (InterfaceFacts { driver: "veth".into(), ..card() }, HookReason::Splits("veth")),
            (InterfaceFacts { driver: "virtio_net".into(), ..card() }, HookReason::Splits("virtio_net")),
            (InterfaceFacts { features: None, ..card() }, HookReason::DriverCannot),
            (InterfaceFacts { features: without_takers, ..card() }, HookReason::DriverCannot),
            (InterfaceFacts { merges_frames: true, ..card() }, HookReason::Merges),
            (InterfaceFacts { features: without_tags, ..card() }, HookReason::HidesTags),
        ];
        for (facts, reason) in others {
            assert_eq!(best(&facts), HookChoice::tcx(reason));
        }
    }
}
