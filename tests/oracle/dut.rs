//! A device under test: whatever can be given frames and gives frames back.

use std::fmt::{self, Display};

use crate::topology::SIDES;

/// Frames that came out, by side, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output(pub [Vec<Vec<u8>>; SIDES.len()]);

/// A router configured as [`crate::topology`] says.
pub trait Dut {
    /// Sends a frame in on one side, and returns what came out because of it.
    fn exchange(&mut self, side: usize, frame: &[u8]) -> Output;

    /// Lets time pass until as many frames have come out on the sides as `awaited` says, or too much time has passed.
    fn wait(&mut self, awaited: [usize; SIDES.len()]) -> Output;
}

impl Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.iter().all(Vec::is_empty) {
            return writeln!(f, "    nothing");
        }
        for (side, frames) in SIDES.iter().zip(&self.0) {
            for frame in frames {
                writeln!(f, "    {:<7}{}", side.name, hex(frame))?;
            }
        }
        Ok(())
    }
}

/// Ethernet header, then the rest in groups of four bytes, cut where a reader would stop.
fn hex(frame: &[u8]) -> String {
    const SHOWN: usize = 160;
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let shown = &frame[..frame.len().min(SHOWN)];
    let (ethernet, rest) = shown.split_at(shown.len().min(14));
    let groups: Vec<_> = rest.chunks(4).map(digits).collect();
    format!("{} bytes: {} | {}", frame.len(), digits(ethernet), groups.join(" "))
}
