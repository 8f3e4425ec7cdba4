use fullview_table::Family;
use fullview_table::fib::framework::Settings;

use super::*;
use crate::netlink::decode::{self, Messages};
use crate::netlink::event::{NextHopObject, PROTOCOL_STATIC, Placement, RouteEntry, RouteOrigin};
use crate::route::{AnyPrefix, HopSet, MAIN_TABLE, RouteAction, RouteHop};

/// A follower that dumps this part, or nothing, and an empty mirror.
fn following(part: Option<DumpPart>) -> (Follower, Mirror) {
    let mut follower = Follower::new(None).unwrap();
    follower.wanted.clear();
    follower.running = part.map(|part| Dump::new(part, 1));
    (follower, Mirror::new(Time::ZERO, Vec::new(), Settings::default()))
}

fn route(action: RouteAction<HopSet>) -> ControlEvent {
    let prefix = AnyPrefix::host([198, 18, 0, 1].into());
    let route = RouteEntry {
        table: MAIN_TABLE,
        prefix,
        metric: 0,
        selective: None,
        protocol: PROTOCOL_STATIC,
        origin: RouteOrigin::default(),
        action,
    };
    ControlEvent::Route(route, Placement::First)
}

#[test]
fn a_route_that_waits_for_a_dump_goes_with_its_object() {
    let (mut follower, mut mirror) = following(Some(DumpPart::Inet));
    let object = NextHopObject::Single(RouteAction::Blackhole);
    mirror.apply(ControlEvent::NextHop(7, object));
    follower.change(route(RouteAction::Forward(HopSet::Object(7))), &mut mirror);
    follower.change(ControlEvent::NextHopRemoved(7), &mut mirror);
    follower.change(ControlEvent::Forwarding(1, Family::Inet, true), &mut mirror);
    assert_eq!(follower.held.len(), 2, "the setting does not wait");
    follower.end_dump(Time::ZERO, &mut mirror);
    assert_eq!(mirror.report().inet, 0);
}

#[test]
fn a_route_that_a_dump_lists_goes_with_its_object() {
    let (mut follower, mut mirror) = following(Some(DumpPart::Inet));
    mirror.apply(ControlEvent::NextHop(7, NextHopObject::Single(RouteAction::Blackhole)));
    follower.change(ControlEvent::NextHopRemoved(7), &mut mirror);
    assert_eq!(follower.held.len(), 0, "a failover does not wait for a dump");
    // The kernel listed it before.
    mirror.apply(route(RouteAction::Forward(HopSet::Object(7))));
    follower.end_dump(Time::ZERO, &mut mirror);
    assert_eq!(mirror.report().inet, 0);
}

#[test]
fn a_route_of_an_object_that_came_back_during_a_dump_stays() {
    let (mut follower, mut mirror) = following(Some(DumpPart::Inet));
    let object = NextHopObject::Single(RouteAction::Blackhole);
    mirror.apply(ControlEvent::NextHop(7, object.clone()));
    let by_object = || route(RouteAction::Forward(HopSet::Object(7)));
    for event in [ControlEvent::NextHopRemoved(7), ControlEvent::NextHop(7, object), by_object()] {
        follower.change(event, &mut mirror);
    }
    mirror.apply(by_object());
    follower.end_dump(Time::ZERO, &mut mirror);
    assert_eq!(mirror.report().inet, 1);
}

fn multipath() -> RouteEntry {
    let hop = |last: u16| RouteHop::new(1, Some([0xfe80, 0, 0, 0, 0, 0, 0, last].into()), 1);
    RouteEntry {
        table: MAIN_TABLE,
        prefix: AnyPrefix::host([0x2001, 0xdb8, 1, 0, 0, 0, 0, 1].into()),
        metric: 1024,
        selective: None,
        protocol: PROTOCOL_STATIC,
        origin: RouteOrigin::default(),
        action: RouteAction::via(vec![hop(1), hop(2)]),
    }
}

#[test]
fn a_route_from_before_an_overflow_may_hide_others() {
    for overflows in [false, true] {
        let (mut follower, mut mirror) = following(Some(DumpPart::Inet6));
        follower.end_dump(Time::ZERO, &mut mirror);
        mirror.apply(ControlEvent::Route(multipath(), Placement::Last));
        if overflows {
            follower.lost(&mut mirror);
        }
        mirror.apply(ControlEvent::RouteRemoved(multipath()));
        assert_eq!(mirror.take_revealed(), overflows);
    }
}

