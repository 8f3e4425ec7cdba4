//! Prefixes: what parses prints to something that parses to the same, and holds no bit beyond its length.
#![no_main]

use fullview_table::{Address, Prefix};

fn check<A: Address>(text: &str) {
    match text.parse::<Prefix<A>>() {
        Ok(prefix) => {
            assert_eq!(prefix.to_string().parse(), Ok(prefix));
            assert_eq!(Prefix::new(prefix.first(), prefix.len()), Some(prefix));
            assert!(prefix.contains(prefix.last()) && prefix.covers(prefix));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    check::<u32>(text);
    check::<u128>(text);
});
