/*
 * A frame at either of the two places where the forwarding path runs: in an XDP program or in one at tcx. Everything that
 * differs between them is here. Each program sets `is_skb` and `is_multi_buffer` to constants, so the compiler keeps one
 * branch of each function.
 *
 * An skb may be several segments of one flow that are split later (GSO), may have more bytes than can be accessed directly,
 * and has its outer VLAN tag beside it.
 */
#ifndef FRAME_H
#define FRAME_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* linux/bpf.h has them since Linux 6.6. */
#define TCX_NEXT (-1)
#define TCX_DROP 2

struct frame {
	void *context;
	_Bool is_skb;
	_Bool is_multi_buffer;	/* at XDP: it may go on in other buffers, which cannot be accessed directly */
};

/* A VLAN tag that is not in the frame any more. */
struct stripped_tag {
	__be16 protocol;	/* 0: none was removed */
	__u16 control;
};

static __always_inline struct xdp_md *as_xdp(struct frame frame)
{
	return frame.context;
}

static __always_inline struct __sk_buff *as_skb(struct frame frame)
{
	return frame.context;
}

static __always_inline void *begin_of(struct frame frame)
{
	return (void *)(long)(frame.is_skb ? as_skb(frame)->data : as_xdp(frame)->data);
}

/* The end of what can be accessed directly. */
static __always_inline void *end_of(struct frame frame)
{
	return (void *)(long)(frame.is_skb ? as_skb(frame)->data_end : as_xdp(frame)->data_end);
}

static __always_inline __u64 length_of(struct frame frame)
{
	if (frame.is_multi_buffer)
		return bpf_xdp_get_buff_len(as_xdp(frame));
	return frame.is_skb ? as_skb(frame)->len : end_of(frame) - begin_of(frame);
}

static __always_inline int has_more_buffers(struct frame frame)
{
	return frame.is_multi_buffer && length_of(frame) > (__u64)(end_of(frame) - begin_of(frame));
}

/* The bytes of the packet that begins here and follows a link header of this length. The verifier does not let a program
 * subtract pointers into an skb in the order that the compiler prefers. */
static __always_inline __u64 length_from(struct frame frame, const void *packet, __u32 link_header)
{
	return frame.is_skb || frame.is_multi_buffer ? length_of(frame) - link_header : (__u64)(end_of(frame) - packet);
}

static __always_inline __u32 ingress_device(struct frame frame)
{
	return frame.is_skb ? as_skb(frame)->ifindex : as_xdp(frame)->ingress_ifindex;
}

/* Ethernet, a tag, IPv6 and ports. */
#define MOST_HEADERS (ETH_HLEN + 4 + 40 + 4)

/* Makes the headers of an skb directly accessible; drivers nearly always do that. */
static __always_inline void pull_headers(struct __sk_buff *skb)
{
	__u32 accessible = skb->data_end - skb->data;

	if (accessible < MOST_HEADERS && skb->len > accessible)
		bpf_skb_pull_data(skb, skb->len < MOST_HEADERS ? skb->len : MOST_HEADERS);
}

static __always_inline struct stripped_tag tag_beside(struct __sk_buff *skb)
{
	struct stripped_tag none = {}, tag = { .protocol = skb->vlan_proto, .control = skb->vlan_tci };

	return skb->vlan_present ? tag : none;
}

/* Whether an skb that is longer than the MTU consists of segments that are not. The kernel computes that from the device's
 * MTU, so a lower one, which an interface may have for IPv6, is left to the kernel. */
static __always_inline int segments_fit(struct frame frame, __u32 device, __u32 mtu)
{
	__u32 of_device = 0;

	if (!frame.is_skb || !mtu || !as_skb(frame)->gso_size)
		return 0;
	return !bpf_check_mtu(as_skb(frame), device, &of_device, 0, BPF_MTU_CHK_SEGS) && of_device <= mtu;
}

/* Makes room in the frame for a tag, or removes a tag from it. Fails if the driver left no room. */
static __always_inline int resize_for_tag(struct xdp_md *xdp, int is_tagged, __u16 vlan)
{
	if (is_tagged && !vlan)
		return bpf_xdp_adjust_head(xdp, 4);
	return !is_tagged && vlan ? bpf_xdp_adjust_head(xdp, -4) : 0;
}

/* Puts another tag beside the frame, or none. */
static __always_inline int replace_tag(struct __sk_buff *skb, int is_tagged, __u16 vlan)
{
	if (is_tagged && bpf_skb_vlan_pop(skb))
		return -1;
	return vlan ? bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), vlan) : 0;
}

struct tagged {
	struct ethhdr ethernet;
	__be16 tci;
	__be16 type;
} __attribute__((packed, aligned(2)));

/* Writes destination and source. */
static __always_inline void set_macs(void *frame, const __u32 *macs)
{
	*(__u64 *)frame = *(const __u64 *)macs;
	*(__u32 *)(frame + 8) = macs[2];
}

/* Gives the frame the addresses and the tag of the next link, or no tag. Returns the new begin of the packet, whose first
 * bytes can be accessed. */
static __always_inline void *retag(struct frame frame, const __u32 *macs, __u16 vlan, int was_tagged, __be16 type,
				   __u32 size)
{
	int tag_in_frame = vlan && !frame.is_skb;
	struct tagged *head;
	void *packet;

	if (frame.is_skb ? replace_tag(as_skb(frame), was_tagged, vlan) : resize_for_tag(as_xdp(frame), was_tagged, vlan))
		return 0;
	head = begin_of(frame);
	packet = (void *)head + (tag_in_frame ? sizeof(*head) : sizeof(head->ethernet));
	/* This was true before, but the verifier does not remember it. */
	if (packet + size > end_of(frame))
		return 0;
	if (tag_in_frame) {
		head->ethernet.h_proto = bpf_htons(ETH_P_8021Q);
		head->tci = bpf_htons(vlan);
		head->type = type;
	} else {
		head->ethernet.h_proto = type;
	}
	set_macs(head, macs);
	return packet;
}

/* The queueing discipline finds the priority that the kernel gives to forwarded IPv4 packets by their TOS: best effort, bulk,
 * interactive, interactive bulk (`ip_tos2prio` in net/ipv4/route.c). */
static __always_inline void prioritize(struct frame frame, __u8 tos)
{
	if (frame.is_skb)
		as_skb(frame)->priority = 0x4620 >> 4 * (tos >> 3 & 3) & 7;
}

/* The header of IPv6 has no checksum that would make up for a lower hop limit in the sum that a card has computed. */
static __always_inline void subtract_hop_from_sum(struct frame frame)
{
	if (frame.is_skb)
		bpf_csum_update(as_skb(frame), (__u16)~bpf_htons(1));
}

static __always_inline int pass(struct frame frame)
{
	return frame.is_skb ? TCX_NEXT : XDP_PASS;
}

static __always_inline int drop(struct frame frame)
{
	return frame.is_skb ? TCX_DROP : XDP_DROP;
}

#endif
