//! Rule sets as `pfctl -nv` prints them.

pub mod addresses;
pub mod config;
pub mod options;
pub mod pools;
pub mod rules;
pub mod states;
