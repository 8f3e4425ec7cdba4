//! The files that all peers read.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::Path;

use fullview_table::{Address, NextHop, Rib};
use tempfile::TempDir;

use crate::subject::keys::Keys;

/// A folder with a table and a stream of keys with its answers (`peers/README.md`). It is removed with this value.
pub struct PeerFiles {
    folder: TempDir,
}

impl PeerFiles {
    /// Writes the routes of one family, and a stream of that family. IPv4 keys are little-endian integers, IPv6 keys are
    /// in network order.
    pub fn new<A: Address>(rib: &Rib<A>, stream: &str, keys: &Keys<A>) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let create = |name: String| File::create(folder.path().join(name)).map(BufWriter::new);
        let mut routes = create("table.txt".into())?;
        write_routes(&mut routes, rib)?;
        routes.flush()?;
        let (mut addrs, mut answers) = (
            create(format!("{stream}.{}.keys", A::FAMILY))?,
            create(format!("{stream}.{}.answers", A::FAMILY))?,
        );
        let (stream, expected) = keys.once();
        stream.iter().try_for_each(|key| match key.to_ip().into() {
            IpAddr::V4(addr) => addrs.write_all(&addr.to_bits().to_le_bytes()),
            IpAddr::V6(addr) => addrs.write_all(&addr.octets()),
        })?;
        expected.iter().try_for_each(|NextHop(hop)| answers.write_all(&hop.to_le_bytes()))?;
        addrs.flush()?;
        answers.flush()?;
        Ok(PeerFiles { folder })
    }

    /// Where they are.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn write_routes<A: Address>(to: &mut impl Write, rib: &Rib<A>) -> io::Result<()> {
    rib.iter().try_for_each(|route| writeln!(to, "{} {}", route.prefix, route.next_hop.0))
}
