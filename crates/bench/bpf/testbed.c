/*
 * The ends of the test bed for forwarding in the kernel, and forwarders to compare ours with.
 *
 * `generate` is run by BPF_PROG_RUN on live frames: pages come back as they were received, so all that a router changes
 * is written again. `receive` counts and drops. Both run on one processor only: plain counters suffice.
 *
 * Several forwarders are attached at the same time and take turns. A call of BPF_PROG_RUN is a turn: `generate` reads the
 * clock before each batch of frames and notes what was sent and received when the counted part of the turn began and
 * ended, so that the set-up of the call is not in the figures. Each frame carries the number of its path: a frame
 * that is still on its way when the next turn begins counts for the path that it was sent to.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define PACKETS (1 << 20)
#define PATHS 64
#define BATCH 64
#define PAUSE 500000		/* nanoseconds: several batches of the slowest forwarder, less than other work has a processor */
#define AF_INET 2
#define AF_INET6 10

/* What is sent, as src/testbed/programs.rs writes it; an entry for each traffic. */
struct sequence {
	__u64 next;
	__u32 mask;			/* packets of the sequence less one */
	__u32 sum;			/* of the IPv4 header without destination and checksum */
	__u8 header[56];		/* Ethernet and IP */
	__u32 destinations[4 * PACKETS];	/* one word each, or four */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);		/* as many as the loader says */
	__type(key, __u32);
	__type(value, struct sequence);
} sequences SEC(".maps");

/* The counters at one moment of a turn. */
struct moment {
	__u64 time;			/* nanoseconds */
	__u64 sent;
	__u64 right;
};

enum stage { BEGIN, LEAD_IN, COUNTED, OVER };

/* Whose turn it is, and what was counted. */
struct turn {
	__u32 ifindex;			/* the link to send to */
	__u32 sequence;
	__u32 tag;			/* number of the path and whether a router takes a hop, above the packet's number */
	__u32 stage;
	__u64 frames;			/* since the turn began */
	__u64 lead_in;			/* nanoseconds */
	__u64 length;			/* nanoseconds */
	__u64 began;
	__u64 before;			/* time of the batch before */
	__u64 paused;			/* nanoseconds of the counted part in batches that took as long as a pause */
	__u64 pauses;			/* their number */
	struct moment first;		/* of the counted part */
	struct moment last;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct turn);
} turns SEC(".maps");

#define NUMBER(tag) ((tag) & (PACKETS - 1))
#define PATH(tag) ((tag) >> 20 & (PATHS - 1))
#define IS_ROUTED(tag) ((tag) >> 31)

/* What arrived. */
struct receiving {
	__u64 right[PATHS];		/* with the right hop count, by path */
	__u64 wrong[PATHS];
	__u32 record;			/* whether to note each packet's station */
	__u32 unused;
	__u16 stations[PACKETS];	/* last two bytes of the destination, by the packet's number */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct receiving);
} received SEC(".maps");

/* Where the forwarders without a table of their own send to. */
struct way {
	__u32 macs[3];
	__u32 ifindex;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct way);
} only_way SEC(".maps");

static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static __always_inline void note(struct moment *moment, __u64 now, const struct turn *turn)
{
	const struct receiving *receiving;
	__u32 zero = 0;

	receiving = bpf_map_lookup_elem(&received, &zero);
	if (!receiving)
		return;
	moment->time = now;
	moment->sent = turn->frames;
	moment->right = receiving->right[PATH(turn->tag)];
}

/* Before a batch: the frames of the batch before have been forwarded and received. */
static __always_inline void advance(struct turn *turn)
{
	__u64 now = bpf_ktime_get_ns();

	if (turn->stage == BEGIN) {
		turn->began = now;
		turn->stage = LEAD_IN;
	}
	if (turn->stage == LEAD_IN && now - turn->began >= turn->lead_in) {
		note(&turn->first, now, turn);
		turn->stage = COUNTED;
	}
	if (turn->stage == COUNTED) {
		if (now - turn->before >= PAUSE && turn->before >= turn->first.time) {
			turn->paused += now - turn->before;
			turn->pauses++;
		}
		/* Noted before each batch, so that a turn whose frames do not suffice has an end too. */
		note(&turn->last, now, turn);
		if (now - turn->first.time >= turn->length)
			turn->stage = OVER;
	}
	turn->before = now;
}

/* The packet's tag follows the UDP header. */
SEC("xdp")
int generate(struct xdp_md *context)
{
	void *end = (void *)(long)context->data_end, *frame = (void *)(long)context->data;
	__u32 zero = 0, number, tag;
	struct sequence *sequence;
	struct ethhdr *ethernet = frame;
	struct turn *turn;

	turn = bpf_map_lookup_elem(&turns, &zero);
	if (!turn || frame + 60 > end)
		return XDP_DROP;
	number = turn->sequence;
	sequence = bpf_map_lookup_elem(&sequences, &number);
	if (!sequence)
		return XDP_DROP;
	if (turn->frames % BATCH == 0)
		advance(turn);
	if (turn->stage == OVER)
		return XDP_DROP;
	turn->frames++;
	/* All paths go on in the same sequence: none finds the caches filled for the destinations of its turn. */
	number = sequence->next++ & sequence->mask & (PACKETS - 1);
	tag = turn->tag | number;
	__builtin_memcpy(frame, sequence->header, 34);
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = frame + sizeof(*ethernet);

		ip->daddr = sequence->destinations[number];
		ip->check = fold((__u64)sequence->sum + ip->daddr);
		*(__u32 *)(frame + 42) = tag;
	} else {
		const __u32 *destination = &sequence->destinations[4 * number];
		__u32 *words = frame + 38;

		if (frame + 62 + 4 > end)
			return XDP_DROP;
		words[0] = destination[0];
		words[1] = destination[1];
		words[2] = destination[2];
		words[3] = destination[3];
		*(__u32 *)(frame + 62) = tag;
	}
	return bpf_redirect(turn->ifindex, 0);
}

