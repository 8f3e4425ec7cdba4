/*
 * Flows that the filter knows. The worker has judged packets of such a flow, has found that the next ones fare in the same
 * way, and shares what follows from that: how to forward them. src/kernel_flows/ has the worker's side.
 *
 * A frame is forwarded here if it is a whole UDP packet, or a plain TCP segment, of such a flow that its worker would forward
 * without asking its rules. If states compare the segments of its connection with windows, so does this program, as
 * crates/filter/src/state/tcp.rs does with plain segments of an established connection, and moves the windows.
 * Every other frame, and every doubtful one, takes the way that it takes without these flows.
 *
 * The worker writes an entry before any program can find it, and does not write it again, apart from the words of the time,
 * before all programs that may have found it have ended. A packet is forwarded if it has added itself to `tally` while
 * FORWARDS was set there. So when the worker clears that bit, it learns how many packets were forwarded, and no packet is from
 * then on. Entries of another generation than the present one forward nothing, so one addition ends all of them. It is atomic,
 * because the router's thread makes it, and the program that notes failed links (classify.c). Another one, to what a worker has
 * ended, ends those of that worker.
 */
#ifndef KNOWN_FLOW_H
#define KNOWN_FLOW_H

#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdbool.h>

#include "frame.h"
#include "inet.h"

/* The words of src/kernel_flows/memory.rs, in that order. Two cache lines. */
struct flow {
	__u64 tally;		/* FORWARDS, then packets, then bytes, since the worker took them */
	__u64 last;		/* the time of the last packet */
	__u64 addresses[4];	/* of the header, in pairs of 32 bits; IPv4 has one */
	__u64 ends;		/* ports, protocol, version */
	__u64 ingress;		/* device, VLAN */
	__u64 generation;
	__u64 lifetime;		/* after so long without packets the worker decides */
	__u64 padding;		/* bytes of frames after their packets */
	__u64 station;		/* the destination MAC address of frames */
	__u32 macs[3];		/* destination and source of the next link */
	__u32 device;
	__u16 mtu;
	__u16 vlan;		/* 0: no tag */
	__u16 interfaces[2];	/* for the worker */
	__u16 worker;		/* the worker whose flow it is */
	__u16 end;		/* the end of its connection that segments come from */
	__u32 windows;		/* the index of the connection's windows; 0: segments are not compared */
};

/* The windows of a connection, for each of its ends. Sequence numbers move forward only, and windows grow only, by one atomic
 * operation each: programs on other processors and the worker move them too. */
struct flow_windows {
	__u64 moved[2];		/* what the end's segments move: how far it has sent, and above, how far the other may send */
	__u64 window[2];	/* the largest window that it has offered, before scaling */
	__u64 shift[2];		/* of its windows */
	__u64 seen[2];		/* what the worker has seen of `moved` */
};

/* Bits of `tally`. Even 400 Gbit/s do not carry so many bytes before the worker must have taken them. */
#define FORWARDS (1ULL << 63)
#define ONE_PACKET (1ULL << 36)

/* One for each worker. What holds for all of them is in the first. */
struct flow_head {
	__u64 generation;
	__u64 control_until;	/* when the router's thread has to have reported again */
	__u64 worker_until;	/* when the worker has to have reported again */
	__u64 ended;		/* how often the worker has ended all its entries */
	__u64 unused[4];
};

/* Each slot has the index of an entry in the lowest 16 bits, and above them those of the flow's hash. 0: empty. */
struct bucket {
	__u64 slots[4];
};

#define TAG_SHIFT 16

const volatile __u64 FLOW_KEYS[2];
/* A power of two; 0 if no flows are shared. */
const volatile __u32 FLOW_BUCKETS;

/* The room of these four is set before they are made. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bucket);
} flow_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow_head);
} flow_head SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow_windows);
} flow_windows SEC(".maps");

/* The headers of a packet up to its ports. */
struct inet_headers {
	struct iphdr ip;
	__be32 ports;
};

struct inet6_headers {
	struct ipv6hdr ip;
	__be32 ports;
};

