//! Reads statements: one file for each kind of statement or of its parts.

pub mod addresses;
pub mod antispoof;
pub mod block;
pub mod filter_options;
pub mod heads;
pub mod numbers;
pub mod pool;
pub mod rules;
pub mod scrub;
pub mod set;
pub mod state;
pub mod statement;
pub mod table;
pub mod tokens;
