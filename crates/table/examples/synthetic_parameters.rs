//! Counts the parameters of the synthetic model from a real table and prints them as the counts of a data file:
//! `cargo run --release -p fullview-table --example synthetic_parameters -- full-view.txt.gz inet`, and the same with
//! `inet6`. They go below the comments of `crates/table/src/feed/synthetic/parameters/inet.txt` and `inet6.txt`.

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
