//! The highest loads that a device between two hosts carries, all in network namespaces joined by veth pairs:
//!
//! ```text
//!   namespace l: eth0 ────── i :namespace d: out ────── eth0 :namespace r
//!   generator, on a core     the device, on another one      the kernel's counter
//! ```
//!
//! Read the modules in this order: `frame`, `schedule`, `bed`, `generator`, `receiver`, `largest`, `device`, `measurer`,
//! `campaign`.

mod archive;
mod bed;
mod campaign;
mod cores;
mod device;
mod error;
mod frame;
mod generator;
mod largest;
mod measurer;
mod order;
mod page;
mod receiver;
mod result;
mod schedule;

pub use archive::TrialArchive;
pub use campaign::RatesCampaign;
pub use device::DeviceName;
pub use error::RatesError;
pub use page::{notes, page, table};
pub use result::{DeviceRates, DeviceSearch, RatesReport};
