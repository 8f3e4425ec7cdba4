//! fullview's forwarding loop beside other routers:
//!
//!     fullview-on-bed bed TABLE ALGORITHM PORTS BURST                   in memory, on the bed of peers/bed
//!     fullview-on-bed memif TABLE ALGORITHM PORTS BURST SOCKET [CORE]   between memif ports, whose other ends peers/dpdk/memif has
//!
//! ALGORITHM is the one for IPv4; IPv6 has btree6. Packets arrive at port 0. The next hop of a route is the number of the egress port, 1 to PORTS, with the neighbour
//! 02:00:00:00:00:PORT. Formats and protocol: peers/README.md.

mod bed;
mod ffi;
mod memif;
mod router;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "usage: fullview-on-bed bed TABLE ALGORITHM PORTS BURST, or fullview-on-bed memif TABLE ALGORITHM PORTS BURST SOCKET [CORE]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fullview-on-bed: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [place, table, algorithm, ports, rest @ ..] = arguments.as_slice() else { bail!(USAGE) };
    let ports = ports.parse()?;
    let forwarder = router::forwarder(Path::new(table), algorithm, ports)?;
    match (place.as_str(), rest) {
        ("bed", [burst]) => bed::run(forwarder, ports, burst.parse()?),
        ("memif", [burst, socket, core @ ..]) => {
            let (burst, core) = (burst.parse()?, core.first());
            memif::run(forwarder, &memif::Ends { ports, socket, burst, core })
        }
        _ => bail!(USAGE),
    }
}
