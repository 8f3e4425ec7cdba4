//! A device under test, which receives and sends frames.

use std::fmt::{self, Display};

use crate::topology::SIDES;

/// The frames that a device sent, in their order on each side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output(pub [Vec<Vec<u8>>; SIDES.len()]);

/// A router configured as [`crate::topology`] says.
pub trait Dut {
    /// Sends a frame to the device on one side, and returns what the device sent because of it.
    fn exchange(&mut self, side: usize, frame: &[u8]) -> Output;

    /// Waits until the device has sent as many frames on each side as `awaited` says, or until a time limit.
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

/// Prints the Ethernet header and then groups of four bytes, up to a length that a reader can take in.
fn hex(frame: &[u8]) -> String {
    const SHOWN: usize = 160;
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let shown = &frame[..frame.len().min(SHOWN)];
    let (ethernet, rest) = shown.split_at(shown.len().min(14));
    let groups: Vec<_> = rest.chunks(4).map(digits).collect();
    format!("{} bytes: {} | {}", frame.len(), digits(ethernet), groups.join(" "))
}