#[test]
fn hidden_routes_are_looked_for_once_in_an_interval() {
    let (mut follower, mut mirror) = following(None);
    let route = multipath();
    let reveal = |mirror: &mut Mirror| {
        mirror.apply(ControlEvent::Route(route.clone(), Placement::Listed));
        mirror.apply(ControlEvent::RouteRemoved(route.clone()));
    };
    let mut looks = |milliseconds: u64, mirror: &mut Mirror| {
        follower.want_revealed(Duration::from_millis(milliseconds), mirror);
        follower.wanted.pop_front() == Some(DumpPart::Inet6)
    };
    assert!(!looks(0, &mut mirror));
    reveal(&mut mirror);
    assert!(!looks(1, &mut mirror) && !looks(100, &mut mirror) && looks(101, &mut mirror));
    reveal(&mut mirror);
    assert!(!looks(300, &mut mirror) && !looks(10_100, &mut mirror) && looks(10_101, &mut mirror));
    assert!(!looks(30_000, &mut mirror), "nothing was revealed");
    reveal(&mut mirror);
    follower.want_revealed(Duration::from_secs(31), &mut mirror);
    follower.want(DumpPart::Inet6);
    follower.start_dump(Duration::from_secs(31), &mut mirror).unwrap();
    assert_eq!(follower.reveal, None, "that dump shows them");
}

#[test]
fn messages_from_before_an_overflow_are_discarded() {
    let (mut follower, mut mirror) = following(None);
    follower.lost(&mut mirror);
    follower.change(route(RouteAction::Blackhole), &mut mirror);
    follower.start_dump(Time::ZERO, &mut mirror).unwrap();
    assert_eq!((mirror.report().inet, follower.running.is_some()), (0, false));
    while follower.read_changes(&mut mirror).unwrap() {}
    follower.change(route(RouteAction::Blackhole), &mut mirror);
    follower.start_dump(Time::ZERO, &mut mirror).unwrap();
    assert_eq!((mirror.report().inet, follower.running.is_some()), (1, true));
}

fn inet6_blackhole(last: u16) -> RouteEntry {
    let prefix = AnyPrefix::host([0x2001, 0xdb8, 0, 0, 0, 0, 0, last].into());
    RouteEntry { prefix, action: RouteAction::Blackhole, ..multipath() }
}

/// Runs a dump of IPv6 routes that lists the first one twice, while others change or not.
fn dump_inet6(now: Time, others_change: bool, follower: &mut Follower, mirror: &mut Mirror) {
    mirror.begin_dump(DumpPart::Inet6);
    follower.running = Some(Dump::new(DumpPart::Inet6, 1));
    for _ in 0..2 {
        mirror.apply(ControlEvent::Route(inet6_blackhole(1), Placement::Listed));
    }
    if others_change {
        follower.change(ControlEvent::RouteRemoved(inet6_blackhole(3)), mirror);
    }
    follower.end_dump(now, mirror);
}

/// The kernel passes over as many prefixes as were removed, after an addition, and lists those again before which others
/// were added.
#[test]
fn a_dump_of_ipv6_routes_that_change_meanwhile_removes_none_and_doubles_none() {
    for others_change in [true, false] {
        let (mut follower, mut mirror) = following(None);
        mirror.apply(ControlEvent::Route(inet6_blackhole(2), Placement::Last));
        dump_inet6(Time::ZERO, others_change, &mut follower, &mut mirror);
        assert_eq!(mirror.report().inet6, if others_change { 2 } else { 1 });
        mirror.apply(ControlEvent::RouteRemoved(inet6_blackhole(1)));
        assert_eq!(mirror.report().inet6, 1, "a route is there twice only by an undisturbed dump");
    }
}

/// The kernel dropped the message that a route is gone, and others change during each dump, for as long as it takes.
#[test]
fn a_route_that_several_dumps_in_a_row_did_not_list_is_gone_although_others_change() {
    let (mut follower, mut mirror) = following(None);
    mirror.apply(ControlEvent::Route(inet6_blackhole(2), Placement::Last));
    let mut left_after = |follower: &mut Follower, others_change| {
        dump_inet6(Time::ZERO, others_change, follower, &mut mirror);
        mirror.report().inet6
    };
    assert_eq!([(); 3].map(|()| left_after(&mut follower, true)), [2; 3]);
    follower.running = Some(Dump { is_void: true, ..Dump::new(DumpPart::Inet6, 1) });
    follower.end_dump(Time::ZERO, &mut Mirror::new(Time::ZERO, Vec::new(), Settings::default()));
    assert_eq!([(); 4].map(|()| left_after(&mut follower, true)), [2, 2, 2, 1]);
    assert_eq!(follower.statistics().repaired, 1);
}

#[test]
fn ipv6_routes_that_change_during_each_dump_are_listed_ever_more_seldom() {
    let (mut follower, mut mirror) = following(None);
    let dump = |milliseconds, follower: &mut Follower, mirror: &mut Mirror| {
        dump_inet6(Duration::from_millis(milliseconds), true, follower, mirror);
        follower.next_deadline().map(|at| at.as_millis())
    };
    assert_eq!(dump(0, &mut follower, &mut mirror), Some(10));
    assert!(!follower.is_synced());
    follower.want_settled(Duration::from_millis(10));
    assert_eq!(follower.wanted, [DumpPart::Inet6]);
    follower.wanted.clear();
    assert_eq!([100, 200, 300].map(|at| dump(at, &mut follower, &mut mirror)), [120, 240, 380].map(Some));
    assert!(follower.is_synced(), "a router begins although routes go on to change");
    assert!((0..20).all(|_| dump(1000, &mut follower, &mut mirror) <= Some(11_240)));
    dump_inet6(Time::ZERO, false, &mut follower, &mut mirror);
    assert_eq!(dump(0, &mut follower, &mut mirror), Some(10));
}

