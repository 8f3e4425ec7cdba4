//! The files that all peers read.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use fullview_table::{Address, Family, NextHop, Rib, Table};
use tempfile::TempDir;

use crate::subject::keys::Keys;

/// A folder with the table and the streams of keys with their answers (`peers/README.md`). It is removed with this value.
pub struct PeerFiles {
    folder: TempDir,
}

impl PeerFiles {
    /// Writes the routes of both families.
    pub fn new(table: &Table) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut routes = BufWriter::new(File::create(folder.path().join("table.txt"))?);
        write_routes(&mut routes, &table.inet)?;
        write_routes(&mut routes, &table.inet6)?;
        routes.flush()?;
        Ok(PeerFiles { folder })
    }

    /// Where they are.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds a stream. IPv4 keys are little-endian integers, IPv6 keys are in network order.
    pub fn add<A: Address + Into<u128>>(&self, name: &str, keys: &Keys<A>) -> io::Result<()> {
        let create = |what: &str| {
            let name = format!("{name}.{}.{what}", A::FAMILY);
            File::create(self.folder.path().join(name)).map(BufWriter::new)
        };
        let (mut addrs, mut answers) = (create("keys")?, create("answers")?);
        keys.addrs.iter().try_for_each(|key| match A::FAMILY {
            Family::Inet => addrs.write_all(&(*key).into().to_le_bytes()[..4]),
            Family::Inet6 => addrs.write_all(&(*key).into().to_be_bytes()),
        })?;
        keys.expected.iter().try_for_each(|NextHop(hop)| answers.write_all(&hop.to_le_bytes()))?;
        addrs.flush()?;
        answers.flush()
    }
}

fn write_routes<A: Address>(to: &mut impl Write, rib: &Rib<A>) -> io::Result<()> {
    rib.iter().try_for_each(|route| writeln!(to, "{} {}", route.prefix, route.next_hop.0))
}
