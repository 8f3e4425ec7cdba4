//! Text tables, also compressed: the loader recognises the compression by content.
#![no_main]

mod round_trip;

libfuzzer_sys::fuzz_target!(|data: &[u8]| round_trip::check(data));
