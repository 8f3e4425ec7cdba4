//! Turns rules with lists into rules without: addresses are looked up, defaults filled in, contradictions refused.

pub mod antispoof;
pub mod binat;
pub mod budget;
pub mod check;
pub mod combine;
pub mod labels;
pub mod pools;
pub mod resolve;
pub mod rules;
pub mod states;
pub mod tables;
