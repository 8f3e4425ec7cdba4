//! The interfaces of a router whose packets a program in the kernel forwards: where the program runs, what their drivers can
//! do for XDP, and what is left to the kernel because of what they cannot.

use std::collections::BTreeMap;
use std::iter;
use std::path::Path;
use std::time::{Duration, Instant};

use fullview_plane::engine::XdpDevice;
use fullview_plane::port::link::Link;

use super::error::DaemonError;
use super::hook::{Hook, HookChoice, HookReason, HookRule, TakenHooks};
use super::xdp_features::{FeatureReader, XdpFeatures};
use crate::error::BadInput;
use crate::events::EventKind;
use crate::mirror::Mirror;

/// How often the offloads of interfaces are read: the kernel does not report when they change.
const OFFLOAD_CHECK: Duration = Duration::from_secs(1);

/// The kernel's types, without which a program cannot name a function of the kernel.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Where the program finds the VLAN tags of received frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagPlace {
    /// In the frame, or beside an skb.
    Frame,
    /// The driver tells them if it strips them.
    Driver,
    /// Nowhere: the driver strips them. To the program, frames of all VLANs look untagged.
    Nowhere,
}

/// An interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceState {
    pub device: XdpDevice,
    /// See [`Mirror::link_birth`].
    pub birth: u64,
    pub tags: TagPlace,
    pub choice: HookChoice,
    /// Whether the other end of the interface may leave checksums unfinished in frames that the program then forwards so.
    pub gets_unfinished: bool,
}

impl DeviceState {
    /// What is left to the kernel, and the command that changes that.
    pub fn describe(&self, name: &str) -> String {
        let does = match self {
            DeviceState { device: XdpDevice { index: 0, .. }, .. } => {
                return format!(
                    "interface {name} is not there, or is part of a bridge or bond; it will be used when it is there on its own"
                );
            }
            DeviceState { choice: HookChoice { hook: Hook::Tcx, reason }, .. } => {
                format!("the program forwards at tc what comes in by it: {reason}")
            }
            DeviceState { tags: TagPlace::Nowhere, .. } => return strips_tags(name),
            DeviceState { device: XdpDevice { sends_redirected: false, .. }, .. } => {
                "its driver cannot redirect frames, so the kernel forwards what comes in by it".to_owned()
            }
            DeviceState { device: XdpDevice { takes_redirected: false, .. }, .. } => format!(
                "its driver takes no frames from XDP programs, so the kernel forwards what leaves by it; if {name} is \
                 a veth device, `ethtool -K PEER gro on tx off` at its other end PEER fixes that, and `tx off` has its senders \
                 finish checksums, without which TCP and UDP do not pass"
            ),
            _ => "the XDP program forwards what comes in and leaves by it".to_owned(),
        };
        format!("interface {name}: {does}")
    }

    /// What may go wrong with frames that the program forwards, and the command that prevents it.
    fn warning(&self, name: &str) -> Option<String> {
        self.gets_unfinished.then(|| {
            format!(
                "interface {name}: it is a veth device, whose senders may leave the checksums of TCP and UDP unfinished, and the \
                 XDP program forwards them so; `ethtool -K PEER tx off` at its other end PEER, if that is not set, has them \
                 finished"
            )
        })
    }
}

/// Of an interface that does not exist.
const ABSENT: HookChoice = HookChoice { hook: Hook::Tcx, reason: HookReason::Configured };

/// Behind the driver, the kernel itself sends what programs redirect.
fn device(index: u32, hook: Hook, features: XdpFeatures) -> XdpDevice {
    XdpDevice {
        index,
        sends_redirected: hook != Hook::Driver || features.sends_redirected,
        takes_redirected: hook == Hook::Generic || features.takes_redirected,
        takes_multi_buffer: hook == Hook::Generic || features.takes_multi_buffer,
    }
}

fn tags(name: &str, hook: Hook, features: XdpFeatures) -> TagPlace {
    let strips = || Link::named(name).and_then(|link| link.strips_tags()).unwrap_or(false);
    match hook {
        Hook::Tcx => TagPlace::Frame,
        // Only a program in the driver can ask for tags.
        Hook::Driver if features.tells_tags && Path::new(KERNEL_TYPES).exists() => TagPlace::Driver,
        Hook::Driver | Hook::Generic if strips() => TagPlace::Nowhere,
        Hook::Driver | Hook::Generic => TagPlace::Frame,
    }
}

/// Between the two ends of a veth device no hardware finishes checksums, and only the kernel knows which are not.
fn is_veth(name: &str) -> bool {
    Link::named(name).and_then(|link| link.driver()).is_ok_and(|driver| driver == "veth")
}

fn strips_tags(name: &str) -> String {
    format!(
        "interface {name}: it strips VLAN tags before an XDP program sees the frames, so that frames of all VLANs look \
         untagged, and its driver does not tell the tags; `ethtool -K {name} rxvlan off` (and with veth, `txvlan off \
         tx off` at the other end, which leaves checksums unfinished too) keeps them"
    )
}

/// What is decided once for an interface.
#[derive(Clone, Copy)]
struct ChosenHook {
    choice: HookChoice,
    gets_unfinished: bool,
}

/// The states of all interfaces, by port number.
pub struct DeviceReader {
    names: Vec<String>,
    rule: HookRule,
    taken: TakenHooks,
    /// By index and birth: the choice for an interface is made once, when it comes.
    chosen: BTreeMap<(u32, u64), ChosenHook>,
    features: FeatureReader,
    states: Vec<DeviceState>,
    /// The states that the log has.
    described: Vec<DeviceState>,
    read_at: Option<Instant>,
}

