//! The sections that only a router without a kernel has.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use crate::filter::FilterLanguage;
use crate::route::{AnyPrefix, MAIN_TABLE, RouteAction};
use fullview_plane::interface::InterfaceAddress;
use fullview_plane::wire::ethernet::Mac;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use toml::Spanned;

/// An interface's address with its prefix length, as `192.0.2.1/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressText(pub InterfaceAddress);

/// A prefix as `192.0.2.0/24`, without bits beyond its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixText(pub AnyPrefix);

/// A station's MAC, as `02:00:00:00:00:01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacText(pub Mac);

/// `[[route]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenRoute {
    pub to: Spanned<PrefixText>,
    pub via: Option<IpAddr>,
    pub dev: Option<String>,
    /// Several next hops, in place of `via` and `dev`.
    #[serde(default)]
    pub ways: Vec<WrittenHop>,
    #[serde(default = "forward", deserialize_with = "route_kind")]
    pub kind: RouteAction<()>,
    #[serde(default = "main")]
    pub table: u32,
}

/// One of several next hops.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenHop {
    pub via: Option<IpAddr>,
    pub dev: Option<String>,
    #[serde(default = "one")]
    pub weight: u16,
}

/// `[[neighbor]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NeighborSection {
    pub address: Spanned<IpAddr>,
    pub dev: String,
    pub mac: MacText,
}

/// `[filter]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FilterSection {
    pub language: FilterLanguage,
    /// The rules.
    pub file: PathBuf,
    /// Room for states.
    pub states: Option<NonZeroU32>,
    /// Known flows that a program in the kernel forwards.
    pub kernel_flows: Option<u16>,
}

/// `[feed]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FeedSection {
    pub file: Spanned<PathBuf>,
    pub gateways: Vec<IpAddr>,
    #[serde(default = "main")]
    pub table: u32,
}

fn main() -> u32 {
    MAIN_TABLE
}

fn forward() -> RouteAction<()> {
    RouteAction::Forward(())
}

/// The values of the key `kind`.
fn route_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RouteAction<()>, D::Error> {
    const KINDS: [&str; 4] = ["unicast", "blackhole", "unreachable", "prohibit"];
    match String::deserialize(deserializer)?.as_str() {
        "unicast" => Ok(RouteAction::Forward(())),
        "blackhole" => Ok(RouteAction::Blackhole),
        "unreachable" => Ok(RouteAction::Unreachable),
        "prohibit" => Ok(RouteAction::Prohibit),
        other => Err(D::Error::unknown_variant(other, &KINDS)),
    }
}

fn one() -> u16 {
    1
}

impl<'de> Deserialize<'de> for AddressText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        crate::options::interface_address(&text).map(AddressText).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for PrefixText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let inet6 = || text.parse().map(AnyPrefix::Inet6);
        let parsed = if text.contains(':') { inet6() } else { text.parse().map(AnyPrefix::Inet) };
        parsed.map(PrefixText).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for MacText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mac: Mac = String::deserialize(deserializer)?.parse().map_err(D::Error::custom)?;
        if mac.is_group() || mac == Mac::default() {
            return Err(D::Error::custom(format!("{mac} is not a station's address")));
        }
        Ok(MacText(mac))
    }
}
