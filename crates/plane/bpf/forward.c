/*
 * The forwarding path in the kernel: parse, lookup, rewrite, redirect. A packet that is not plain, or that has no known
 * neighbour, is passed unchanged to the kernel, which answers, delivers or drops it as if this program did not exist.
 *
 * The path runs in a driver or behind it (XDP), or at tcx, where the kernel has made an skb of the frame. frame.h has what
 * differs.
 *
 * The tables and the configuration are one value of a map, a "generation". There are two: the program uses one of them
 * while the other one is written. `current` holds the one to use; src/engine/generation.rs has the rules.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "frame.h"
#include "inet.h"
#include "link_failures.h"
#include "observe.h"

/* Sizes and order as in src/engine/layout.rs. All are powers of two, so that indices from tables are masked and not
 * compared: the verifier knows their bounds, and no branch is necessary. */
#define INDEX (1 << 18)
#define LEAVES (1 << 24)	/* bytes */
#define ROOTS (1 << 16)
#define LINES (1 << 16)
#define HOPS (1 << 16)
#define SLOT_BITS 17
#define SLOTS (1 << SLOT_BITS)
#define PORT_BITS 12
#define PORTS (1 << PORT_BITS)
#define DEVICES (1 << 10)
#define RULES (1 << 12)

/* Members of a group at most. */
#define MEMBERS 64

/* Rules of policy routing that the packets of an interface and family meet at most. */
#define MOST_RULES 32

/* A function that the verifier checks once and by itself, since it can be called from elsewhere: a static one it would follow
 * again at each call, with all that is known there, until it gives up after a million instructions. So nothing is known of
 * the arguments, and the caller knows nothing of the result. */
#define CHECKED_ALONE __noinline

/* Why a packet is not forwarded, in the order of src/program_verdict.rs. The packet is dropped for SOURCE_CHECK and
 * BLACKHOLE and where a limit is exceeded, and passed to the kernel for all others. */
enum reason {
	TOO_SHORT = 1,
	NO_INTERFACE,
	OTHER_STATION,
	NOT_IP,
	HEADER,
	CHECKSUM,
	SPECIAL_ADDRESS,
	TTL_EXPIRED,
	NO_ROUTE,
	LOCAL,
	NO_NEIGHBOR,
	DISCARDED,
	TOO_BIG,
	NO_HEADROOM,
	NOT_FORWARDING,
	SOURCE_CHECK,		/* dropped */
	BLACKHOLE,		/* dropped */
	NO_REDIRECT,
	ROUTER_STALLED,
	WAY_BACK,
	BROADCAST,
	POLICY_RULE,
	NO_MULTI_BUFFER,
	LINK_FAILED,
	NO_ROUTE_LIMITED,	/* dropped, as the next two */
	TTL_EXPIRED_LIMITED,
	DISCARDED_LIMITED,
};

/* Room for more, because indices are masked. */
#define REASONS 32

/* A next hop: half a cache line, aligned so that words can be copied in pairs. */
struct hop {
	union {
		__u32 macs[3];	/* destination and source, as in the frame */
		struct {
			__u32 first_member;	/* of a group, among the slots */
			__u32 members;
		};
	};
	__u32 ifindex;
	__u16 mtu;		/* for IPv4; 0 unless this is a neighbour */
	__u16 vlan;		/* 0: no tag */
	__u16 reason;		/* where the MTU is 0, and of neighbours that do not get all frames: NO_REDIRECT, NO_MULTI_BUFFER */
	__u16 interface;	/* the number of the egress interface, 0: none; and a flag */
	union {
		struct {
			__u16 device;	/* its key in `devices`, 0 if it has none */
			__u16 mtu6;	/* for IPv6; 0 unless this is a neighbour */
		};
		__u32 first_slot;	/* of a group */
	};
	__u32 slot_mask;	/* 0: no group */
} __attribute__((aligned(32)));

/* Only default routes have the next hop. */
#define OF_DEFAULT_ROUTE (1 << 15)

/* Flags of an interface. */
#define FORWARDS_INET 1
#define FORWARDS_INET6 2
#define CHECKS_LOOSELY 4
#define CHECKS_STRICTLY 8
/* It has rules of policy routing. */
#define RULES_INET 16
#define RULES_INET6 32
/* Above the flags there is the number of a table: 0 is the main one, others are those of VRFs. */
#define TABLE_SHIFT 8
#define TABLE 0xff00
/* One test finds the packets that are looked up in the main table at once. */
#define ELSEWHERE_INET (TABLE | RULES_INET)
#define ELSEWHERE_INET6 (TABLE | RULES_INET6)

/* An interface, found by its index and VLAN. */
struct port {
	__u32 ifindex;		/* 0: the entry is free */
	__u16 vlan;
	__u16 flags;
	__u32 mac_first;
	__u16 mac_last;
	__u16 number;		/* from 1 */
};

/* The rules that packets of an interface meet, among all rules. */
struct rule_list {
	__u16 first, first6;
	__u16 rules, rules6;
};

/* What a rule does with the packets that it selects. */
enum rule_action {
	LOOK_UP,	/* in a table; those without a route there meet the next rule */
	SKIP_TO,	/* a place in the list, which is a later one */
	LEAVE,		/* to the kernel */
	LOOK_UP_SPECIFIC,	/* as LOOK_UP; those for which the table has only a default route meet the next rule too */
};

/* A rule of policy routing. Low halves of addresses come first, and IPv4 has no others. */
struct rule {
	__u64 source[2], source_mask[2];
	__u64 destination[2], destination_mask[2];
	__u32 action;
	__u32 to;		/* a table, or a place */
	__u32 inverted;		/* it selects the other packets */
	__u32 unused;
};

struct branch {
	__u32 lasts[15];
	__u32 first;
};

struct leaf {
	__u32 lasts[10];
	__u16 hops[10];
	__u32 deeper;
};

struct generation {
	__u32 index[INDEX];
	union {
		__u8 narrow[LEAVES];
		__u16 wide[LEAVES / 2];
	} leaves;
	__u32 roots[ROOTS];
	struct branch branches[LINES];
	struct leaf leaves6[LINES];
	struct hop hops[HOPS];
	__u16 slots[SLOTS];
	struct port ports[PORTS];
	struct rule_list rule_lists[INTERFACES];
	struct rule rules[RULES];
	__u32 failed[FAILED];		/* the device whose link has failed, by the low bits of its index */
	__u64 flow_seed;
	__u64 port_factor;		/* of the hash by which an interface is found */
	__u32 leaf_bytes;		/* of dir18: 1 or 2 */
	__u32 number;			/* 0 or 1; never changes */
	__u32 last_report;		/* of the process, in TICKS; 0: it makes none */
	__u32 namespace;		/* in which link_failures.h notes links, by its inode number; 0: in none */
	__u32 flow_fields, flow_fields6;	/* what the flow hash covers of packets of a family */
	__u32 unused[1014];
};

