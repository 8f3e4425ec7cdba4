//! What the Linux kernel tells us over netlink, and the routes and next hops that follow from it.
//!
//! ```text
//! socket → decode → event → mirror → tables (FIB framework), groups, next hops
//! ```
//!
//! [`mirror::Mirror`] is pure: it is fed with [`event::Event`]s and told the time. [`follow::Follower`] does the I/O:
//! it dumps what there is, follows what changes, and looks at everything again when the kernel has lost a message.
#![deny(clippy::indexing_slicing)] // netlink messages come from outside

pub mod decode;
pub mod event;
pub mod question;
pub mod socket;
pub mod uapi;
