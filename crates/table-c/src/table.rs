//! The table of the C interface, and its reader.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use fullview_table::feed::{self, Options};
use fullview_table::fib::registry::Registered;
use fullview_table::{Address, Change, NextHop, NextHops, Prefix, Target};

use crate::error::Error;
use crate::family::{Published, Routes};

/// Both families and the next hops that they share.
#[derive(Default)]
pub struct Table {
    pub(crate) inet: Routes<u32>,
    pub(crate) inet6: Routes<u128>,
    next_hops: NextHops,
}

/// A reader: it shares the published FIBs with the table.
pub struct Reader {
    pub(crate) inet: Arc<Published<u32>>,
    pub(crate) inet6: Arc<Published<u128>>,
}

/// The family that a call concerns.
#[derive(Clone, Copy)]
pub(crate) enum Families {
    Inet,
    Inet6,
}

impl Table {
    pub(crate) fn reader(&self) -> Reader {
        Reader { inet: self.inet.published(), inet6: self.inet6.published() }
    }

    /// Takes over the routes of a file, or changes nothing.
    pub(crate) fn load(&mut self, path: &Path) -> Result<(), Error> {
        let loaded = feed::load(path, &Options::default())?.table;
        let before = self.inet.replace(loaded.inet)?;
        if let Err(error) = self.inet6.replace(loaded.inet6) {
            self.inet.replace(before)?;
            return Err(error);
        }
        self.next_hops = loaded.next_hops;
        Ok(())
    }

    pub(crate) fn compile(&mut self, family: Families, algorithm: &str) -> Result<(), Error> {
        match family {
            Families::Inet => self.inet.compile(algorithm),
            Families::Inet6 => self.inet6.compile(algorithm),
        }
    }

    /// Applies one change given as text; the prefix determines the family.
    pub(crate) fn change(&mut self, prefix: &str, next_hop: Option<u16>) -> Result<(), Error> {
        if prefix.contains(':') {
            self.inet6.change(&[parsed(prefix, next_hop)?])
        } else {
            self.inet.change(&[parsed(prefix, next_hop)?])
        }
    }

    pub(crate) fn routes(&self, family: Families) -> usize {
        match family {
            Families::Inet => self.inet.rib().len(),
            Families::Inet6 => self.inet6.rib().len(),
        }
    }

    pub(crate) fn serving(&self, family: Families) -> Option<(&'static str, usize)> {
        match family {
            Families::Inet => self.inet.serving(),
            Families::Inet6 => self.inet6.serving(),
        }
    }

    /// Returns the index of a next hop given as an address or as a number.
    pub(crate) fn intern(&mut self, text: &str) -> Result<NextHop, Error> {
        let gateway = text.parse::<IpAddr>().map(Target::Gateway);
        let target = gateway.or_else(|_| text.parse().map(Target::Number));
        let target = target
            .map_err(|_| Error::argument(format!("next hop {text:?} is neither an address nor a number")))?;
        Ok(self.next_hops.intern(target)?)
    }

    pub(crate) fn target(&self, next_hop: NextHop) -> Option<String> {
        self.next_hops.target(next_hop).map(|target| target.to_string())
    }
}

fn parsed<A: Registered>(prefix: &str, next_hop: Option<u16>) -> Result<Change<A>, Error> {
    let prefix = prefix.parse().map_err(|error| Error::argument(format!("{error}")))?;
    Ok(Change { prefix, next_hop: next_hop.map(checked).transpose()? })
}

/// Makes a change from numbers; `index` is its place in the list, for the message.
pub(crate) fn change<A: Address>(
    index: usize,
    (addr, len): (A, u8),
    next_hop: Option<u16>,
) -> Result<Change<A>, Error> {
    let at = |error: String| Error::argument(format!("item {index}: {error}"));
    let prefix = Prefix::new(addr, len).ok_or_else(|| {
        at(format!("{}/{len} is not a prefix: it has bits set beyond its length", addr.to_ip()))
    })?;
    let next_hop = next_hop.map(checked).transpose().map_err(|error| at(error.to_string()))?;
    Ok(Change { prefix, next_hop })
}