struct generation_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct generation);
} generation_0 SEC(".maps"), generation_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct generation_map);
} current SEC(".maps");

/* The first levels of a VRF table. Leaves and lines of all tables are in the generation: those of the main table at the
 * beginning, those of a VRF from the offsets below. */
struct vrf {
	__u32 index[INDEX];
	__u32 roots[ROOTS];
	__u32 leaf_bytes;
	__u32 first_leaf;		/* by number */
	__u32 first_branch;		/* in bytes */
	__u32 first_leaf6;
	__u32 unused[1020];
};

/* Alternately of generation 0 and 1. Their number is set before the program is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vrf);
} vrfs SEC(".maps");

/* Egress devices. Key 0 is empty. The programs for frames in several buffers need a map of their own: the kernel lets such
 * a program and another one not share a map that might have programs. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, DEVICES);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} devices SEC(".maps"), multi_devices SEC(".maps");

struct traffic {
	__u64 packets;
	__u64 bytes;
};

struct counters {
	struct traffic received, sent;
};

/* All counters in one value, so that the program looks the map up once per packet. */
struct all_counters {
	struct counters by_interface[INTERFACES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct all_counters);
} counted SEC(".maps");

/* Packets that were not forwarded, by interface number; 0: no interface. The first reason is TOO_SHORT. */
struct reasons {
	__u64 by_reason[REASONS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, INTERFACES);
	__type(key, __u32);
	__type(value, struct reasons);
} not_forwarded SEC(".maps");

/* How many packets of a reason each processor passes to the kernel: a bucket of tokens for a second, kept as the time at which
 * it will be full. The process writes the intervals once. */
struct limit {
	__u64 interval;		/* nanoseconds per packet; 0: no limit */
	__u64 full_at;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REASONS);
	__type(key, __u32);
	__type(value, struct limit);
} limits SEC(".maps");

/* dir18: crates/table/src/fib/dir18/entry.rs. */
static __always_inline __u32 dir18_place(__u32 entry, __u32 addr)
{
	return (entry >> 5) + (addr >> (entry & 31));
}

#define PARTS 64

/* The number of the part of a block that holds this address. */
static __always_inline __u32 part_of(__u32 addr)
{
	return addr >> 8 & (PARTS - 1);
}

/* The leaf at an index of a table whose leaves begin at `first`, which is 0 for the main table. */
static __always_inline __u32 narrow(const struct generation *now, __u32 first, __u32 place)
{
	return now->leaves.narrow[((place & (LEAVES - 1)) + first) & (LEAVES - 1)];
}

static __always_inline __u32 wide(const struct generation *now, __u32 first, __u32 place)
{
	return now->leaves.wide[((place & (LEAVES / 2 - 1)) + first) & (LEAVES / 2 - 1)];
}

/* A /24 may have an array of its own. Its entry follows the leaves of the block, in four narrow leaves or two wide ones. */
static __always_inline __u32 lookup_narrow(const struct generation *now, __u32 first, __u32 entry, __u32 addr)
{
	__u32 hop = narrow(now, first, dir18_place(entry, addr));
	__u32 part;

	if (hop != 0xff)
		return hop;
	part = dir18_place(entry, addr) + 4 * PARTS + 3 * part_of(addr);
	entry = narrow(now, first, part) | narrow(now, first, part + 1) << 8 | narrow(now, first, part + 2) << 16 |
		narrow(now, first, part + 3) << 24;
	return narrow(now, first, dir18_place(entry, addr));
}

static __always_inline __u32 lookup_wide(const struct generation *now, __u32 first, __u32 entry, __u32 addr)
{
	__u32 hop = wide(now, first, dir18_place(entry, addr));
	__u32 part;

	if (hop != 0xffff)
		return hop;
	part = dir18_place(entry, addr) + 2 * PARTS + part_of(addr);
	entry = wide(now, first, part) | wide(now, first, part + 1) << 16;
	return wide(now, first, dir18_place(entry, addr));
}

static __always_inline __u32 lookup_inet(const struct generation *now, __u32 addr)
{
	__u32 entry = now->index[addr >> 14];

	return now->leaf_bytes == 1 ? lookup_narrow(now, 0, entry, addr) : lookup_wide(now, 0, entry, addr);
}

static __always_inline const struct vrf *vrf_of(const struct generation *now, __u32 table)
{
	__u32 place = 2 * (table - 1) + (now->number & 1);

	return bpf_map_lookup_elem(&vrfs, &place);
}

/* As lookup_inet, in any table. A separate function, so that packets that are looked up in the main table at once do not pay
 * for it. */
CHECKED_ALONE __u32 lookup_inet_in(const struct generation *now, __u32 table, __u32 addr)
{
	const struct vrf *vrf;
	__u32 entry;

	if (!now)
		return 0;
	if (!table)
		return lookup_inet(now, addr);
	vrf = vrf_of(now, table);
	if (!vrf)
		return 0;
	entry = vrf->index[addr >> 14];
	if (vrf->leaf_bytes == 1)
		return lookup_narrow(now, vrf->first_leaf, entry, addr);
	return lookup_wide(now, vrf->first_leaf, entry, addr);
}

/* btree6: crates/table/src/fib/btree6/lines.rs. A place is the offset of a line in bytes. */
#define PLACE ((LINES - 1) * 64)
#define ESCAPE 0xffff
/* Each deeper tree begins at least 8 bits further in the address. */
#define DEEPEST 14

/* Adds 1 to `count` if `last` is below the key. It uses the sign of a difference, because each comparison would be an
 * unpredictable branch; the assembler statement hides from the compiler that this is a comparison. */
#define BELOW(count, last, key)                                                 \
	do {                                                                    \
		__u64 difference = (__u64)(last) - (key);                       \
		asm volatile("" : "+r"(difference));                            \
		count += difference >> 63;                                      \
	} while (0)

/* The offsets of a table's lines in bytes; 0 for the main table. */
struct lines {
	__u32 branches;
	__u32 leaves;
};