#define PORTS bpf_htonl(2000 << 16 | 2000)

SEC("xdp")
int receive(struct xdp_md *context)
{
	void *end = (void *)(long)context->data_end, *frame = (void *)(long)context->data;
	struct receiving *receiving;
	struct ethhdr *ethernet = frame;
	__u32 zero = 0, ports, tag;
	__u8 hops;

	receiving = bpf_map_lookup_elem(&received, &zero);
	if (!receiving || frame + 60 > end)
		return XDP_PASS;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		hops = *(__u8 *)(frame + 22);
		ports = *(__u32 *)(frame + 34);
		tag = *(__u32 *)(frame + 42);
	} else {
		if (ethernet->h_proto != bpf_htons(ETH_P_IPV6) || frame + 66 > end)
			return XDP_PASS;
		hops = *(__u8 *)(frame + 21);
		ports = *(__u32 *)(frame + 54);
		tag = *(__u32 *)(frame + 62);
	}
	/* The kernels at both ends of the link send some packets of their own. */
	if (ports != PORTS)
		return XDP_PASS;
	if (hops == 64 - IS_ROUTED(tag))
		receiving->right[PATH(tag)]++;
	else
		receiving->wrong[PATH(tag)]++;
	if (receiving->record)
		receiving->stations[NUMBER(tag)] = *(__u16 *)(frame + 4);
	return XDP_DROP;
}

static __always_inline void decrement_ttl(struct iphdr *ip)
{
	__u32 check = ip->check + bpf_htons(0x0100);

	ip->check = check + (check >= 0xffff);
	ip->ttl--;
}

/* No lookup at all: what redirecting costs by itself. */
SEC("xdp")
int redirect(struct xdp_md *context)
{
	void *end = (void *)(long)context->data_end, *frame = (void *)(long)context->data;
	struct ethhdr *ethernet = frame;
	__u32 zero = 0, *macs = frame;
	struct way *way;

	way = bpf_map_lookup_elem(&only_way, &zero);
	if (!way || frame + 54 > end)
		return XDP_PASS;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP))
		decrement_ttl(frame + sizeof(*ethernet));
	else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6))
		(*(__u8 *)(frame + 21))--;
	else
		return XDP_PASS;
	macs[0] = way->macs[0];
	macs[1] = way->macs[1];
	macs[2] = way->macs[2];
	return bpf_redirect(way->ifindex, 0);
}

/* The kernel's table, asked by its helper. */
SEC("xdp")
int fib_lookup(struct xdp_md *context)
{
	void *end = (void *)(long)context->data_end, *frame = (void *)(long)context->data;
	struct bpf_fib_lookup query = {};
	struct ethhdr *ethernet = frame;

	if (frame + 54 > end)
		return XDP_PASS;
	query.ifindex = context->ingress_ifindex;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = frame + sizeof(*ethernet);

		if (ip->ttl <= 1)
			return XDP_PASS;
		query.family = AF_INET;
		query.l4_protocol = ip->protocol;
		query.tot_len = bpf_ntohs(ip->tot_len);
		query.ipv4_src = ip->saddr;
		query.ipv4_dst = ip->daddr;
	} else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = frame + sizeof(*ethernet);

		if (ip->hop_limit <= 1)
			return XDP_PASS;
		query.family = AF_INET6;
		query.l4_protocol = ip->nexthdr;
		query.tot_len = bpf_ntohs(ip->payload_len);
		__builtin_memcpy(query.ipv6_src, &ip->saddr, 16);
		__builtin_memcpy(query.ipv6_dst, &ip->daddr, 16);
	} else {
		return XDP_PASS;
	}
	if (bpf_fib_lookup(context, &query, sizeof(query), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		return XDP_PASS;
	if (query.family == AF_INET)
		decrement_ttl(frame + sizeof(*ethernet));
	else
		(*(__u8 *)(frame + 21))--;
	__builtin_memcpy(ethernet->h_dest, query.dmac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, query.smac, ETH_ALEN);
	return bpf_redirect(query.ifindex, 0);
}

_Static_assert(sizeof(struct sequence) == 4 * (18 + 4 * PACKETS), "as src/testbed/programs.rs writes it");
_Static_assert(sizeof(struct turn) == 4 * 30, "as src/testbed/programs.rs writes it");
_Static_assert(sizeof(struct receiving) == 4 * (4 * PATHS + 2) + 2 * PACKETS, "as src/testbed/programs.rs reads it");

char LICENSE[] SEC("license") = "Dual MIT/GPL";
