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

use std::num::ParseIntError;
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Result, anyhow, bail};

const USAGE: &str = "usage: fullview-on-bed bed TABLE ALGORITHM PORTS BURST, or \
                     fullview-on-bed memif TABLE ALGORITHM PORTS BURST SOCKET [CORE]";

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
    let ports = number(ports, "PORTS")?;
    let forwarder = router::forwarder(Path::new(table), algorithm, ports)?;
    match (place.as_str(), rest) {
        ("bed", [burst]) => bed::run(forwarder, ports, number(burst, "BURST")?),
        ("memif", [burst, socket, core @ ..]) => {
            let core = core.first().map(|core| number(core, "CORE")).transpose()?;
            memif::run(forwarder, ports, number(burst, "BURST")?, socket, core)
        }
        _ => bail!(USAGE),
    }
}

fn number<N: FromStr<Err = ParseIntError>>(text: &str, name: &str) -> Result<N> {
    text.parse().map_err(|error| anyhow!("{name} is {text}: {error}; {USAGE}"))
}
