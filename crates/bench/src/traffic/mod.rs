//! The second flow run backwards: flows → frames → router → receiver.
//!
//! ```text
//! model ─▶ flow set ─▶ generator ─▶ ring ─▶ router ─▶ ring ─▶ sink
//!                         ▲                                    │
//!                         └────────── slots, first in first out┘
//! ```
//!
//! [`model`] chooses the five-tuples, [`flow`] keeps them ready to send, [`frame`] turns them into packets,
//! [`pace`] schedules them, [`sink`] counts and checks what comes out. [`one_core`] and [`two_cores`] run all of it against
//! a router and take the rates.

pub mod check;
pub mod flow;
pub mod frame;
mod free;
pub mod generator;
pub mod load;
pub mod model;
pub mod one_core;
pub mod pace;
pub mod range;
pub mod sequence;
pub mod sink;
pub mod two_cores;
pub mod zipf;
