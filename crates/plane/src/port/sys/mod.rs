//! Memory shared with the kernel: all `unsafe` of this crate, behind safe interfaces.
#![allow(unsafe_code)]

mod words;

pub(crate) use words::SharedWords;
