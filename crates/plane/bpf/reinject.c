/*
 * Reinjects frames into the kernel, as if an interface had just received them: BPF_PROG_RUN runs this program once for
 * each frame, on a buffer of its own (BPF_F_TEST_XDP_LIVE_FRAMES), and the kernel receives the frames that it passes.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>

/* The longest frame with the trailer of reinject.rs: each run starts with this number of bytes. */
#define MOST (2104 + 16)

struct frame {
	__u32 len;
	__u8 bytes[MOST];
};

/* Frames to reinject; reinject.rs fills the map and sets the first one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct frame);
	__uint(max_entries, 256);
} frames SEC(".maps");

/* The number of the next frame. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} next SEC(".maps");

SEC("xdp")
int reinject(struct xdp_md *xdp)
{
	__u32 zero = 0, *number = bpf_map_lookup_elem(&next, &zero);
	struct frame *frame;
	__u32 len;

	if (!number)
		return XDP_DROP;
	frame = bpf_map_lookup_elem(&frames, number);
	*number += 1;
	if (!frame)
		return XDP_DROP;
	len = frame->len;
	if (len < ETH_HLEN || len > MOST)
		return XDP_DROP;
	if (bpf_xdp_adjust_tail(xdp, (int)len - MOST) || bpf_xdp_store_bytes(xdp, 0, frame->bytes, len))
		return XDP_DROP;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