/* What the headers of a packet show. */
struct shown {
	__u64 addresses[4];
	__u64 ends, ingress, station;
	__u32 bytes;
	bool is_inet6;
	bool is_segment; /* of TCP */
	/* Of a segment. */
	__u32 sequence, acknowledged, window, payload;
};

#define UDP_HEADER 8
#define ANY_FRAGMENT 0x3fff

/* A TCP header from its fifth byte on. */
#define TCP_REST 4
struct tcp_rest {
	__be32 sequence;
	__be32 acknowledged;
	__u8 length; /* in its upper half */
	__u8 flags;
	__be16 window;
};

#define TCP_HEADER 20
#define TCP_PUSH 0x08
#define TCP_ACK 0x10

/* How far an acknowledgement may lie from what was seen, and the largest shift, as in crates/filter/src/state/tcp.rs. */
#define ACK_SLACK (0xffff + 1500)
#define HIGHEST_SHIFT 15
/* How far sequence numbers move at most before the worker takes them: three quarters of the distance within which they are
 * ordered, so that it can merge them with those of its states. */
#define MOST_AHEAD 0x60000000
/* How often a segment is compared again because another processor has moved the windows meanwhile. */
#define MOST_TRIES 4

static __always_inline __u64 ends_of(__be32 ports, __u64 protocol, __u64 version)
{
	return ports | protocol << 32 | version << 40;
}

static __always_inline bool is_udp_or_tcp(__u8 protocol)
{
	return protocol == IPPROTO_UDP || protocol == IPPROTO_TCP;
}

/* Says what a segment in so many bytes shows, if it neither begins nor ends anything. The worker decides about all others. */
static __always_inline bool show_segment(struct shown *shown, const struct tcp_rest *tcp, __u32 bytes)
{
	__u32 header = tcp->length >> 4 << 2;

	shown->sequence = bpf_ntohl(tcp->sequence);
	shown->acknowledged = bpf_ntohl(tcp->acknowledged);
	shown->window = bpf_ntohs(tcp->window);
	shown->payload = bytes - header;
	return header >= TCP_HEADER && header <= bytes && (tcp->flags & ~TCP_PUSH) == TCP_ACK;
}

/* Says what a packet shows, if it is a whole UDP or TCP packet without IP options that has a hop left. */
static __always_inline bool show_inet(struct shown *shown, const struct inet_headers *headers)
{
	const struct iphdr *ip = &headers->ip;

	shown->bytes = bpf_ntohs(ip->tot_len);
	shown->addresses[0] = ip->saddr | (__u64)ip->daddr << 32;
	shown->ends = ends_of(headers->ports, ip->protocol, 4);
	shown->is_segment = ip->protocol == IPPROTO_TCP;
	return *(const __u8 *)ip == 0x45 && is_udp_or_tcp(ip->protocol) && !(ip->frag_off & bpf_htons(ANY_FRAGMENT)) &&
	       ip->ttl > 1 && shown->bytes >= sizeof(*ip) + UDP_HEADER && header_verifies(ip);
}

static __always_inline bool show_inet6(struct shown *shown, const struct inet6_headers *headers)
{
	const struct ipv6hdr *ip = &headers->ip;
	const __u32 *words = (const void *)&ip->saddr;

	shown->bytes = bpf_ntohs(ip->payload_len) + sizeof(*ip);
#pragma unroll
	for (int at = 0; at < 4; at++)
		shown->addresses[at] = words[2 * at] | (__u64)words[2 * at + 1] << 32;
	shown->ends = ends_of(headers->ports, ip->nexthdr, 6);
	shown->is_segment = ip->nexthdr == IPPROTO_TCP;
	return *(const __u8 *)ip >> 4 == 6 && is_udp_or_tcp(ip->nexthdr) && ip->hop_limit > 1 &&
	       bpf_ntohs(ip->payload_len) >= UDP_HEADER;
}

static __always_inline __u64 station_of(const __u8 *mac)
{
	const __u16 *words = (const void *)mac;

	return words[0] | (__u64)words[1] << 16 | (__u64)words[2] << 32;
}

static __always_inline __u64 mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * FLOW_KEYS[1];
	return hash ^ hash >> 32;
}