/* The lasts ascend. Three of a branch select the quarter with the key, and three more the place in it: fewer comparisons
 * than all fifteen, for one more dependent load. */
static __always_inline __u32 descend(const struct generation *now, struct lines from, __u32 place, __u64 key)
{
	const struct branch *branch = (const void *)now->branches + (place + from.branches & PLACE);
	const __u32 *quarter;
	__u64 quarters = 0, rest = 0;

	BELOW(quarters, branch->lasts[3], key);
	BELOW(quarters, branch->lasts[7], key);
	BELOW(quarters, branch->lasts[11], key);
	quarter = &branch->lasts[4 * quarters];
	BELOW(rest, quarter[0], key);
	BELOW(rest, quarter[1], key);
	BELOW(rest, quarter[2], key);
	return branch->first + (4 * quarters + rest) * 64;
}

static __always_inline const struct leaf *leaf_at(const struct generation *now, struct lines from, __u32 place)
{
	return (const void *)now->leaves6 + (place + from.leaves & PLACE);
}

/* The same in a leaf: the half of its first nine lasts, and the place in it. */
static __always_inline __u64 range_of(const struct leaf *leaf, __u64 key)
{
	const __u32 *half;
	__u64 halves = 0, even = 0, odd = 0;

	BELOW(halves, leaf->lasts[4], key);
	half = &leaf->lasts[5 * halves];
	BELOW(even, half[0], key);
	BELOW(odd, half[1], key);
	BELOW(even, half[2], key);
	BELOW(odd, half[3], key);
	return 5 * halves + even + odd;
}

/* Finds the leaf for this key in the tree at `place`. */
static __always_inline __u32 find_leaf(const struct generation *now, struct lines from, __u32 place, __u64 key)
{
	place = descend(now, from, place, key);
	place = descend(now, from, place, key);
	return descend(now, from, place, key);
}

/* The 32 bits of an address after its first 16 bits and the consumed ones. */
static __always_inline __u32 key_after(__u64 high, __u64 low, __u32 consumed)
{
	if (consumed >= 64)
		return low << (consumed - 64 & 63) >> 16;
	return (high << consumed | low >> 1 >> (63 - consumed)) >> 16;
}

struct key {
	__u64 high, low;
	struct lines from;
};

/* The rare case of prefixes longer than /48. */
CHECKED_ALONE __u32 lookup_deeper(const struct generation *now, const struct key *key, __u32 place)
{
	__u32 consumed = 0;

	if (!now || !key)
		return 0;
	for (int depth = 0; depth < DEEPEST; depth++) {
		const struct leaf *leaf = leaf_at(now, key->from, place);
		__u64 part = key_after(key->high, key->low, consumed & 127);
		__u64 range = range_of(leaf, part);
		__u32 list, link;

		if (range > 9)
			return 0;
		if (leaf->hops[range] != ESCAPE)
			return leaf->hops[range];
		list = leaf->deeper + key->from.branches / sizeof(struct branch);
		link = now->branches[list & (LINES - 1)].lasts[range];
		consumed += (link & 63) * 8;
		part = key_after(key->high, key->low, consumed & 127);
		place = find_leaf(now, key->from, link & ~63U, part);
	}
	return 0;
}

static __always_inline __u32 lookup_lines(const struct generation *now, struct lines from, __u32 root, __u64 high,
					  __u64 low)
{
	__u64 middle = (__u32)(high >> 16);
	__u32 place = find_leaf(now, from, root, middle);
	const struct leaf *leaf = leaf_at(now, from, place);
	__u64 range = range_of(leaf, middle);
	struct key key = { high, low, from };
	__u16 hop;

	if (range > 9)
		return 0;
	hop = leaf->hops[range];
	return hop != ESCAPE ? hop : lookup_deeper(now, &key, place);
}

static __always_inline __u32 lookup_inet6(const struct generation *now, __u64 high, __u64 low)
{
	struct lines all = {};

	return lookup_lines(now, all, now->roots[high >> 48], high, low);
}

/* As lookup_inet_in. */
CHECKED_ALONE __u32 lookup_inet6_in(const struct generation *now, __u32 table, __u64 high, __u64 low)
{
	struct lines from = {};
	const struct vrf *vrf;
	__u32 root;

	if (!now)
		return 0;
	root = now->roots[high >> 48];
	if (table) {
		vrf = vrf_of(now, table);
		if (!vrf)
			return 0;
		from.branches = vrf->first_branch;
		from.leaves = vrf->first_leaf6;
		root = vrf->roots[high >> 48];
	}
	return lookup_lines(now, from, root, high, low);
}

/* No next hop has this number, whose low half is that of no route. */
#define LEFT_BY_RULE (1 << 16)

static __always_inline const struct rule *rule_at(const struct generation *now, __u32 first, __u32 place)
{
	return &now->rules[(first + place) & (RULES - 1)];
}

/* The place of the first rule from `place` on that selects the packet; MOST_RULES if there is none. */
CHECKED_ALONE __u32 next_rule(const struct generation *now, const struct port *port, __u32 place, __u32 source,
			      __u32 destination)
{
	const struct rule_list *list;

	if (!now || !port)
		return MOST_RULES;
	list = &now->rule_lists[port->number & (INTERFACES - 1)];
	for (int i = 0; i < MOST_RULES && place < list->rules; i++, place++) {
		const struct rule *rule = rule_at(now, list->first, place);
		__u32 differs = ((source ^ rule->source[0]) & rule->source_mask[0]) |
				((destination ^ rule->destination[0]) & rule->destination_mask[0]);

		if ((differs == 0) != rule->inverted)
			return place;
	}
	return MOST_RULES;
}

/* Whether a rule uses the route that its table has: the one with this next hop, which may be none. */
static __always_inline int uses_route(const struct generation *now, const struct rule *rule, __u32 number)
{
	if (rule->action == LOOK_UP_SPECIFIC && now->hops[number & (HOPS - 1)].interface & OF_DEFAULT_ROUTE)
		return 0;
	return number != 0;
}

