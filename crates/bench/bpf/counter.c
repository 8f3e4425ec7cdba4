/*
 * Counts the packets of a measurement where they end, and drops them: the host's kernel has nothing to do with them, and what
 * else arrives is neither counted nor dropped.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define DISCARD 9		/* the port that src/rates/frame.rs sends to */
#define PROBE 0x70726f62	/* the first word of what src/rates/stamp.rs writes */

/* One counter for each processor, because cards have several queues. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} counted SEC(".maps");

struct address {
	__u32 words[4];
};

/* The address that packets go to, in network order: one of IPv4 has zeros after it, and zeros stand for any. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct address);
} destination SEC(".maps");

static int is_any(const struct address *one)
{
	return !(one->words[0] | one->words[1] | one->words[2] | one->words[3]);
}

static int is_same(const struct address *one, const __u32 *other)
{
	return one->words[0] == other[0] && one->words[1] == other[1] && one->words[2] == other[2] && one->words[3] == other[3];
}

/* Where the header of UDP begins, of a packet that goes to this address; 0 of others. */
static unsigned int udp_at(void *frame, void *end, const struct address *wanted)
{
	const struct ethhdr *ethernet = frame;
	const struct iphdr *ip = frame + sizeof(*ethernet);
	const struct ipv6hdr *ip6 = frame + sizeof(*ethernet);

	if (frame + 42 > end)
		return 0;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		__u32 address[4] = { ip->daddr };

		return ip->ihl == 5 && ip->protocol == IPPROTO_UDP && (is_any(wanted) || is_same(wanted, address)) ? 34 : 0;
	}
	if (ethernet->h_proto != bpf_htons(ETH_P_IPV6) || frame + 62 > end || ip6->nexthdr != IPPROTO_UDP)
		return 0;
	return is_any(wanted) || is_same(wanted, ip6->daddr.in6_u.u6_addr32) ? 54 : 0;
}

SEC("xdp")
int count(struct xdp_md *context)
{
	void *end = (void *)(long)context->data_end, *frame = (void *)(long)context->data;
	const struct address *wanted;
	unsigned int udp;
	__u32 zero = 0;
	__u64 *counter;

	wanted = bpf_map_lookup_elem(&destination, &zero);
	counter = bpf_map_lookup_elem(&counted, &zero);
	if (!wanted || !counter)
		return XDP_PASS;
	udp = udp_at(frame, end, wanted);
	if (!udp || frame + udp + 8 > end || *(__u16 *)(frame + udp + 2) != bpf_htons(DISCARD))
		return XDP_PASS;
	(*counter)++;
	/* A packet socket takes probes, before the kernel drops them: they are for another host. */
	if (frame + udp + 12 <= end && *(__u32 *)(frame + udp + 8) == bpf_htonl(PROBE))
		return XDP_PASS;
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
