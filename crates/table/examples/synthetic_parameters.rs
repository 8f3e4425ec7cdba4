//! Counts the parameters of the synthetic model from a real table and prints them as the text that holds them:
//! `cargo run --release -p fullview-table --example synthetic_parameters -- full-view.txt.gz inet >
//! crates/table/src/feed/synthetic/parameters/counted_inet.txt`, and the same with `inet6`.

use std::error::Error;

use fullview_table::Family;
use fullview_table::feed::synthetic::parameters::{INET, INET6};
use fullview_table::feed::{self, Options};

#[path = "../tests/support/measure.rs"]
mod measure;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, family] = arguments.as_slice() else { return Err("usage: TABLE inet|inet6".into()) };
    let table = feed::load(path.as_ref(), &Options::default())?.table;
    match Family::named(family).ok_or("the family is inet or inet6")? {
        Family::Inet => print!("{}", measure::measure(&table.inet, &INET)),
        Family::Inet6 => print!("{}", measure::measure(&table.inet6, &INET6)),
    }
    Ok(())
}