/* Looks up by the rules of an interface. */
CHECKED_ALONE __u32 lookup_inet_by_rules(const struct generation *now, const struct port *port, __u32 source,
					 __u32 destination)
{
	__u32 place = 0, number, first;

	if (!now || !port)
		return 0;
	first = now->rule_lists[port->number & (INTERFACES - 1)].first;
	for (int i = 0; i < MOST_RULES; i++) {
		const struct rule *rule;

		place = next_rule(now, port, place, source, destination);
		if (place >= MOST_RULES)
			return 0;
		rule = rule_at(now, first, place);
		if (rule->action == LEAVE)
			return LEFT_BY_RULE;
		if (rule->action == SKIP_TO) {
			place = rule->to;
			continue;
		}
		number = lookup_inet_in(now, rule->to, destination);
		if (uses_route(now, rule, number))
			return number;
		place++;
	}
	return LEFT_BY_RULE;
}

/* Addresses of a packet, the low half first. */
struct addresses {
	__u64 source[2], destination[2];
};

static __always_inline int selects_inet6(const struct rule *rule, const struct addresses *packet)
{
	__u64 differs = 0;

#pragma unroll
	for (int half = 0; half < 2; half++) {
		differs |= (packet->source[half] ^ rule->source[half]) & rule->source_mask[half];
		differs |= (packet->destination[half] ^ rule->destination[half]) & rule->destination_mask[half];
	}
	return (differs == 0) != rule->inverted;
}

/* As next_rule. */
CHECKED_ALONE __u32 next_rule6(const struct generation *now, const struct port *port, __u32 place,
			       const struct addresses *packet)
{
	const struct rule_list *list;

	if (!now || !port || !packet)
		return MOST_RULES;
	list = &now->rule_lists[port->number & (INTERFACES - 1)];
	for (int i = 0; i < MOST_RULES && place < list->rules6; i++, place++) {
		const struct rule *rule = rule_at(now, list->first6, place);

		if (selects_inet6(rule, packet))
			return place;
	}
	return MOST_RULES;
}

/* As lookup_inet_by_rules. */
CHECKED_ALONE __u32 lookup_inet6_by_rules(const struct generation *now, const struct port *port,
					  const struct addresses *packet)
{
	__u32 place = 0, number, first;

	if (!now || !port || !packet)
		return 0;
	first = now->rule_lists[port->number & (INTERFACES - 1)].first6;
	for (int i = 0; i < MOST_RULES; i++) {
		const struct rule *rule;

		place = next_rule6(now, port, place, packet);
		if (place >= MOST_RULES)
			return 0;
		rule = rule_at(now, first, place);
		if (rule->action == LEAVE)
			return LEFT_BY_RULE;
		if (rule->action == SKIP_TO) {
			place = rule->to;
			continue;
		}
		number = lookup_inet6_in(now, rule->to, packet->destination[1], packet->destination[0]);
		if (uses_route(now, rule, number))
			return number;
		place++;
	}
	return LEFT_BY_RULE;
}

/* The words of an IPv6 header, with the addresses from the second word on. */
static __always_inline __u32 lookup_inet6_ruled(const struct generation *now, const struct port *port,
						const __be64 *words)
{
	struct addresses packet = {
		.source = { bpf_be64_to_cpu(words[2]), bpf_be64_to_cpu(words[1]) },
		.destination = { bpf_be64_to_cpu(words[4]), bpf_be64_to_cpu(words[3]) },
	};

	return lookup_inet6_by_rules(now, port, &packet);
}

/* As in crates/table/src/group/hash.rs: combines both halves of a product of 64 by 64 bits. */
static __always_inline __u64 mix(__u64 word)
{
	const __u64 spread = 0x9e3779b97f4a7c15ULL, rotated = 0xf372fe94f82b3c6eULL;
	__u64 a, b, low, middle, other;

	word ^= rotated;
	a = word >> 32;
	b = word & 0xffffffff;
	low = b * (spread & 0xffffffff);
	middle = a * (spread & 0xffffffff) + (low >> 32);
	other = b * (spread >> 32) + (middle & 0xffffffff);
	return (other << 32 | (low & 0xffffffff)) ^ (a * (spread >> 32) + (middle >> 32) + (other >> 32));
}

struct flow {
	__u64 source[2], destination[2];	/* low half first */
	__u64 rest;				/* protocol, and ports or label */
};

static __always_inline __u32 flow_hash(__u64 seed, const struct flow *flow)
{
	__u64 hash = mix(seed ^ flow->source[0]);

	hash = mix(hash ^ flow->source[1]);
	hash = mix(hash ^ flow->destination[0]);
	hash = mix(hash ^ flow->destination[1]);
	hash = mix(hash ^ flow->rest);
	return hash ^ hash >> 32;
}

/* Protocol and ports for the hash, if the protocol's header begins with ports and the frame holds them. */
static __always_inline __u64 protocol_and_ports(__u8 protocol, const __be16 *ports, const void *end)
{
	if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP && protocol != IPPROTO_DCCP &&
	    protocol != IPPROTO_SCTP && protocol != IPPROTO_UDPLITE)
		return 0;
	if ((const void *)(ports + 2) > end)
		return 0;
	return (__u64)protocol << 32 | (__u32)bpf_ntohs(ports[0]) << 16 | bpf_ntohs(ports[1]);
}

#define FRAGMENT 0x3fff

/* What the flow hash covers: src/flow_hash.rs. */
enum flow_fields {
	LAYER_3,
	LAYER_4,
	LABEL_OR_LAYER_4,
};

static __always_inline __u32 hash_inet(const struct generation *now, const struct iphdr *ip, const void *end)
{
	struct flow flow = {
		.source = { bpf_ntohl(ip->saddr) },
		.destination = { bpf_ntohl(ip->daddr) },
	};

	/* All but the first fragment of a packet lack the ports. */
	if (now->flow_fields != LAYER_3 && !(ip->frag_off & bpf_htons(FRAGMENT)))
		flow.rest = protocol_and_ports(ip->protocol, (const void *)(ip + 1), end);
	return flow_hash(now->flow_seed, &flow);
}

static __always_inline __u32 hash_inet6(const struct generation *now, const struct ipv6hdr *ip, const void *end)
{
	const __be64 *source = (const void *)&ip->saddr, *destination = (const void *)&ip->daddr;
	__u32 label = bpf_ntohl(*(const __be32 *)ip) & 0xfffff;
	struct flow flow = {
		.source = { bpf_be64_to_cpu(source[1]), bpf_be64_to_cpu(source[0]) },
		.destination = { bpf_be64_to_cpu(destination[1]), bpf_be64_to_cpu(destination[0]) },
	};

	if (now->flow_fields6 == LAYER_3)
		flow.rest = (__u64)ip->nexthdr << 32 | label;
	else if (now->flow_fields6 == LABEL_OR_LAYER_4 && label)
		flow.rest = label;
	else
		flow.rest = protocol_and_ports(ip->nexthdr, (const void *)(ip + 1), end);
	return flow_hash(now->flow_seed, &flow);
}

