/*
 * Passes every frame. A veth device accepts redirected frames only if its peer polls for them (NAPI), and the peer does
 * that as soon as it has any XDP program, such as this one.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int pass(struct xdp_md *frame)
{
	(void)frame;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
