/*
 * Counts the packets of a measurement where they end, and drops them: the host's kernel has nothing to do with them, and what
 * else arrives is neither counted nor dropped.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
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

/* The address that packets go to, in network order; 0 for any. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} destination SEC(".maps");

SEC("xdp")
int count(struct xdp_md *context)
{
	void *end = (void *)(long)context->data_end, *frame = (void *)(long)context->data;
	const struct ethhdr *ethernet = frame;
	const struct iphdr *ip = frame + sizeof(*ethernet);
	const __u32 *wanted;
	__u32 zero = 0;
	__u64 *counter;

	if (frame + 42 > end || ethernet->h_proto != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	wanted = bpf_map_lookup_elem(&destination, &zero);
	counter = bpf_map_lookup_elem(&counted, &zero);
	if (!wanted || !counter || (*wanted && ip->daddr != *wanted))
		return XDP_PASS;
	if (ip->ihl != 5 || ip->protocol != IPPROTO_UDP || *(__u16 *)(frame + 36) != bpf_htons(DISCARD))
		return XDP_PASS;
	(*counter)++;
	/* A packet socket takes probes, before the kernel drops them: they are for another host. */
	if (frame + 46 <= end && *(__u32 *)(frame + 42) == bpf_htonl(PROBE))
		return XDP_PASS;
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
