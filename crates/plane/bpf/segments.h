/*
 * What the packets are in a frame of several (GRO, GSO). A program of a packet socket is not told: the kernel keeps it beside the
 * packet, where only a helper for tracing reads it.
 */
#ifndef SEGMENTS_H
#define SEGMENTS_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sk_buff {
	unsigned char *head;
	unsigned int end; /* where skb_shared_info is, counted from head; on machines of 32 bits, for which this is not, a pointer */
};

struct skb_shared_info {
	unsigned int gso_type;
};
#pragma clang attribute pop

/* Kinds of packets (SKB_GSO_*): those of a sender that the kernel does not trust, such as a virtual machine; datagrams of UDP. Those
 * that UDP had before, fragments of one datagram, are of another kind. */
#define FROM_UNTRUSTED (1 << 1)
#define DATAGRAMS (1 << 17)

/* Reads a field of the running kernel's own type. */
#define read_field(into, from, field) \
	bpf_probe_read_kernel(&(into), sizeof(into), __builtin_preserve_access_index(&(from)->field))

/* Whether the frame has several datagrams of UDP, in no tunnel. The kernel calls a program with the address of its own struct. */
static __always_inline bool is_datagrams(struct __sk_buff *skb)
{
	const struct sk_buff *packet = (const void *)skb;
	const struct skb_shared_info *shared;
	const unsigned char *head;
	__u32 end, kind;

	if (read_field(head, packet, head) || read_field(end, packet, end))
		return false;
	shared = (const void *)(head + end);
	return !read_field(kind, shared, gso_type) && (kind & ~FROM_UNTRUSTED) == DATAGRAMS;
}

#endif
