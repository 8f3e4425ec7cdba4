//! A state as bytes, with which another process goes on. Times are ages, because the other process may have another clock.

use super::entry::{CONNECTED, ColdState, HotState};
use super::phase::Phase;
use crate::address::Address;
use crate::fields::{Fields, PutFields};

/// A state whose rule, timeouts, source and interface have the numbers of the process that made the image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateImage {
    pub hot: HotState,
    pub cold: ColdState,
}

const HIGHEST_PHASE: u8 = Phase::Reset as u8;

impl StateImage {
    /// Adds its fields to bytes.
    pub fn write(&self, now: u32, to: &mut Vec<u8>) {
        let (hot, cold) = (&self.hot, &self.cold);
        write_flow(hot, to);
        to.put(now.wrapping_sub(hot.last).to_le_bytes());
        write_tracking(hot, to);
        to.put(hot.flags.to_le_bytes());
        to.put(now.wrapping_sub(cold.created).to_le_bytes());
        write_counts(cold, to);
        write_translation(cold, to);
    }

    /// Reads the fields. `None` if no state can have these.
    pub fn read(fields: &mut Fields<'_>, now: u32) -> Option<StateImage> {
        let mut hot = read_flow(fields)?;
        hot.last = now.wrapping_sub(fields.u32()?);
        read_tracking(fields, &mut hot)?;
        hot.flags = fields.u8()?;
        let created = now.wrapping_sub(fields.u32()?);
        let mut cold = ColdState { created, ..ColdState::FREE };
        read_counts(fields, &mut cold)?;
        read_translation(fields, &mut cold)?;
        let image = StateImage { hot, cold };
        image.is_possible().then_some(image)
    }

    /// The number of the source that it counts for.
    pub fn source(&self) -> Option<u32> {
        (self.cold.source & !CONNECTED).checked_sub(1)
    }

    /// Whether it counts as a connection of its source.
    pub fn is_connected(&self) -> bool {
        self.cold.source & CONNECTED != 0
    }

    /// Makes it count for another source.
    pub fn set_source(&mut self, number: u32) {
        self.cold.source = (self.cold.source & CONNECTED) | (number + 1);
    }

    /// Makes it count for no source.
    pub fn forget_source(&mut self) {
        self.cold.source = 0;
    }

    /// Whether its packets have other addresses or ports on one side.
    pub fn is_translated(&self) -> bool {
        self.hot.translation().side().is_some()
    }

    fn is_possible(&self) -> bool {
        let (hot, family) = (&self.hot, self.hot.source.family());
        let of_family = |address: Address| address.family() == family;
        let has_phase = |both: &u8| both & 15 <= HIGHEST_PHASE;
        hot.is_used()
            && hot.flags & 3 < 3
            && hot.flags >> 2 & 3 < 3
            && hot.phase_scale.iter().all(has_phase)
            && of_family(hot.destination)
            && (hot.translation().side().is_none() || of_family(self.cold.translated))
    }
}

fn write_flow(hot: &HotState, to: &mut Vec<u8>) {
    to.put(hot.source.0.to_le_bytes());
    to.put(hot.destination.0.to_le_bytes());
    to.put(hot.source_port.to_le_bytes());
    to.put(hot.destination_port.to_le_bytes());
    to.put(hot.protocol.to_le_bytes());
}

fn read_flow(fields: &mut Fields<'_>) -> Option<HotState> {
    Some(HotState {
        source: Address(fields.u128()?),
        destination: Address(fields.u128()?),
        source_port: fields.u16()?,
        destination_port: fields.u16()?,
        protocol: fields.u8()?,
        ..HotState::FREE
    })
}

fn write_tracking(hot: &HotState, to: &mut Vec<u8>) {
    let mut hot = *hot;
    hot.set_shared(false);
    for end in 0..2 {
        to.put(hot.sent[end].to_le_bytes());
        to.put(hot.limit[end].to_le_bytes());
        to.put(hot.window[end].to_le_bytes());
        to.put(hot.phase_scale[end].to_le_bytes());
    }
}

fn read_tracking(fields: &mut Fields<'_>, hot: &mut HotState) -> Option<()> {
    for end in 0..2 {
        hot.sent[end] = fields.u32()?;
        hot.limit[end] = fields.u32()?;
        hot.window[end] = fields.u16()?;
        hot.phase_scale[end] = fields.u8()?;
    }
    Some(())
}

fn write_counts(cold: &ColdState, to: &mut Vec<u8>) {
    to.put(cold.packets.to_le_bytes());
    to.put(cold.bytes.to_le_bytes());
    to.put(cold.rule.to_le_bytes());
    to.put(cold.timeouts.to_le_bytes());
    to.put(cold.source.to_le_bytes());
    to.put(cold.interface.to_le_bytes());
    to.put(cold.mark.to_le_bytes());
}

fn read_counts(fields: &mut Fields<'_>, cold: &mut ColdState) -> Option<()> {
    (cold.packets, cold.bytes) = (fields.u32()?, fields.u64()?);
    (cold.rule, cold.timeouts, cold.source) = (fields.u32()?, fields.u8()?, fields.u32()?);
    (cold.interface, cold.mark) = (fields.u16()?, fields.u16()?);
    Some(())
}

fn write_translation(cold: &ColdState, to: &mut Vec<u8>) {
    to.put(cold.translated.0.to_le_bytes());
    to.put(cold.translated_port.to_le_bytes());
}

fn read_translation(fields: &mut Fields<'_>, cold: &mut ColdState) -> Option<()> {
    (cold.translated, cold.translated_port) = (Address(fields.u128()?), fields.u16()?);
    Some(())
}
