//! What a filter gets from the router whose place this one takes: states, and tables of addresses.

use std::collections::HashMap;
use std::sync::Arc;

use fullview_filter::handover::{ImportError, ImportSummary, Imported, StateImport, StateOwners};
use fullview_plane::flow_owner::owner;

use super::control_plane::ControlPlane;
use super::running_filter::WorkerFilter;
use crate::events::EventKind;
use crate::takeover::{Predecessor, TakeoverError};

/// Has the running router end, and takes the states and tables of its filter. They come when it no longer forwards, so that none
/// changes afterwards. The workers, whose parts of this router's filter these are, do not run yet.
pub fn end_predecessor(
    predecessor: &mut Predecessor,
    interfaces: &[String],
    filters: &mut [WorkerFilter],
    plane: &mut ControlPlane,
) -> Result<(), TakeoverError> {
    let (kind, text) = match filters {
        [first, others @ ..] => take_on(predecessor, interfaces, (first, others), plane)?,
        [] => {
            predecessor.end(interfaces, &mut |_| {})?;
            (EventKind::Router, "what its filter remembers ends, because this router has none".to_owned())
        }
    };
    if predecessor.router().filters {
        plane.log.line(plane.now(), kind, &text);
    }
    Ok(())
}

/// Goes on with what the other filter remembered. Returns what the log says about it.
fn take_on(
    predecessor: &mut Predecessor,
    interfaces: &[String],
    (first, others): (&mut WorkerFilter, &mut [WorkerFilter]),
    plane: &mut ControlPlane,
) -> Result<(EventKind, String), TakeoverError> {
    let imported = import(predecessor, interfaces, (first, others), plane)?;
    let Imported { summary, tables, result } = imported;
    if let Some(running) = &mut plane.filter {
        running.begin_with([first].into_iter().chain(others), tables);
    }
    Ok(describe(summary, result))
}

fn import(
    predecessor: &mut Predecessor,
    interfaces: &[String],
    (first, others): (&mut WorkerFilter, &mut [WorkerFilter]),
    plane: &ControlPlane,
) -> Result<Imported, TakeoverError> {
    let numbers = interface_numbers(plane);
    let number = |name: &str| numbers.get(name).copied();
    let (clock, rules, workers) = (first.filter.clock(), Arc::clone(first.filter.rules()), 1 + others.len());
    let owners = StateOwners {
        first: first.filter.parts().1,
        others: others.iter_mut().map(|other| other.filter.parts().1).collect(),
        owner: &|source, destination| owner(source, destination, workers),
    };
    let (mut import, mut result) = (StateImport::new(&rules, owners, &number), Ok(()));
    predecessor.end(interfaces, &mut |bytes| {
        // What follows after an error is read only to learn when the other process has ended.
        if result.is_ok() {
            result = import.feed(clock(), bytes);
        }
    })?;
    let imported = import.finish();
    Ok(Imported { result: result.and(imported.result), ..imported })
}

fn interface_numbers(plane: &ControlPlane) -> HashMap<String, u16> {
    let view = plane.mirror.views().current();
    let names = view.parts().interfaces.iter().map(|interface| interface.name.clone());
    names.zip(0..).collect()
}

fn describe(summary: ImportSummary, result: Result<(), ImportError>) -> (EventKind, String) {
    let ImportSummary { states, without_rule, no_room, no_interface, translated, tables } = summary;
    let mut text = format!("{states} states of its filter go on");
    let parts = [
        (without_rule, "of them are of rules that this one does not have"),
        (no_room, "end, because the tables of states and sources have no room for them"),
        (no_interface, "end, because they hold on an interface that this one does not have"),
        (translated, "end, because they translate, and several workers do not"),
        (tables, "tables of addresses go on with what they have"),
    ];
    for (count, reason) in parts.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!("; {count} {reason}");
    }
    match result {
        Ok(()) if no_room + no_interface + translated == 0 => (EventKind::Router, text),
        Ok(()) => (EventKind::Warning, text),
        Err(error) => {
            let lost = "the other states end, and the other tables have what the rules say";
            (EventKind::Warning, format!("{text}; {lost}: {error}"))
        }
    }
}