impl DeviceReader {
    /// Reads these interfaces. `taken` are the hooks of programs whose place is taken.
    pub fn new(names: &[String], rule: HookRule, taken: TakenHooks) -> DeviceReader {
        DeviceReader {
            names: names.to_vec(),
            rule,
            taken,
            chosen: BTreeMap::new(),
            features: FeatureReader::open(),
            states: Vec::new(),
            described: Vec::new(),
            read_at: None,
        }
    }

    /// Where the program of a port runs, if the port's interface exists.
    pub fn choice(&self, port: u16) -> Option<HookChoice> {
        let state = self.states.get(usize::from(port)).filter(|state| state.device.index != 0);
        state.map(|state| state.choice)
    }

    /// Whether frames leave without queueing disciplines.
    pub fn leave_unqueued(&self) -> bool {
        // An interface that does not exist is as one at tc.
        self.rule.leaves_unqueued() || self.states.iter().any(|state| state.choice.leaves_unqueued())
    }

    /// Chooses freely for interfaces that come from now on.
    pub fn forget_taken(&mut self) {
        self.taken.clear();
    }

    /// The present states.
    pub fn read(&mut self, mirror: &Mirror) -> Vec<DeviceState> {
        let device = |port| {
            let index = mirror.port_link(port).map_or(0, |link| link.index);
            (index, mirror.link_birth(index))
        };
        let devices: Vec<(u32, u64)> = (0..self.names.len()).map(device).collect();
        let known = self.states.iter().map(|state| (state.device.index, state.birth));
        let is_due = self.read_at.is_none_or(|read| read.elapsed() >= OFFLOAD_CHECK);
        if is_due || !known.eq(devices.iter().copied()) || self.features.have_changed() {
            self.chosen.retain(|device, _| devices.contains(device));
            let states = (0..).zip(devices).map(|(port, device)| self.state(port, device));
            (self.states, self.read_at) = (states.collect(), Some(Instant::now()));
        }
        self.states.clone()
    }

    /// Lines for the log about interfaces that have changed since the last call.
    pub fn changes(&mut self) -> Vec<(EventKind, String)> {
        let described = std::mem::replace(&mut self.described, self.states.clone());
        let states = self.names.iter().zip(&self.states).enumerate();
        let changed = states.filter(|(port, (_, state))| described.get(*port) != Some(state));
        let lines = |name: &String, state: &DeviceState| {
            let does = (EventKind::Router, state.describe(name));
            iter::once(does).chain(state.warning(name).map(|warning| (EventKind::Warning, warning)))
        };
        changed.flat_map(|(_, (name, state))| lines(name, state)).collect()
    }

    fn state(&mut self, port: usize, (index, birth): (u32, u64)) -> DeviceState {
        let (name, features) = (self.names[port].as_str(), self.features.known(index));
        if index == 0 {
            return DeviceState {
                device: XdpDevice::able(0),
                birth,
                tags: TagPlace::Frame,
                choice: ABSENT,
                gets_unfinished: false,
            };
        }
        let choose = || {
            let choice = self.rule.choose(name, features, &self.taken);
            ChosenHook { choice, gets_unfinished: choice.hook == Hook::Driver && is_veth(name) }
        };
        let ChosenHook { choice, gets_unfinished } =
            *self.chosen.entry((index, birth)).or_insert_with(choose);
        let features = features.unwrap_or(XdpFeatures::UNKNOWN);
        DeviceState {
            device: device(index, choice.hook, features),
            birth,
            tags: tags(name, choice.hook, features),
            choice,
            gets_unfinished,
        }
    }

    /// Refuses interfaces whose frames the program would take for untagged ones.
    pub fn check(&mut self, mirror: &Mirror) -> Result<(), DaemonError> {
        let states = self.read(mirror);
        let hidden = states.iter().zip(&self.names).find(|(state, _)| state.tags == TagPlace::Nowhere);
        hidden.map_or(Ok(()), |(_, name)| Err(BadInput(strips_tags(name)).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(takes_redirected: bool) -> DeviceState {
        DeviceState {
            device: XdpDevice { takes_redirected, ..XdpDevice::able(7) },
            birth: 1,
            tags: TagPlace::Frame,
            choice: HookChoice { hook: Hook::Driver, reason: HookReason::Configured },
            gets_unfinished: false,
        }
    }

    /// The hook of each interface is chosen when it comes.
    #[test]
    fn frames_leave_without_disciplines_once_an_interface_has_the_program_at_xdp() {
        let mut reader = DeviceReader::new(&["eth1".to_owned()], HookRule::Best, TakenHooks::new());
        assert!(!reader.leave_unqueued());
        reader.states = vec![DeviceState { choice: ABSENT, ..state(true) }];
        assert!(!reader.leave_unqueued());
        reader.states = vec![state(true)];
        assert!(reader.leave_unqueued());
        reader.rule = HookRule::Always(state(true).choice);
        reader.states.clear();
        assert!(reader.leave_unqueued(), "by any interface that comes");
    }

    /// Otherwise ping works then, and TCP and UDP do not.
    #[test]
    fn what_has_a_veth_device_take_frames_has_its_senders_finish_checksums_too() {
        let advised = [state(false).describe("eth1"), strips_tags("eth1")];
        assert!(advised.iter().all(|line| line.contains("tx off")), "{advised:?}");
    }

    #[test]
    fn unfinished_checksums_are_warned_of_where_the_program_would_forward_them() {
        assert_eq!(state(true).warning("eth1"), None);
        let warning = DeviceState { gets_unfinished: true, ..state(true) }.warning("eth1").unwrap();
        assert!(
            warning.starts_with("interface eth1: ") && warning.contains("`ethtool -K PEER tx off`"),
            "{warning}"
        );
    }
}
