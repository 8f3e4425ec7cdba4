//! The status that calls return.
#![allow(non_camel_case_types)] // the names are those of the C header

/// The result of a call. fv_last_error() returns a message for it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FvStatus {
    /// The call succeeded.
    FV_OK = 0,
    /// An argument is wrong: a null pointer, text that is not a prefix, a next hop out of range.
    FV_ARGUMENT = 1,
    /// The file cannot be read, or is not a routing table.
    FV_FEED = 2,
    /// No algorithm of the family has this name.
    FV_ALGORITHM = 3,
    /// The algorithm cannot hold this table, or there is no memory.
    FV_COMPILE = 4,
    /// More than 65534 different next hops.
    FV_NEXT_HOPS = 5,
    /// The routes of this family were not compiled yet.
    FV_NOT_COMPILED = 6,
    /// There is a bug in this library. Only free the table concerned.
    FV_BUG = 7,
}
