//! The states that a filter gets from the router whose place this one takes.

use std::collections::HashMap;

use fullview_filter::handover::{ImportError, ImportSummary, StateImport};

use super::control_plane::ControlPlane;
use super::running_filter::WorkerFilter;
use crate::events::EventKind;
use crate::takeover::{Predecessor, TakeoverError};

/// Has the running router end, and takes the states of its filter. They come when it no longer forwards, so that none changes
/// afterwards.
pub fn end_predecessor(
    predecessor: &mut Predecessor,
    interfaces: &[String],
    filter: Option<&mut WorkerFilter>,
    plane: &ControlPlane,
) -> Result<(), TakeoverError> {
    let (kind, text) = match filter {
        Some(filter) => describe(take_states(predecessor, interfaces, filter, plane)?),
        None => {
            predecessor.end(interfaces, &mut |_| {})?;
            (EventKind::Router, "the states of its filter end, because this router has none".to_owned())
        }
    };
    if predecessor.router().filters {
        plane.log.line(plane.now(), kind, &text);
    }
    Ok(())
}

fn take_states(
    predecessor: &mut Predecessor,
    interfaces: &[String],
    WorkerFilter { filter, .. }: &mut WorkerFilter,
    plane: &ControlPlane,
) -> Result<(ImportSummary, Result<(), ImportError>), TakeoverError> {
    let numbers = interface_numbers(plane);
    let number = |name: &str| numbers.get(name).copied();
    let clock = filter.clock();
    let (rules, worker) = filter.parts();
    let (mut import, mut result) = (StateImport::new(rules, worker, &number), Ok(()));
    predecessor.end(interfaces, &mut |bytes| {
        // What follows after an error is read only to learn when the other process has ended.
        if result.is_ok() {
            result = import.feed(clock(), bytes);
        }
    })?;
    let (summary, is_whole) = import.finish();
    Ok((summary, result.and(is_whole)))
}

fn interface_numbers(plane: &ControlPlane) -> HashMap<String, u16> {
    let view = plane.mirror.views().current();
    let names = view.parts().interfaces.iter().map(|interface| interface.name.clone());
    names.zip(0..).collect()
}

fn describe((summary, result): (ImportSummary, Result<(), ImportError>)) -> (EventKind, String) {
    let ImportSummary { states, without_rule, no_room, no_interface } = summary;
    let mut text = format!("{states} states of its filter go on");
    let reasons = [
        (without_rule, "of them are of rules that this one does not have"),
        (no_room, "end, because the tables of states and sources have no room for them"),
        (no_interface, "end, because they hold on an interface that this one does not have"),
    ];
    for (count, reason) in reasons.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!("; {count} {reason}");
    }
    match result {
        Ok(()) if no_room + no_interface == 0 => (EventKind::Router, text),
        Ok(()) => (EventKind::Warning, text),
        Err(error) => (EventKind::Warning, format!("{text}; the others end: {error}")),
    }
}