fn checked(next_hop: u16) -> Result<NextHop, Error> {
    let refused = || Error::argument(format!("next hop {next_hop} is above {}", NextHop::MAX));
    (next_hop <= NextHop::MAX).then_some(NextHop(next_hop)).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::look_up;
    use fullview_table::Family;
    use std::io::Write;

    fn answers(table: &Table, addrs: &[u32]) -> Vec<u16> {
        let mut answers = vec![NextHop::NONE; addrs.len()];
        look_up(&table.reader().inet, addrs, &mut answers).unwrap();
        answers.into_iter().map(|hop| hop.0).collect()
    }

    #[test]
    fn changes_reach_readers_that_were_made_before() {
        let mut table = Table::default();
        let reader = table.reader();
        let mut answer = [NextHop::NONE];
        let error = look_up(&reader.inet, &[0xc612_0001], &mut answer).unwrap_err();
        assert!(matches!(error, Error::NotCompiled(Family::Inet)), "{error}");
        table.change("198.18.0.0/15", Some(7)).unwrap();
        table.compile(Families::Inet, "auto").unwrap();
        look_up(&reader.inet, &[0xc612_0001], &mut answer).unwrap();
        assert_eq!(answer, [NextHop(7)]);
        for algorithm in u32::ALGORITHMS {
            table.compile(Families::Inet, algorithm.name()).unwrap();
            table.change("198.18.0.0/16", Some(8)).unwrap();
            assert_eq!(answers(&table, &[0xc612_0001, 0xc613_0001]), [8, 7], "{}", algorithm.name());
            table.change("198.18.0.0/16", None).unwrap();
            assert_eq!(answers(&table, &[0xc612_0001, 0xc613_0001]), [7, 7], "{}", algorithm.name());
        }
        drop(table);
        look_up(&reader.inet, &[0xc612_0001], &mut answer).unwrap();
        assert_eq!(answer, [NextHop(7)], "a reader outlives its table");
    }

    #[test]
    fn a_file_that_is_refused_changes_nothing() {
        let mut table = Table::default();
        table.change("198.18.0.0/15", Some(7)).unwrap();
        table.compile(Families::Inet, "dpdk_lpm4").unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "10.0.0.0/8 192.0.2.1\n10.0.0.0/99").unwrap();
        let error = table.load(file.path()).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        assert_eq!(answers(&table, &[0xc612_0001, 0x0a00_0001]), [7, 0]);
        std::fs::write(file.path(), "10.0.0.0/8 192.0.2.1\n").unwrap();
        table.load(file.path()).unwrap();
        assert_eq!(answers(&table, &[0xc612_0001, 0x0a00_0001]), [0, 1]);
        assert_eq!(table.target(NextHop(1)).as_deref(), Some("192.0.2.1"));
    }

    #[test]
    fn automatic_choice_follows_the_table_when_it_is_compiled_again() {
        let mut table = Table::default();
        table.compile(Families::Inet, "auto").unwrap();
        let small = table.serving(Families::Inet).unwrap().0;
        let routes: Vec<_> =
            (0..5000u32).map(|n| change(0, (n << 12, 20), Some(n as u16 % 9 + 1)).unwrap()).collect();
        table.inet.change(&routes).unwrap();
        table.compile(Families::Inet, "auto").unwrap();
        let large = table.serving(Families::Inet).unwrap().0;
        assert_ne!(small, large);
        assert_eq!(answers(&table, &[4999 << 12]), [4999 % 9 + 1]);
    }

    #[test]
    fn mistakes_are_named() {
        let mut table = Table::default();
        let mistakes = [
            table.change("198.18.0.1/15", Some(1)),
            table.change("198.18.0.0/15", Some(u16::MAX)),
            table.change("10.0.0.0", None),
            table.compile(Families::Inet6, "nothing"),
            table.intern("nowhere").map(drop),
            change::<u32>(3, (1, 8), Some(1)).map(drop),
        ];
        let parts =
            ["198.18.0.0/15", "65534", "not a prefix", "auto, linear", "nowhere", "item 3: 0.0.0.1/8"];
        for (mistake, part) in mistakes.into_iter().zip(parts) {
            let message = mistake.unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
