/*
 * Lets every frame through. A veth device takes frames that a program redirects to it only if its peer polls for them
 * (NAPI), and the peer does so as soon as it has any XDP program: this one.
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