/* The assembler statement keeps the compiler from computing the address again for each word of a next hop. */
static __always_inline const struct hop *hop_at(const struct generation *now, __u32 number)
{
	const struct hop *hop = &now->hops[number & (HOPS - 1)];

	asm volatile("" : "+r"(hop));
	return hop;
}

/* Whether the link of a next hop has failed, and the tables may not have followed yet. */
static __always_inline int has_failed(const struct generation *now, const struct hop *hop)
{
	return now->failed[hop->ifindex & (FAILED - 1)] == hop->ifindex;
}

static __always_inline __u32 number_in_slot(const struct generation *now, const struct hop *group, __u32 slot)
{
	return now->slots[(group->first_slot + (slot & group->slot_mask)) & (SLOTS - 1)];
}

/* The number of a member whose link works, for a flow in a slot of one whose link has failed; that one's if none is found. A member
 * may have many slots that follow each other, so slots are tried of which any bit differs. */
CHECKED_ALONE __u32 working_member(const struct generation *now, const struct hop *group, __u32 slot)
{
	if (!now || !group)
		return 0;
	for (int bit = 0; bit < SLOT_BITS; bit++) {
		__u32 number = number_in_slot(now, group, slot ^ 1 << bit);
		const struct hop *hop = hop_at(now, number);

		if (hop->ifindex && !has_failed(now, hop))
			return number;
	}
	return number_in_slot(now, group, slot);
}

/* While the tables do not follow the failure of a link, another member of the group has its flows: the kernel, which gets other
 * packets to that link, may itself still lose what it sends there. */
static __always_inline const struct hop *member(const struct generation *now, const struct hop *group, __u32 hash)
{
	const struct hop *hop = hop_at(now, number_in_slot(now, group, hash));

	/* A next hop without a neighbour has no device, and its packets are the kernel's. */
	if (hop->ifindex && has_failed(now, hop))
		return hop_at(now, working_member(now, group, hash));
	return hop;
}

/* An interface is at its home place or up to three places after it. src/engine/config.rs chooses the factor so. */
static __always_inline const struct port *find_port(const struct generation *now, __u32 ifindex, __u16 vlan)
{
	__u64 home = (((__u64)ifindex << 12 | vlan) * now->port_factor) >> (64 - PORT_BITS);

#pragma unroll
	for (int i = 0; i < 4; i++) {
		const struct port *port = &now->ports[(home + i) & (PORTS - 1)];

		if (port->ifindex == ifindex && port->vlan == vlan)
			return port;
	}
	return 0;
}

/* Why a packet that came in by this interface is not forwarded if this is the next hop back to its source; 0 if it is. The
 * kernel judges where only it uses the way back. */
static __always_inline int objection_by(const struct hop *hop, const struct port *port)
{
	__u16 interface = hop->interface & ~OF_DEFAULT_ROUTE;

	if (port->flags & CHECKS_STRICTLY ? interface == port->number : interface != 0)
		return 0;
	return hop->reason == LOCAL ? WAY_BACK : SOURCE_CHECK;
}

/* The same for a next hop by its number, which may be a group: one member without an objection is enough, and otherwise
 * one that only the kernel uses. */
static __always_inline int objection_back(const struct generation *now, __u32 number, const struct port *port)
{
	const struct hop *hop = hop_at(now, number);
	int objection = SOURCE_CHECK;

	if (!hop->slot_mask)
		return objection_by(hop, port);
	for (__u32 i = 0; i < MEMBERS && i < hop->members; i++) {
		__u32 member = now->slots[(hop->first_member + i) & (SLOTS - 1)];
		int of_member = objection_by(&now->hops[member], port);

		if (!of_member)
			return 0;
		if (of_member == WAY_BACK)
			objection = WAY_BACK;
	}
	return objection;
}

/* Source checks need a second lookup. A separate function, so that packets without a check do not pay for it. */
CHECKED_ALONE int source_objection(const struct generation *now, const struct port *port, __u32 source)
{
	__u32 number;

	if (!now || !port)
		return SOURCE_CHECK;
	/* The way back may be in a table that the rules choose. */
	if (port->flags & RULES_INET)
		return WAY_BACK;
	number = lookup_inet_in(now, port->flags >> TABLE_SHIFT, source);
	return objection_back(now, number, port);
}

CHECKED_ALONE int source_objection6(const struct generation *now, const struct port *port, __u64 high, __u64 low)
{
	__u32 number;

	if (!now || !port)
		return SOURCE_CHECK;
	if (port->flags & RULES_INET6)
		return WAY_BACK;
	number = lookup_inet6_in(now, port->flags >> TABLE_SHIFT, high, low);
	return objection_back(now, number, port);
}

/* The source check does not apply to packets for this host or for all stations of a network, which the kernel checks. */
static __always_inline int is_checked(const struct port *port, const struct hop *hop)
{
	return port->flags & (CHECKS_LOOSELY | CHECKS_STRICTLY) &&
	       (hop->mtu || (hop->reason != LOCAL && hop->reason != BROADCAST));
}

/* Why a packet that exceeds the MTU of a next hop is not forwarded; `number` is what the lookup found. A next hop without
 * configuration is all zeroes. */
static __always_inline int mtu_reason(const struct hop *hop, __u32 number)
{
	if (hop->mtu)
		return TOO_BIG;
	if (number == LEFT_BY_RULE)
		return POLICY_RULE;
	return hop->reason ? (int)hop->reason : NO_NEIGHBOR;
}

/* This network, loopback, link-local, multicast and reserved addresses, which are left to the kernel. */
static __always_inline int is_special_inet(__u32 addr)
{
	__u32 first = addr >> 24;

	return first == 0 || first == 127 || first >= 224 || addr >> 16 == 0xa9fe;
}

/* The 64ths of the address space that contain such addresses: one test for most packets. */
#define SPECIAL_PARTS (1ULL | 1ULL << (127 >> 2) | 1ULL << (169 >> 2) | 0xffULL << (224 >> 2))

static __always_inline int are_special_inet(__u32 source, __u32 destination)
{
	if (!((SPECIAL_PARTS >> (source >> 26) | SPECIAL_PARTS >> (destination >> 26)) & 1))
		return 0;
	return is_special_inet(source) || is_special_inet(destination);
}

