//! Counts the packets of a measurement in the kernel (`bpf/counter.c`).

use std::io;
use std::net::IpAddr;

use aya::maps::{Array, MapError, PerCpuArray};
use aya::programs::xdp::XdpMode;
use fullview_plane::bpf::{self, BpfError, BpfObject, LoadedObject, ProgramAttachment};
use rustix::net::{AddressFamily, SocketType, netdevice, socket};

const COUNTER: BpfObject =
    BpfObject::new("counter", aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/counter.o")));

/// Why packets cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum CounterError {
    #[error("interface {interface}: {error}")]
    Interface { interface: String, error: io::Error },
    #[error(transparent)]
    Bpf(#[from] BpfError),
    #[error("a BPF map: {0}")]
    Map(#[from] MapError),
}

/// A counter at an interface, until it is dropped.
pub struct PacketCounter {
    loaded: LoadedObject,
    _attached: ProgramAttachment,
}

impl PacketCounter {
    /// Counts packets to an address, in the driver if it can, else before the kernel's stack.
    pub fn start(interface: &str, destination: IpAddr) -> Result<PacketCounter, CounterError> {
        let device = index(interface)
            .map_err(|error| CounterError::Interface { interface: interface.into(), error })?;
        let mut loaded = COUNTER.load()?;
        loaded.map::<Array<_, [u8; 16]>>("destination")?.set(0, bytes(destination), 0)?;
        let program = loaded.xdp("count")?;
        let attached = match bpf::attach(program, device, XdpMode::Driver) {
            Err(_) => bpf::attach(program, device, XdpMode::Skb)?,
            Ok(attached) => attached,
        };
        Ok(PacketCounter { loaded, _attached: attached })
    }

    /// Counts those to any address from now on.
    pub fn count_all(&mut self) -> Result<(), CounterError> {
        Ok(self.loaded.map::<Array<_, [u8; 16]>>("destination")?.set(0, [0; 16], 0)?)
    }

    /// Packets since the start.
    pub fn packets(&mut self) -> Result<u64, CounterError> {
        let counted = self.loaded.map::<PerCpuArray<_, u64>>("counted")?;
        Ok(counted.get(&0, 0)?.iter().sum())
    }
}

/// As the program in the kernel reads it: an address of IPv4 with zeros after it.
fn bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&address.octets());
            bytes
        }
        IpAddr::V6(address) => address.octets(),
    }
}

/// The number of an interface.
pub fn index(interface: &str) -> io::Result<u32> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(netdevice::name_to_index(&socket, interface)?)
}
