//! Known flows whose packets a program in the kernel forwards (`bpf/known_flow.h`), so that they do not meet the worker.
//!
//! Each worker has entries of its own. It shares one when it knows how the packets of a flow pass the rules and where they go. From then on the
//! program forwards them and counts them in the entry; the worker takes the counts a few times a second, and gives them to
//! the states and rules of the flow.
//!
//! | who | writes what | when |
//! | --- | --- | --- |
//! | worker (`FlowSharing`) | a whole entry | before the program can find it, and after no program has it any more |
//! | worker | the bit of an entry that lets packets pass | it clears it when the flow ends: by a state, the rules, the view, its route or its next hop's adjacency |
//! | worker | its report, which holds for its entries | every round, at most every few milliseconds |
//! | workers | a free slot of a bucket | when an entry is whole; the one that comes first has it |
//! | worker | how often it has ended all its entries | when its rules are others, its view differs by more than adjacencies, it needs all packets, or it was silent |
//! | router's thread (`FlowControl`) | the generation, which ends the entries of all workers | when a view was published that differs by more than adjacencies |
//! | router's thread | its report | every turn |
//! | program and worker | the windows of a connection that its segments are compared with | a segment moves them forward |
//! | worker | how far it has taken them | before its states judge a segment, and with the counts |
//! | program of `bpf/link_failures.h` | the generation | when it has noted a failed link |
//! | program | counts and the time of the last packet | for every packet |
//!
//! The program forwards nothing by an entry if the report of its worker or that of the router's thread is older than a second. An entry that has ended is used again after a
//! barrier (`GraceThread`), behind which no program that found it still runs.
//!
//! Where states compare segments with windows the program does so too. Both directions of a connection have the windows together.
//! The program moves them before it counts a segment, so that the worker finds them there when it takes the count. The worker merges
//! them with those of its states before it judges a segment, and after a burst.
//!
//! The worker reads the generation before it reads the view by which it learns a flow. The router's thread
//! raises the generation after it has published another one. So an entry that follows from an older one has an older generation.
//! Routes and adjacencies change all the time, with a full table and many neighbours, and hardly any change is about a shared flow.
//! When such others were published (`PathChanges`) the router's thread wakes the workers. Each compares the routes of its entries
//! (`forward/shared_routes.rs`) and the adjacencies of their next hops, and takes back those that are others.

#[cfg(all(feature = "bpf", target_os = "linux"))]
mod control;
mod entry;
mod grace;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod grace_thread;
mod memory;
mod path_changes;
mod sharing;
mod traffic;
mod windows;
mod worker_flows;

#[cfg(all(feature = "bpf", target_os = "linux"))]
pub use control::FlowControl;
pub use entry::{PortDevice, PortProgram};
pub use grace::GracePeriods;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub use grace_thread::{GraceThread, NoBarrier};
pub use memory::{FlowMemory, FlowRegions, FlowWords, MOST_FLOWS, Region};
pub use path_changes::PathChanges;
pub use sharing::{FlowSharing, SharedTotals};
pub(crate) use sharing::{KnownFlow, SharedFlow};
