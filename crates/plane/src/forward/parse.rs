//! First stage: finds the correct packets and gathers their destinations.

use super::stage_state::StageState;
use super::{fast_parse, short_burst, slow_parse};
use crate::burst::Packet;
use crate::view::View;

#[inline]
pub(super) fn parse(state: &mut StageState, view: &View, packets: &mut [Packet<'_>]) {
    match packets.first() {
        Some(first) if state.prefetches && short_burst::pays(first, packets.len()) => {
            short_burst::read(state, view, packets);
        }
        _ => fast_parse::read(state, view, packets, 0..packets.len()),
    }
    for at in 0..state.exceptions.len() {
        let position = state.exceptions.get(at);
        slow_parse::examine(state, view, position, packets[position]);
    }
}
