//! The C interface of `fullview-table`. C programs include `include/fullview_table.h`, which is generated from [`ffi`].
//!
//! `table` and `family` implement the interface in safe code. `ffi` is the boundary, which converts pointers to
//! references and values, and has the only `unsafe` of this crate.
#![warn(missing_docs)]

mod error;
mod family;
pub mod ffi;
pub mod status;
mod table;