/* ::/8 except NAT64, fe00::/8, ff00::/8. */
static __always_inline int is_special_inet6(__u64 high)
{
	__u32 first = high >> 56;

	return first >= 0xfe || (first == 0 && high >> 32 != 0x0064ff9b);
}

/* What is known about a packet so far. */
struct packet_state {
	const struct port *port;	/* the ingress interface, if there is one */
	struct stripped_tag stripped;
	int tagged;			/* the frame has a tag in it */
	enum reason reason;		/* why it is not forwarded, if it is not */
	__u64 bytes;			/* length of the frame when it leaves */
};

static __always_inline const struct hop *not_forwarded_for(struct packet_state *state, enum reason reason)
{
	state->reason = reason;
	return 0;
}

static __always_inline __u32 link_header(const struct packet_state *state)
{
	return state->tagged ? sizeof(struct tagged) : sizeof(struct ethhdr);
}

/* Whether the tag has to be removed before the frame leaves. XDP programs send frames without the tags beside them. */
static __always_inline int has_tag(struct frame frame, const struct packet_state *state)
{
	return state->tagged || (frame.is_skb && state->stripped.protocol);
}

/* Why the driver of a neighbour's device does not take this frame, or 0. */
static __always_inline int objection_of_device(struct frame frame, const struct hop *hop)
{
	if (frame.is_skb || (hop->reason == NO_MULTI_BUFFER && !has_more_buffers(frame)))
		return 0;
	return hop->reason;
}

/* Whether bytes behind a packet make its frame longer than the link takes, so that its driver would lose it. The kernel takes
 * them off. */
static __always_inline int is_padded_beyond(__u32 mtu, __u32 total, __u32 whole)
{
	return whole > mtu && total <= mtu;
}

static __always_inline const struct hop *forward_inet(struct frame frame, const struct generation *now,
						      void *packet, struct packet_state *state)
{
	const struct port *port = state->port;
	int tagged = has_tag(frame, state);
	void *end = end_of(frame);
	struct iphdr *ip = packet;
	__u32 source, destination, total, whole, number;
	const struct hop *hop;
	int objection = 0;

	if ((void *)(ip + 1) > end)
		return not_forwarded_for(state, TOO_SHORT);
	destination = bpf_ntohl(ip->daddr);
	source = bpf_ntohl(ip->saddr);
	/* The lookup comes first, so that its memory arrives while the header is checked. */
	if (!(port->flags & ELSEWHERE_INET))
		number = lookup_inet(now, destination);
	else if (port->flags & RULES_INET)
		number = lookup_inet_by_rules(now, port, source, destination);
	else
		number = lookup_inet_in(now, port->flags >> TABLE_SHIFT, destination);
	total = bpf_ntohs(ip->tot_len);
	whole = length_from(frame, packet, link_header(state));
	if (*(__u8 *)ip != 0x45 || total < sizeof(*ip) || total > whole)
		return not_forwarded_for(state, HEADER);
	if (!header_verifies(ip))
		return not_forwarded_for(state, CHECKSUM);
	if (are_special_inet(source, destination))
		return not_forwarded_for(state, SPECIAL_ADDRESS);
	hop = hop_at(now, number);
	if (hop->slot_mask)
		hop = member(now, hop, hash_inet(now, ip, end));
	if (is_checked(port, hop))
		objection = source_objection(now, port, source);
	if (objection)
		return not_forwarded_for(state, objection);
	if (total > hop->mtu && !segments_fit(frame, hop->ifindex, hop->mtu))
		return not_forwarded_for(state, mtu_reason(hop, number));
	if (is_padded_beyond(hop->mtu, total, whole))
		return not_forwarded_for(state, HEADER);
	if (has_failed(now, hop))
		return not_forwarded_for(state, LINK_FAILED);
	if (ip->ttl <= 1)
		return not_forwarded_for(state, TTL_EXPIRED);
	objection = objection_of_device(frame, hop);
	if (objection)
		return not_forwarded_for(state, objection);
	if (tagged || hop->vlan) {
		ip = retag(frame, hop->macs, hop->vlan, tagged, bpf_htons(ETH_P_IP), sizeof(*ip));
		if (!ip)
			return not_forwarded_for(state, NO_HEADROOM);
		state->bytes = length_of(frame);
	} else {
		set_macs(packet - sizeof(struct ethhdr), hop->macs);
	}
	decrement_ttl(ip);
	prioritize(frame, ip->tos);
	return hop;
}

static __always_inline const struct hop *forward_inet6(struct frame frame, const struct generation *now,
						       void *packet, struct packet_state *state)
{
	const struct port *port = state->port;
	int tagged = has_tag(frame, state);
	void *end = end_of(frame);
	struct ipv6hdr *ip = packet;
	const struct hop *hop;
	const __be64 *words;
	__u64 high, low;
	__u32 total, whole, number;
	int objection = 0;

	if ((void *)(ip + 1) > end)
		return not_forwarded_for(state, TOO_SHORT);
	words = packet;
	high = bpf_be64_to_cpu(words[3]);
	low = bpf_be64_to_cpu(words[4]);
	total = sizeof(*ip) + bpf_ntohs(ip->payload_len);
	whole = length_from(frame, packet, link_header(state));
	/* Every router on the path reads a hop-by-hop header: the kernel does it. */
	if (*(__u8 *)ip >> 4 != 6 || ip->nexthdr == IPPROTO_HOPOPTS || total > whole)
		return not_forwarded_for(state, HEADER);
	if (is_special_inet6(high) || is_special_inet6(bpf_be64_to_cpu(words[1])))
		return not_forwarded_for(state, SPECIAL_ADDRESS);
	if (!(port->flags & ELSEWHERE_INET6))
		number = lookup_inet6(now, high, low);
	else if (port->flags & RULES_INET6)
		number = lookup_inet6_ruled(now, port, words);
	else
		number = lookup_inet6_in(now, port->flags >> TABLE_SHIFT, high, low);
	hop = hop_at(now, number);
	if (hop->slot_mask)
		hop = member(now, hop, hash_inet6(now, ip, end));
	if (is_checked(port, hop))
		objection = source_objection6(now, port, bpf_be64_to_cpu(words[1]), bpf_be64_to_cpu(words[2]));
	if (objection)
		return not_forwarded_for(state, objection);
	if (total > hop->mtu6 && !segments_fit(frame, hop->ifindex, hop->mtu6))
		return not_forwarded_for(state, mtu_reason(hop, number));
	if (is_padded_beyond(hop->mtu6, total, whole))
		return not_forwarded_for(state, HEADER);
	if (has_failed(now, hop))
		return not_forwarded_for(state, LINK_FAILED);
	if (ip->hop_limit <= 1)
		return not_forwarded_for(state, TTL_EXPIRED);
	objection = objection_of_device(frame, hop);
	if (objection)
		return not_forwarded_for(state, objection);
	if (tagged || hop->vlan) {
		ip = retag(frame, hop->macs, hop->vlan, tagged, bpf_htons(ETH_P_IPV6), sizeof(*ip));
		if (!ip)
			return not_forwarded_for(state, NO_HEADROOM);
		state->bytes = length_of(frame);
	} else {
		set_macs(packet - sizeof(struct ethhdr), hop->macs);
	}
	ip->hop_limit--;
	subtract_hop_from_sum(frame);
	return hop;
}

