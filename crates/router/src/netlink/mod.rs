//! The kernel's links, addresses, neighbours, routes and rules over netlink, decoded to events, and the requests that
//! list them.
//!
//! ```text
//! socket → decode → event → mirror → tables (FIB framework), groups, next hops
//! ```
//!
//! `route_writer` is no part of the router: it loads routes into a kernel whose router is measured.
//!
//! The socket is that of `netlink-sys`; messages, attributes and their values are those of `netlink-packet-core` and
//! `netlink-packet-route`. Next-hop objects and `RTM_NEWNETCONF`, which these do not have, are decoded here
//! (`docs/decisions.md`, "Netlink").
#![deny(clippy::indexing_slicing)] // netlink messages come from outside

pub mod decode;
pub mod event;
pub mod request;
pub mod route_writer;
pub mod socket;
pub mod uapi;
