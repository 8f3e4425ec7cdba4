/*
 * The ends of the test bed for forwarding in the kernel, and forwarders to compare ours with.
 *
 * `generate` is run by BPF_PROG_RUN on live frames: pages come back as they were received, so all that a router changes
 * is written again. `receive` counts and drops. Both run on one processor only: plain counters suffice.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define PACKETS (1 << 20)
#define AF_INET 2
#define AF_INET6 10

/* What is sent, as src/testbed/programs.rs writes it. */
struct sending {
	__u64 next;
	__u32 mask;			/* packets of the sequence less one */
	__u32 ifindex;
	__u8 header[56];		/* Ethernet and IP */
	__u32 sum;			/* of the IPv4 header without destination and checksum */
	__u32 stop;
	__u32 destinations[4 * PACKETS];	/* one word each, or four */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sending);
} sent SEC(".maps");

/* What arrived. */
struct receiving {
	__u64 right;			/* one hop further */
	__u64 wrong;
	__u32 record;			/* whether to note each packet's station */
	__u32 unused[3];
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

/* The packet's number follows the UDP header. */
SEC("xdp")
int generate(struct xdp_md *context)
{
	void *end = (void *)(long)context->data_end, *frame = (void *)(long)context->data;
	struct sending *sending;
	struct ethhdr *ethernet = frame;
	__u32 zero = 0, number;

	sending = bpf_map_lookup_elem(&sent, &zero);
	if (!sending || sending->stop || frame + 60 > end)
		return XDP_DROP;
	number = sending->next++ & sending->mask & (PACKETS - 1);
	__builtin_memcpy(frame, sending->header, 34);
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = frame + sizeof(*ethernet);

		ip->daddr = sending->destinations[number];
		ip->check = fold((__u64)sending->sum + ip->daddr);
		*(__u32 *)(frame + 42) = number;
	} else {
		const __u32 *destination = &sending->destinations[4 * number];
		__u32 *words = frame + 38;

		if (frame + 62 + 4 > end)
			return XDP_DROP;
		words[0] = destination[0];
		words[1] = destination[1];
		words[2] = destination[2];
		words[3] = destination[3];
		*(__u32 *)(frame + 62) = number;
	}
	return bpf_redirect(sending->ifindex, 0);
}

SEC("xdp")
int receive(struct xdp_md *context)
{
	void *end = (void *)(long)context->data_end, *frame = (void *)(long)context->data;
	struct receiving *receiving;
	struct ethhdr *ethernet = frame;
	__u32 zero = 0, number;
	__u8 hops;

	receiving = bpf_map_lookup_elem(&received, &zero);
	if (!receiving || frame + 60 > end)
		return XDP_PASS;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		hops = *(__u8 *)(frame + 22);
		number = *(__u32 *)(frame + 42);
	} else {
		if (ethernet->h_proto != bpf_htons(ETH_P_IPV6) || frame + 66 > end)
			return XDP_PASS;
		hops = *(__u8 *)(frame + 21);
		number = *(__u32 *)(frame + 62);
	}
	if (hops == 63)
		receiving->right++;
	else
		receiving->wrong++;
	if (receiving->record)
		receiving->stations[number & (PACKETS - 1)] = *(__u16 *)(frame + 4);
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

_Static_assert(sizeof(struct sending) == 4 * (20 + 4 * PACKETS), "as src/testbed/programs.rs writes it");
_Static_assert(sizeof(struct receiving) == 32 + 2 * PACKETS, "as src/testbed/programs.rs reads it");

char LICENSE[] SEC("license") = "Dual MIT/GPL";
