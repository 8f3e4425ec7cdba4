//! Networks for tests. A test makes [`Node`]s (each is a network namespace), joins them with cables, starts programs in
//! them, and sends and captures frames; [`in_namespace`] runs a whole test in one namespace. No namespace has a name:
//! the kernel removes each one with the thread that holds it and the programs in it, even after a panic or a kill.
//!
//! [`may_run`] decides whether a test can run on this machine. A test that cannot is skipped and prints the reason; in
//! CI it fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by a panic in these functions too

#[cfg(target_os = "linux")]
pub mod current;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod isolation;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod node;
#[cfg(target_os = "linux")]
mod packet_socket;
#[cfg(target_os = "linux")]
mod program;
mod requirements;
pub mod shared;
#[cfg(target_os = "linux")]
mod stopped_thread;
mod wait;

#[cfg(target_os = "linux")]
pub use descriptors::own_descriptors;
#[cfg(target_os = "linux")]
pub use isolation::{in_namespace, while_no_program_starts};
#[cfg(target_os = "linux")]
pub use node::{Node, cable};
#[cfg(target_os = "linux")]
pub use packet_socket::PacketSocket;
#[cfg(target_os = "linux")]
pub use program::Program;
pub use requirements::{find, has, has_programs, in_ci};
#[cfg(target_os = "linux")]
pub use requirements::{may_load_programs, may_run};
#[cfg(target_os = "linux")]
pub use stopped_thread::StoppedThread;
pub use wait::{ANSWER, eventually};
