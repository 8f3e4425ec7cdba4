//! The C interface of `fullview-table`. What C programs see is `include/fullview_table.h`, made from [`ffi`].
//!
//! `table` and `family` are the thing itself, in safe code; `ffi` is the boundary: pointers in, values out, and the
//! only `unsafe` of this crate.
#![warn(missing_docs)]

mod error;
mod family;
pub mod ffi;
mod table;