/// A message of port 9 that answers to this request.
fn message(kind: u16, request: u32, body: &[u8]) -> Vec<u8> {
    let (len, kind) = (16 + body.len() as u32, kind.to_ne_bytes());
    let header = [&len.to_ne_bytes()[..], &kind, &uapi::NLM_F_REPLACE.to_ne_bytes(), &request.to_ne_bytes()];
    [&header.concat()[..], &9u32.to_ne_bytes(), body].concat()
}

/// `struct nhmsg` and `NHA_ID`, `NHA_BLACKHOLE`; `struct rtmsg`, with `RTA_NH_ID` or as a blackhole. There are programs that give
/// all their requests one number.
#[test]
fn routes_of_an_object_that_changes_are_updated_and_others_replaced() {
    let object = [&[2, 0, 0, 0, 0, 0, 0, 0, 8, 0, 1, 0, 7, 0, 0, 0][..], &[4, 0, 4, 0]].concat();
    let route = [&[2, 0, 0, 0, 254, 3, 0, 6, 0, 0, 0, 0][..], &[8, 0, 30, 0, 7, 0, 0, 0]].concat();
    let blackhole = [2, 0, 0, 0, 254, 3, 0, 6, 0, 0, 0, 0];
    let bytes = [
        message(uapi::RTM_NEWNEXTHOP, 5, &object),
        message(uapi::RTM_NEWROUTE, 5, &route),
        message(uapi::RTM_NEWROUTE, 5, &blackhole),
        message(uapi::RTM_NEWROUTE, 6, &route),
    ]
    .concat();
    let placements: Vec<Placement> = events(&bytes, &mut Statistics::default(), &mut None)
        .into_iter()
        .filter_map(
            |event| if let ControlEvent::Route(_, placement) = event { Some(placement) } else { None },
        )
        .collect();
    assert_eq!(placements, [Placement::Updated, Placement::Replace, Placement::Replace]);
}

/// A piece of the dump that `following` runs.
fn listed(kind: u16, body: &[u8]) -> Vec<u8> {
    message(kind, 1, body)
}

/// `struct rtmsg`: a blackhole for all of IPv4.
const BLACKHOLE_INET: [u8; 12] = [uapi::AF_INET, 0, 0, 0, 254, 3, 0, 6, 0, 0, 0, 0];

#[test]
fn a_kernel_without_ipv6_lists_ipv4_routes_and_none_is_known_twice() {
    let (mut follower, mut mirror) = following(None);
    let piece = listed(uapi::RTM_NEWROUTE, &BLACKHOLE_INET);
    for part in [DumpPart::Inet, DumpPart::Inet6] {
        let mut dump = Dump::new(part, 1);
        mirror.begin_dump(part);
        apply_answers(&piece, &mut dump, &mut mirror, &mut follower.statistics).unwrap();
        mirror.end_dump(part);
    }
    let gone = decode::event(&Messages(&listed(uapi::RTM_DELROUTE, &BLACKHOLE_INET)).next().unwrap());
    mirror.apply(gone.unwrap().unwrap());
    assert_eq!(mirror.report().inet, 0);
}

/// `struct nlmsgerr`: the error, and the header of the request.
#[test]
fn a_refused_dump_is_asked_for_again_after_the_others_and_is_reported_once() {
    const EBUSY: i32 = 16;
    let (mut follower, mut mirror) = following(Some(DumpPart::Rules));
    mirror.apply(route(RouteAction::Blackhole));
    let body = [&(-EBUSY).to_ne_bytes()[..], &[0; 16]].concat();
    let header = [&36u32.to_ne_bytes()[..], &uapi::NLMSG_ERROR.to_ne_bytes(), &[0; 2], &[1, 0, 0, 0]];
    let answer = [&header.concat()[..], &[0; 4], &body].concat();
    for _ in 0..2 {
        let mut dump = Dump::new(DumpPart::Inet, 1);
        let refusal = apply_answers(&answer, &mut dump, &mut mirror, &mut follower.statistics);
        follower.running = Some(dump);
        follower.wanted = [DumpPart::Inet6].into();
        follower.refuse(refusal.unwrap_err());
        follower.end_dump(Time::ZERO, &mut mirror);
        assert_eq!(follower.wanted, [DumpPart::Inet6, DumpPart::Inet]);
        assert!(follower.retry_at > Time::ZERO && mirror.report().inet == 1);
    }
    let refusals: Vec<String> = follower.take_refusals().iter().map(ToString::to_string).collect();
    assert_eq!(refusals.len(), 1);
    assert!(refusals.iter().all(|text| text.contains("IPv4 routes")), "{refusals:?}");
}
