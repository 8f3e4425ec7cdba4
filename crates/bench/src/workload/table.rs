//! The routes of an experiment: synthetic, two static ones, or a file.

use std::path::Path;

use fullview_router::feed::from_file;
use fullview_table::feed::NextHopModel;
use fullview_table::feed::synthetic::Synthetic;
use fullview_table::nexthop::TooManyNextHops;
use fullview_table::{Address, NextHop, Prefix, Rib, Table, Target};

use crate::error::{BenchError, require};
use crate::settings::TableSettings;
use fullview_router::progress;

/// Report 003's table, and the largest one that can be asked for.
const DEFAULT: (usize, usize) = (712_793, 104_034);
const LARGEST: (usize, usize) = (2_000_000, 500_000);

/// The test networks of RFC 2544 and RFC 5180, halved: the two static routes of the reports (198.18.0.0/16,
/// 198.19.0.0/16; 2001:2::/49, 2001:2:0:8000::/49).
const STATIC_INET: [(u32, u8); 2] = [(0xc612_0000, 16), (0xc613_0000, 16)];
const STATIC_INET6: [(u128, u8); 2] = [(0x2001_0002 << 96, 49), (0x2001_0002_0000_8000 << 64, 49)];

/// Loads or makes the table that the settings ask for.
pub fn load(settings: &TableSettings) -> Result<Table, BenchError> {
    let mut table = match settings.source.as_deref().unwrap_or("synthetic") {
        "synthetic" => synthetic(settings)?,
        "two-routes" => Table::default(),
        file => from_file(Path::new(file), next_hops(settings)?)?,
    };
    if settings.static_routes.unwrap_or(true) {
        add_static_routes(&mut table)?;
    }
    Ok(table)
}

/// How the report names it.
pub fn describe(settings: &TableSettings, table: &Table) -> String {
    let source = settings.source.as_deref().unwrap_or("synthetic");
    format!(
        "table: {source}, {} inet and {} inet6 routes over {} next hops{} (digest {:016x})",
        table.inet.len(),
        table.inet6.len(),
        table.next_hops.len(),
        if settings.static_routes.unwrap_or(true) {
            ", the 2 static routes of each family among them"
        } else {
            ""
        },
        digest(table)
    )
}

/// FNV-1a over every route, so that a resumed campaign notices another table of the same name.
fn digest(table: &Table) -> u64 {
    let inet =
        table.inet.iter().map(|route| (u128::from(route.prefix.first()), route.prefix.len(), route.next_hop));
    let inet6 = table.inet6.iter().map(|route| (route.prefix.first(), route.prefix.len(), route.next_hop));
    inet.chain(inet6).fold(0xcbf2_9ce4_8422_2325, |digest, (first, len, next_hop)| {
        let bytes = first.to_be_bytes().into_iter().chain([len]).chain(next_hop.0.to_be_bytes());
        bytes.fold(digest, |digest: u64, byte| (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    })
}

fn next_hops(settings: &TableSettings) -> Result<NextHopModel, BenchError> {
    let count = settings.next_hops.unwrap_or(64);
    let most = NextHop::MAX - STATIC_INET.len() as u16;
    require((1..=most).contains(&count), || format!("table.next-hops = {count}: give 1 to {most}"))?;
    Ok(NextHopModel { count, seed: settings.seed.unwrap_or(1), ..NextHopModel::default() })
}

fn synthetic(settings: &TableSettings) -> Result<Table, BenchError> {
    let (inet, inet6) = (settings.inet.unwrap_or(DEFAULT.0), settings.inet6.unwrap_or(DEFAULT.1));
    for (what, asked, largest) in [("inet", inet, LARGEST.0), ("inet6", inet6, LARGEST.1)] {
        require(asked <= largest, || {
            format!("table.{what} = {asked}: at most {largest} routes can be made")
        })?;
    }
    let _spinner = progress::spinner("making the table");
    let model = next_hops(settings)?;
    let seed = model.seed;
    Ok(Synthetic { inet, inet6, next_hops: model, seed }.table()?)
}

fn add_static_routes(table: &mut Table) -> Result<(), TooManyNextHops> {
    for number in 0..2u32 {
        let hop = table.next_hops.intern(Target::Number(u32::MAX - number))?;
        announce(&mut table.inet, STATIC_INET[number as usize], hop);
        announce(&mut table.inet6, STATIC_INET6[number as usize], hop);
    }
    Ok(())
}

fn announce<A: Address>(rib: &mut Rib<A>, (network, len): (A, u8), hop: NextHop) {
    rib.announce(Prefix::containing(network, len), hop);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_static_routes_are_those_of_the_reports() {
        let settings = TableSettings { source: Some("two-routes".into()), ..TableSettings::default() };
        let table = load(&settings).unwrap();
        let inet: Vec<_> = table.inet.iter().map(|route| route.prefix.to_string()).collect();
        let inet6: Vec<_> = table.inet6.iter().map(|route| route.prefix.to_string()).collect();
        assert_eq!(inet, ["198.18.0.0/16", "198.19.0.0/16"]);
        assert_eq!(inet6, ["2001:2::/49", "2001:2:0:8000::/49"]);
    }
}
