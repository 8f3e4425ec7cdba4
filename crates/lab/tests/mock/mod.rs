//! What the tests of whole campaigns share.

pub mod bench;
pub mod question;
