//! Which packets are sent, from the settings of the traffic.

use crate::error::{WrongSetting, require_setting};
use crate::traffic::check::Departure;
use crate::traffic::flow::FlowSet;
use crate::traffic::frame::{FrameSize, Frames, Headers, Macs};
use crate::traffic::model;
use crate::traffic::range::EndpointRange;
use fullview_plane::wire::ethernet::Mac;
use fullview_table::{Address, Family, NextHops, Rib};

use crate::settings::{ModelName, NamedSize, Size, TrafficSettings};
use fullview_router::error::BadInput;

/// The generator, and the router's port that faces it.
pub const MACS: Macs =
    Macs { source: Mac([0x02, 0, 0, 0, 0, 0x01]), destination: Mac([0x02, 0, 0, 0, 0, 0x02]) };

/// The router's port that faces the generator, and the first one that faces the receiver.
pub const INGRESS: u16 = 0;
pub const EGRESS: u16 = 1;

/// The router's address on the first egress port.
pub const EGRESS_MAC: Mac = egress_mac(EGRESS);

/// The router's address on an egress port.
pub const fn egress_mac(port: u16) -> Mac {
    let [high, low] = (port + 2).to_be_bytes();
    Mac([0x02, 0, 0, 0, high, low])
}

/// The two ranges of this family.
fn ranges<A: Address>(settings: &TrafficSettings) -> Result<(EndpointRange<A>, EndpointRange<A>), BadInput> {
    let (source, destination) = match A::FAMILY {
        Family::Inet => (&settings.source, &settings.destination),
        Family::Inet6 => (&settings.source6, &settings.destination6),
    };
    let range = |text: &Option<String>| -> Result<EndpointRange<A>, BadInput> {
        let missing = || {
            BadInput(format!(
                "traffic: the model `ranges` needs a source and a destination for {}",
                A::FAMILY
            ))
        };
        let text = text.as_ref().ok_or_else(missing)?;
        text.parse().map_err(|error| BadInput(format!("traffic: {text}: {error}")))
    };
    Ok((range(source)?, range(destination)?))
}

/// Draws the flows. The same settings and seed give the same flows.
pub fn flows<A: Address>(
    settings: &TrafficSettings,
    rib: &Rib<A>,
    seed: u64,
) -> Result<FlowSet<A>, BadInput> {
    let packets = settings.flows.unwrap_or(5_000);
    let model = match settings.model.unwrap_or(ModelName::Netbenches) {
        ModelName::Netbenches => model::Model::Netbenches { flows: packets },
        ModelName::Prefixes => model::Model::Prefixes { packets },
        ModelName::Addresses => model::Model::Addresses { packets },
        ModelName::Zipf => model::Model::Zipf { packets, exponent: settings.exponent.unwrap_or(1.0) },
        ModelName::Ranges => {
            let (source, destination) = ranges(settings)?;
            model::Model::Ranges { source, destination, most: settings.flows.unwrap_or(usize::MAX) }
        }
        ModelName::One => model::Model::One,
    };
    model.flows(rib, seed).map_err(|error| BadInput(format!("traffic: {error}")))
}

/// Refuses traffic that this family cannot have, before anything is loaded.
pub fn check<A: Headers>(settings: &TrafficSettings) -> Result<(), WrongSetting> {
    require_setting(settings.flows != Some(0), &["traffic", "flows"], || {
        "0 is too few: give 1 or more".into()
    })?;
    if let Some(exponent) = settings.exponent {
        let usable = exponent.is_finite() && exponent > 0.0;
        require_setting(usable, &["traffic", "exponent"], || format!("{exponent}: give a number above 0"))?;
    }
    let made = Frames::<A>::new(frame_size(settings), MACS).map(drop);
    made.map_err(|error| WrongSetting { keys: &["traffic", "size"], message: error.to_string() })
}

pub fn frame_size(settings: &TrafficSettings) -> FrameSize {
    match settings.size.unwrap_or(Size::Named(NamedSize::Smallest)) {
        Size::Named(NamedSize::Smallest) => FrameSize::Smallest,
        Size::Named(NamedSize::Imix) => FrameSize::Imix,
        Size::Bytes(bytes) => FrameSize::Bytes(bytes),
    }
}

/// Ports that next hops can be behind.
pub const MOST_PORTS: u16 = 1024;

/// How packets to each next hop leave: by so many ports in turn, each next hop with an Ethernet address of its own, so
/// that a wrong next hop shows in the frame. Entry 0 is never used.
pub fn departures(next_hops: &NextHops, ports: u16) -> Vec<Departure> {
    let numbers = 0..=u32::try_from(next_hops.len()).unwrap_or(u32::MAX);
    numbers.map(|number| departure(number, ports)).collect()
}

fn departure(next_hop: u32, ports: u16) -> Departure {
    let [_, _, high, low] = next_hop.to_be_bytes();
    let destination = Mac([0x02, 0, 0, 1, high, low]);
    let port = EGRESS + (next_hop.saturating_sub(1) % u32::from(ports.max(1))) as u16;
    Departure { port, source: egress_mac(port), destination }
}

/// How the report names the traffic.
pub fn describe(settings: &TrafficSettings) -> String {
    let flows = settings.flows.unwrap_or(5_000);
    let model = match settings.model.unwrap_or(ModelName::Netbenches) {
        ModelName::Netbenches => format!("{flows} flows to one prefix (198.19.0.0/16, 2001:2:0:8000::/49)"),
        ModelName::Prefixes => {
            format!("{flows} random destinations in prefixes drawn uniformly from the table")
        }
        ModelName::Addresses => format!("{flows} destinations uniform over all addresses"),
        ModelName::Zipf => format!("{flows} destinations, prefixes drawn by Zipf's law"),
        ModelName::Ranges => {
            let given = [&settings.source, &settings.destination, &settings.source6, &settings.destination6];
            let given: Vec<&str> = given.into_iter().flatten().map(String::as_str).collect();
            format!("flows of the ranges {}", given.join(", "))
        }
        ModelName::One => "one flow".into(),
    };
    format!("{model}, {}", describe_size(settings))
}

fn describe_size(settings: &TrafficSettings) -> String {
    match frame_size(settings) {
        FrameSize::Smallest => {
            "smallest UDP packets (60-byte IPv4 and 62-byte IPv6 frames, without FCS)".into()
        }
        FrameSize::Imix => "simple IMIX (7:4:1 packets of 40, 576 and 1,500 bytes)".into(),
        FrameSize::Bytes(bytes) => format!("UDP in {bytes}-byte frames, without FCS"),
    }
}