/* Whether a frame has no tag besides one of 802.1Q. A service VLAN (802.1ad) with the same number is another VLAN. */
static __always_inline int is_one_vlan(const struct packet_state *state)
{
	return !state->stripped.protocol ||
	       (state->stripped.protocol == bpf_htons(ETH_P_8021Q) && !state->tagged);
}

/* Rewrites the frame and returns its next hop; returns none for an unchanged frame that is not forwarded. */
static __always_inline const struct hop *forward_frame(struct frame frame, const struct generation *now,
						       struct packet_state *state)
{
	void *end = end_of(frame);
	struct tagged *head = begin_of(frame);
	void *packet = (void *)head + sizeof(head->ethernet);
	const struct port *port;
	__u16 vlan = state->stripped.control & 0xfff;
	__be16 type;

	state->bytes = length_of(frame);
	if (packet > end)
		return not_forwarded_for(state, TOO_SHORT);
	type = head->ethernet.h_proto;
	state->tagged = type == bpf_htons(ETH_P_8021Q);
	if (state->tagged) {
		packet = head + 1;
		if (packet > end)
			return not_forwarded_for(state, TOO_SHORT);
		type = head->type;
		vlan = bpf_ntohs(head->tci) & 0xfff;
	}
	port = find_port(now, ingress_device(frame), vlan);
	if (!port || !is_one_vlan(state))
		return not_forwarded_for(state, NO_INTERFACE);
	state->port = port;
	if (*(__u32 *)head != port->mac_first || *((__u16 *)head + 2) != port->mac_last)
		return not_forwarded_for(state, OTHER_STATION);
	if (type == bpf_htons(ETH_P_IP))
		return port->flags & FORWARDS_INET ? forward_inet(frame, now, packet, state) : not_forwarded_for(state, NOT_FORWARDING);
	if (type == bpf_htons(ETH_P_IPV6))
		return port->flags & FORWARDS_INET6 ? forward_inet6(frame, now, packet, state) : not_forwarded_for(state, NOT_FORWARDING);
	return not_forwarded_for(state, NOT_IP);
}

static __always_inline void count(struct traffic *traffic, __u64 bytes)
{
	traffic->packets++;
	traffic->bytes += bytes;
}

#define SECOND 1000000000ULL

/* Whether this processor has passed as many packets of the reason as it may. */
static __always_inline int is_over_limit(__u32 reason)
{
	struct limit *limit = bpf_map_lookup_elem(&limits, &reason);
	__u64 now, full_at;

	if (!limit || !limit->interval)
		return 0;
	now = bpf_ktime_get_coarse_ns();
	full_at = limit->full_at > now ? limit->full_at : now;
	if (full_at - now + limit->interval > SECOND)
		return 1;
	limit->full_at = full_at + limit->interval;
	return 0;
}

/* The reason, or that of a packet of which the kernel could only tell the sender, when it has had many such packets. No
 * packet of a protocol of this host is among them: their reasons are others. */
static __always_inline enum reason within_limit(enum reason reason)
{
	enum reason limited;

	if (reason == NO_ROUTE)
		limited = NO_ROUTE_LIMITED;
	else if (reason == TTL_EXPIRED)
		limited = TTL_EXPIRED_LIMITED;
	else if (reason == DISCARDED)
		limited = DISCARDED_LIMITED;
	else
		return reason;
	return is_over_limit(reason) ? limited : reason;
}

static __always_inline int is_dropped(enum reason reason)
{
	return reason == SOURCE_CHECK || reason == BLACKHOLE || reason >= NO_ROUTE_LIMITED;
}

/* Counts a frame that is not forwarded, and returns the action of the program. */
static __always_inline int do_not_forward(struct frame frame, __u32 interface, enum reason reason)
{
	struct reasons *counts = bpf_map_lookup_elem(&not_forwarded, &interface);

	if (counts)
		counts->by_reason[(reason - 1) & (REASONS - 1)]++;
	return is_dropped(reason) ? drop(frame) : pass(frame);
}

static __always_inline int redirect_by_key(struct frame frame, __u32 key)
{
	return frame.is_multi_buffer ? bpf_redirect_map(&multi_devices, key, XDP_ABORTED) :
				       bpf_redirect_map(&devices, key, XDP_ABORTED);
}

/* XDP finds a device faster by its key in the map than by its index. A removed device is not in the map. */
static __always_inline int send(struct frame frame, const struct hop *hop)
{
	if (!frame.is_skb && hop->device && redirect_by_key(frame, hop->device) == XDP_REDIRECT)
		return XDP_REDIRECT;
	return bpf_redirect(hop->ifindex, 0);
}

/* The time in units of some 1.05 ms, as src/report_time.rs counts it. */
#define TICKS(nanoseconds) ((__u32)((nanoseconds) >> 20))
/* A second. */
#define LONGEST_SILENCE 954
/* This clock is behind that of the process by one tick of the kernel's timer at most. */
#define BEHIND 32

/* Whether the process that keeps the tables up to date is stopped or hangs, so that the kernel knows better than they. */
static __always_inline int is_stalled(const struct generation *now)
{
	__u32 last = now->last_report;

	return last && TICKS(bpf_ktime_get_coarse_ns()) - last + BEHIND > LONGEST_SILENCE + BEHIND;
}

