//! Without programs in the kernel: it has a copy of every frame, and answers what is for this host.

use std::os::fd::BorrowedFd;

use crate::mirror::Mirror;
use crate::route::LinkIndex;
use anyhow::bail;
use fullview_plane::burst::Slot;
use fullview_plane::port::link::Link;
use fullview_plane::port::packet::PacketOptions;

use crate::error::BadInput;

/// Nothing is to be done.
pub struct Share;

impl Share {
    pub fn new(_workers: usize) -> anyhow::Result<Share> {
        Ok(Share)
    }

    pub fn follow(&mut self, _mirror: &Mirror) -> anyhow::Result<()> {
        Ok(())
    }

    pub fn options(&mut self) -> anyhow::Result<PacketOptions<'_>> {
        Ok(PacketOptions::default())
    }

    pub fn take(&mut self, _interface: &str) -> anyhow::Result<()> {
        Ok(())
    }

    pub fn redirect(&mut self, _link: &Link, _sockets: &[BorrowedFd<'_>]) -> anyhow::Result<&'static str> {
        bail!(BadInput(
            "a program in the kernel redirects frames to AF_XDP sockets: build with --features bpf".into()
        ))
    }

    pub fn pause(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    pub fn keep(&mut self, _links: &[LinkIndex]) {}

    /// One for each worker.
    pub fn giver(&mut self) -> Giver {
        Giver
    }

    pub fn take_back(&mut self, _giver: Giver) {}
}

/// The kernel has the frame already.
pub struct Giver;

impl Giver {
    pub fn give(&mut self, _link: u32, _packet: &Slot) {}

    pub fn flush(&mut self) {}
}