static __always_inline __u64 hash_of(const struct shown *shown)
{
	__u64 hash = mix(FLOW_KEYS[0], shown->addresses[0]);

	if (shown->is_inet6) {
		hash = mix(hash, shown->addresses[1]);
		hash = mix(hash, shown->addresses[2]);
		hash = mix(hash, shown->addresses[3]);
	}
	return mix(mix(hash, shown->ends), shown->ingress);
}

/* The index that a bucket has for a hash; 0: none. */
static __always_inline __u32 index_in(const struct bucket *bucket, __u64 hash)
{
#pragma unroll
	for (int at = 0; at < 4; at++) {
		if ((bucket->slots[at] ^ hash) >> TAG_SHIFT == 0)
			return bucket->slots[at] & 0xffff;
	}
	return 0;
}

static __always_inline struct flow *flow_at(__u32 index)
{
	return bpf_map_lookup_elem(&flows, &index);
}

static __always_inline bool is_of(const struct flow *flow, const struct shown *shown)
{
	__u64 differs = (flow->addresses[0] ^ shown->addresses[0]) | (flow->ends ^ shown->ends) |
			(flow->ingress ^ shown->ingress) | (flow->station ^ shown->station);

	if (shown->is_inet6)
		differs |= (flow->addresses[1] ^ shown->addresses[1]) | (flow->addresses[2] ^ shown->addresses[2]) |
			   (flow->addresses[3] ^ shown->addresses[3]);
	return !differs;
}

/* Whether what the worker knows about a flow still holds, as far as the worker and the router's thread have reported. */
static __always_inline bool holds(const struct flow *flow, __u64 now)
{
	__u32 first = 0, worker = flow->worker;
	const struct flow_head *head = bpf_map_lookup_elem(&flow_head, &first);
	const struct flow_head *of_worker = bpf_map_lookup_elem(&flow_head, &worker);

	return head && of_worker && flow->generation == head->generation + of_worker->ended &&
	       now < head->control_until && now < of_worker->worker_until &&
	       (__s64)(now - flow->last) < (__s64)flow->lifetime;
}

/* The index of the flow that a packet belongs to, if it may be forwarded by that; 0: none. */
static __always_inline __u32 find_flow(const struct shown *shown, __u64 now)
{
	__u64 hash = hash_of(shown);
	__u32 place = hash & (FLOW_BUCKETS - 1), index;
	const struct bucket *bucket = bpf_map_lookup_elem(&flow_buckets, &place);
	const struct flow *flow;

	index = bucket ? index_in(bucket, hash) : 0;
	if (!index)
		return 0;
	flow = flow_at(index);
	return flow && is_of(flow, shown) && holds(flow, now) ? index : 0;
}

/* Whether sequence number `a` lies after `b`. */
static __always_inline bool is_after(__u32 a, __u32 b)
{
	return (__s32)(a - b) > 0;
}

static __always_inline __u32 later_of(__u32 a, __u32 b)
{
	return is_after(a, b) ? a : b;
}

/* Whether a segment may be of its connection. `own` is the word that segments of its end move. */
static __always_inline bool is_in_windows(const struct shown *shown, __u64 own, __u64 others, __u32 repeatable, __u64 shift)
{
	__u32 sent = own, first = shown->payload ? shown->sequence : sent;
	__u32 end = shown->payload ? shown->sequence + shown->payload : sent;
	__s64 ahead = (__s32)(shown->acknowledged - (__u32)others);

	return !is_after(end, others >> 32) && !is_after(sent - repeatable, first) && ahead <= ACK_SLACK &&
	       -ahead <= (__s64)ACK_SLACK << shift;
}

/* Where a valid segment has moved its end's word. */
static __always_inline __u64 moved_by(const struct shown *shown, __u64 own, __u64 shift)
{
	__u32 sent = own, opened = shown->window << shift;
	__u32 end = shown->payload ? shown->sequence + shown->payload : sent;

	return later_of(sent, end) | (__u64)later_of(own >> 32, shown->acknowledged + (opened ? opened : 1)) << 32;
}

static __always_inline bool is_near(__u64 moved, __u64 seen)
{
	return (__u32)moved - (__u32)seen <= MOST_AHEAD && (__u32)(moved >> 32) - (__u32)(seen >> 32) <= MOST_AHEAD;
}

