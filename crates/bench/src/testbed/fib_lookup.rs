//! The program that looks up in the kernel's tables with `bpf_fib_lookup`, by itself.

use aya::programs::xdp::XdpMode;
use fullview_plane::bpf::{ProgramAttachment, attach};

use super::error::TestbedError;
use super::programs::TESTBED;

/// Attaches it to a device of the calling thread's namespace, until the value is dropped.
pub fn attach_fib_lookup(device: u32) -> Result<ProgramAttachment, TestbedError> {
    let mut loaded = TESTBED.load()?;
    Ok(attach(loaded.xdp("fib_lookup")?, device, XdpMode::Driver)?)
}
