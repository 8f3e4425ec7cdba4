//! What every loaded table must do: be written as text and read back the same.

use std::path::Path;

use fullview_table::Table;
use fullview_table::feed::{
    self, Options,
    write::{Dialect, Numbers, write},
};

fn written(table: &Table, dialect: Dialect) -> Vec<u8> {
    let mut out = Vec::new();
    write(table, dialect, &mut out).expect("memory takes everything");
    out
}

pub fn check(data: &[u8]) {
    // A bound that inputs of a few kilobytes can reach only when packed.
    let options = Options { max_routes: 10_000, ..Options::default() };
    match feed::read(data, Path::new("input"), &options) {
        Ok(loaded) => {
            let text = written(&loaded.table, Dialect::Text);
            let again = feed::read(text.as_slice(), Path::new("text"), &options).expect("our own text");
            assert_eq!(again.report.without_next_hop, 0);
            assert_eq!(written(&again.table, Dialect::Text), text);
            assert!(!written(&loaded.table, Dialect::Bird(Numbers::Blackhole)).is_empty());
        }
        Err(error) => assert!(error.to_string().starts_with("input")),
    }
}