static __always_inline bool widen(__u64 *word, __u64 window)
{
	for (int tries = 0; tries < MOST_TRIES; tries++) {
		__u64 old = *(volatile __u64 *)word;

		if (window <= old || __sync_val_compare_and_swap(word, old, window) == old)
			return true;
	}
	return false;
}

/* Compares a segment with the windows of its connection, and moves them if it is valid. The worker decides about all others. What
 * it was compared with is still there when it moves its end's word, or it is compared again. */
static __always_inline bool follow_windows(const struct flow *flow, const struct shown *shown)
{
	__u32 index = flow->windows, end = flow->end & 1, other = end ^ 1;
	struct flow_windows *windows = bpf_map_lookup_elem(&flow_windows, &index);
	__u64 shift, others_shift;

	if (!windows)
		return false;
	shift = windows->shift[end] & HIGHEST_SHIFT;
	others_shift = windows->shift[other] & HIGHEST_SHIFT;
	for (int tries = 0; tries < MOST_TRIES; tries++) {
		__u64 own = *(volatile __u64 *)&windows->moved[end];
		__u64 others = *(volatile __u64 *)&windows->moved[other];
		__u64 repeatable = *(volatile __u64 *)&windows->window[other] << others_shift;
		__u64 next;

		if (!is_in_windows(shown, own, others, repeatable, shift))
			return false;
		next = moved_by(shown, own, shift);
		if (!is_near(next, *(volatile __u64 *)&windows->seen[end]))
			return false;
		if (next == own || __sync_val_compare_and_swap(&windows->moved[end], own, next) == own)
			return widen(&windows->window[end], shown->window);
	}
	return false;
}

/* Whether a packet of a flow is forwarded: then it is counted. Windows move before. If the flow ends between the two, the segment
 * goes to the worker, for which it is valid once more. */
static __always_inline bool claim(struct flow *flow, const struct shown *shown, __u64 bytes, __u64 padding, __u64 now)
{
	if (flow->windows && (!(*(volatile __u64 *)&flow->tally & FORWARDS) || !follow_windows(flow, shown)))
		return false;
	if (!(__sync_fetch_and_add(&flow->tally, ONE_PACKET + bytes) & FORWARDS))
		return false;
	flow->last = now;
	if (padding)
		__sync_fetch_and_add(&flow->padding, padding);
	return true;
}

/* Gives the frame the Ethernet header of the next link. Returns the begin of the packet. */
static __always_inline void *relink(struct frame frame, const struct flow *flow, int has_tag, __be16 type, __u32 size)
{
	void *head = begin_of(frame), *packet = head + sizeof(struct ethhdr);

	if (has_tag || flow->vlan)
		return retag(frame, flow->macs, flow->vlan, has_tag, type, size);
	if (packet + size > end_of(frame))
		return 0;
	set_macs(head, flow->macs);
	return packet;
}

static __always_inline bool rewrite_inet(struct frame frame, const struct flow *flow, int has_tag)
{
	struct iphdr *ip = relink(frame, flow, has_tag, bpf_htons(ETH_P_IP), sizeof(*ip));

	if (!ip)
		return false;
	decrement_ttl(ip);
	prioritize(frame, ip->tos);
	return true;
}

static __always_inline bool rewrite_inet6(struct frame frame, const struct flow *flow, int has_tag)
{
	struct ipv6hdr *ip = relink(frame, flow, has_tag, bpf_htons(ETH_P_IPV6), sizeof(*ip));

	if (!ip)
		return false;
	ip->hop_limit--;
	subtract_hop_from_sum(frame);
	return true;
}

/* Makes a frame of a flow what the next link gets. Fails if there is no memory or no room for a tag. */
static __always_inline bool rewrite_for_flow(struct frame frame, const struct flow *flow, int has_tag)
{
	return flow->ends >> 40 == 4 ? rewrite_inet(frame, flow, has_tag) : rewrite_inet6(frame, flow, has_tag);
}

_Static_assert(sizeof(struct flow) == 128 && sizeof(struct flow_head) == 64 && sizeof(struct bucket) == 32 &&
		       sizeof(struct flow_windows) == 64,
	       "as src/kernel_flows/memory.rs has them");

#endif
