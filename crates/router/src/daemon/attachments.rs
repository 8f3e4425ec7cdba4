//! The interfaces that the program in the kernel is attached to. One that comes, goes or changes touches no other.

use std::collections::BTreeMap;
use std::time::Duration;

use fullview_plane::engine::{Engine, EngineError, XdpPlace};

use super::hook::Hook;
use super::link_presence::is_gone;
use super::link_program::without_verifier_log;
use super::retry::Retry;
use super::xdp_devices::{DeviceState, TagPlace};
use crate::error::message;
use crate::events::EventKind;
use crate::route::LinkIndex;

/// A line for the log.
type Line = (EventKind, String);

/// What the program is attached for at an interface.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Attachment {
    birth: u64,
    tags: TagPlace,
    hook: Hook,
}

/// Why the program is not attached to an interface.
struct AttachRefusal {
    error: EngineError,
    retry: Retry,
}

/// By the index of the interface, which another one may have later.
#[derive(Default)]
pub struct Attachments {
    attached: BTreeMap<LinkIndex, Attachment>,
    refused: BTreeMap<LinkIndex, AttachRefusal>,
}

impl Attachment {
    fn of(state: &DeviceState) -> Attachment {
        Attachment { birth: state.birth, tags: state.tags, hook: state.choice.hook }
    }
}

impl Attachments {
    /// Detaches the program from interfaces that are gone, or that need it in another way now.
    pub fn detach_changed(&mut self, engine: &mut Engine, devices: &[DeviceState]) {
        let wanted: BTreeMap<_, _> =
            devices.iter().map(|state| (state.device.index, Attachment::of(state))).collect();
        let changed = self.attached.extract_if(.., |index, attached| wanted.get(index) != Some(attached));
        changed.for_each(|(index, _)| engine.detach(index));
        self.refused.retain(|index, _| wanted.contains_key(index));
    }

    /// Forgets all interfaces, as the engine has detached its programs.
    pub fn detach_all(&mut self, engine: &mut Engine) {
        std::mem::take(self).attached.into_keys().for_each(|index| engine.detach(index));
    }

    /// Attaches the program to the interfaces without it, by port. Returns lines about those that refuse it, and that did.
    pub fn attach_missing(
        &mut self,
        engine: &mut Engine,
        (names, devices): (&[String], &[DeviceState]),
        now: Duration,
    ) -> Vec<Line> {
        let missing: Vec<_> =
            names.iter().zip(devices).filter(|(_, state)| self.is_due(state.device.index, now)).collect();
        missing.into_iter().filter_map(|(name, state)| self.attach(engine, name, state, now)).collect()
    }

    fn is_due(&self, index: LinkIndex, now: Duration) -> bool {
        let waits = self.refused.get(&index).is_some_and(|refusal| refusal.retry.waits(now));
        index != 0 && !waits && !self.attached.contains_key(&index)
    }

    fn attach(
        &mut self,
        engine: &mut Engine,
        name: &str,
        state: &DeviceState,
        now: Duration,
    ) -> Option<Line> {
        let index = state.device.index;
        match attach(engine, state) {
            Ok(()) => {
                self.attached.insert(index, Attachment::of(state));
                self.refused.remove(&index).map(|_| accepted(name))
            }
            // Netlink will report that.
            Err(_) if is_gone(name, index) => None,
            Err(error) => {
                let line = refused(name, &error);
                let retry = self.refused.remove(&index).map(|refusal| refusal.retry).unwrap_or_default();
                let refusal = self.refused.entry(index).or_insert(AttachRefusal { error, retry });
                refusal.retry.fail(now).then_some(line)
            }
        }
    }

    /// Why the program is not attached to an interface, if that refuses it.
    pub fn refusal(&self, index: LinkIndex) -> Option<String> {
        self.refused.get(&index).map(|refusal| why(&refusal.error))
    }

    /// The first refusal, for a router that does not run without the program.
    pub fn take_refusal(&mut self) -> Option<EngineError> {
        self.refused.pop_first().map(|(_, refusal)| refusal.error)
    }
}

fn attach(engine: &mut Engine, state: &DeviceState) -> Result<(), EngineError> {
    let index = state.device.index;
    match (state.choice.hook, state.tags) {
        (Hook::Tcx, _) => engine.attach_at_tcx(index),
        (_, TagPlace::Driver) => engine.attach_reading_tags(index),
        (_, TagPlace::Nowhere) => Ok(()),
        (Hook::Driver, TagPlace::Frame) => engine.attach(index, XdpPlace::Driver),
        (Hook::Generic, TagPlace::Frame) => engine.attach(index, XdpPlace::BehindDriver),
    }
}

fn why(error: &EngineError) -> String {
    without_verifier_log(&message(error))
}

fn refused(name: &str, error: &EngineError) -> Line {
    let why = why(error);
    let text = format!("interface {name}: the kernel forwards what comes in by it: {why}; trying again");
    (EventKind::Warning, text)
}

fn accepted(name: &str) -> Line {
    (EventKind::Router, format!("interface {name}: the program forwards what comes in by it"))
}