/* With the constant `is_observed`, copies of packets go to the process (observe.h). */
static __always_inline int forward_or_pass(struct frame frame, struct stripped_tag stripped, _Bool is_observed)
{
	struct observer *observer = 0;
	struct wishes *wishes = 0;
	struct generation *now;
	struct all_counters *all;
	struct packet_state state = { .stripped = stripped };
	const struct hop *hop;
	__u32 zero = 0, interface;
	__u64 bytes;
	void *map;

	map = bpf_map_lookup_elem(&current, &zero);
	all = bpf_map_lookup_elem(&counted, &zero);
	if (!map || !all)
		return pass(frame);
	now = bpf_map_lookup_elem(map, &zero);
	if (!now)
		return pass(frame);
	if (is_stalled(now))
		return do_not_forward(frame, 0, ROUTER_STALLED);
	if (is_observed) {
		observer = bpf_map_lookup_elem(&observers, &zero);
		wishes = bpf_map_lookup_elem(&wished, &zero);
		if (!observer || !wishes)
			return pass(frame);
		observe(frame, stripped, observer, wishes);
	}
	bytes = length_of(frame);
	hop = forward_frame(frame, now, &state);
	interface = state.port ? state.port->number & (INTERFACES - 1) : 0;
	if (!hop)
		state.reason = within_limit(state.reason);
	if (is_observed)
		report(frame, observer, wishes, interface, hop ? 0 : state.reason, hop ? hop->ifindex : 0);
	count(&all->by_interface[interface].received, bytes);
	if (!hop)
		return do_not_forward(frame, interface, state.reason);
	count(&all->by_interface[hop->interface & (INTERFACES - 1)].sent, state.bytes);
	return send(frame, hop);
}

/* A call of a function of the kernel. Its number is that of the function's type in the running kernel, which
 * src/engine/bound_program.rs fills in: aya knows no such calls. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define CALL_KERNEL ".byte 0x85, 0x20, 0, 0, 0, 0, 0, 0\n"
#else
#define CALL_KERNEL ".byte 0x85, 0x02, 0, 0, 0, 0, 0, 0\n"
#endif

/* bpf_xdp_metadata_rx_vlan_tag() asks the driver for the tag. Some drivers write a part of it before they find that there is
 * none. */
static __always_inline void read_stripped_tag(struct xdp_md *frame, struct stripped_tag *tag)
{
	__u64 error;

	asm volatile("r1 = %[frame]\n"
		     "r2 = %[protocol]\n"
		     "r3 = %[control]\n" CALL_KERNEL
		     "%[error] = r0\n"
		     : [error] "=r"(error)
		     : [frame] "r"(frame), [protocol] "r"(&tag->protocol), [control] "r"(&tag->control)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
	if (error)
		*tag = (struct stripped_tag){};
}

/* What the entry points at XDP do; the arguments after the frame are constants of each. */
static __always_inline int forward_xdp(struct xdp_md *xdp, _Bool is_bound, _Bool is_observed,
				       _Bool is_multi_buffer)
{
	struct frame frame = { .context = xdp, .is_multi_buffer = is_multi_buffer };
	struct stripped_tag tag = {};

	if (is_bound)
		read_stripped_tag(xdp, &tag);
	return forward_or_pass(frame, tag, is_observed);
}

/* For interfaces whose driver leaves tags in the frames. */
SEC("xdp")
int forward(struct xdp_md *xdp)
{
	return forward_xdp(xdp, 0, 0, 0);
}

SEC("xdp")
int forward_observed(struct xdp_md *xdp)
{
	return forward_xdp(xdp, 0, 1, 0);
}

/* For drivers that receive a frame into several buffers, because the MTU is larger than one. */
SEC("xdp.frags")
int forward_multi(struct xdp_md *xdp)
{
	return forward_xdp(xdp, 0, 0, 1);
}

SEC("xdp.frags")
int forward_multi_observed(struct xdp_md *xdp)
{
	return forward_xdp(xdp, 0, 1, 1);
}

/* For interfaces whose driver may strip tags and can tell them. Such a program is bound to one interface. */
SEC("xdp")
int forward_bound(struct xdp_md *xdp)
{
	return forward_xdp(xdp, 1, 0, 0);
}

SEC("xdp")
int forward_bound_observed(struct xdp_md *xdp)
{
	return forward_xdp(xdp, 1, 1, 0);
}

SEC("xdp.frags")
int forward_bound_multi(struct xdp_md *xdp)
{
	return forward_xdp(xdp, 1, 0, 1);
}

SEC("xdp.frags")
int forward_bound_multi_observed(struct xdp_md *xdp)
{
	return forward_xdp(xdp, 1, 1, 1);
}

static __always_inline int forward_at_tcx(struct __sk_buff *skb, _Bool is_observed)
{
	struct frame frame = { .context = skb, .is_skb = 1 };

	pull_headers(skb);
	return forward_or_pass(frame, tag_beside(skb), is_observed);
}

/* At tcx, for any interface. */
SEC("classifier")
int forward_skb(struct __sk_buff *skb)
{
	return forward_at_tcx(skb, 0);
}

SEC("classifier")
int forward_skb_observed(struct __sk_buff *skb)
{
	return forward_at_tcx(skb, 1);
}

static __always_inline void note_in_generation(struct generation *generation, const struct net_device *device)
{
	if (generation)
		note_in(generation->failed, generation->namespace, device);
}

static __always_inline void note_failed(const struct net_device *device)
{
	__u32 first = 0;

	note_in_generation(bpf_map_lookup_elem(&generation_0, &first), device);
	note_in_generation(bpf_map_lookup_elem(&generation_1, &first), device);
}

_Static_assert((REASONS & (REASONS - 1)) == 0 && DISCARDED_LIMITED < REASONS, "reasons are masked");
_Static_assert(DEVICES <= 1 << 16, "a next hop has 16 bits for the key of its device");
_Static_assert(sizeof(struct branch) == 64 && sizeof(struct leaf) == 64, "lines are cache lines");
_Static_assert(sizeof(struct hop) == 32 && sizeof(struct port) == 16 && sizeof(struct rule_list) == 8 &&
	       sizeof(struct rule) == 80, "as src/engine/layout.rs writes them");
_Static_assert(sizeof(struct generation) % 4096 == 0, "generations are mapped");
_Static_assert(sizeof(struct vrf) % 4096 == 0, "VRFs are mapped");
_Static_assert(sizeof(struct all_counters) <= 32768, "the kernel has no larger values by processor");

char LICENSE[] SEC("license") = "Dual MIT/GPL";
