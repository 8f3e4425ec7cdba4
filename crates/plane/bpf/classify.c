/*
 * Tells frames that fullview will forward from those that stay with the kernel:
 *
 *   to_socket      (XDP) moves what will be forwarded to the AF_XDP socket of its queue; nothing else sees it;
 *   all_to_socket  (XDP) moves everything there, for those who generate and count;
 *   to_ring        (filter of a packet socket) lets through what will be forwarded;
 *   not_to_kernel  (tcx, ingress) drops what to_ring let through, so that the kernel does not forward it too.
 *
 * A frame is forwarded if it is unicast IP to one of our interfaces and a router may pass it on without a word to
 * anybody. Whatever is in doubt stays with the kernel: to leave a frame to it is always right.
 *
 * The two programs of packet sockets run one after the other on the same frame and processor, and nothing comes between:
 * both are part of one pass of the kernel's receive path. So the first decides, and the second goes by what the first has
 * decided: were it asked again, a frame that is between the two while the stations change would go both ways, or none.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define TCX_NEXT (-1)
#define TCX_DROP 2

/* What becomes of a frame; the indices of `counts`. classify.rs knows the names. */
enum answer {
	NOT_OURS, /* no interface of ours that forwards its family, or another station's MAC address; no decision */
	FORWARD,
	NOT_IP,
	LOCAL,
	GROUP, /* multicast and broadcast */
	SPECIAL, /* link-local, loopback, unspecified, reserved */
	LIFETIME, /* time to live or hop limit used up */
	OPTIONS, /* IPv4 options, IPv6 hop-by-hop options */
	MALFORMED,
	TOO_LONG, /* longer than a packet slot, or several packets in one */
	GIVEN_BACK, /* comes from us */
	ANSWERS,
};

struct place {
	__u32 interface;
	__u32 vlan;
};

struct station {
	__u8 mac[ETH_ALEN];
	__u8 forwards_inet;
	__u8 forwards_inet6;
	__u32 sockets; /* where the sockets of its queues begin */
	__u32 queues;
};

struct trailer {
	__u64 low, high;
};

/* Only this process knows it: no frame from the wire can claim to come from us. */
const volatile struct trailer TRAILER;
/* The longest frame that is forwarded, without a tag. */
const volatile __u32 LONGEST;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct place);
	__type(value, struct station);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} stations SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u8);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} local SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct in6_addr);
	__type(value, __u8);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} local6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1024);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, ANSWERS);
} counts SEC(".maps");

/* What to_ring has decided about the frame that this processor has in hand; NOT_OURS if no socket of ours has seen it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} decided SEC(".maps");

struct tag {
	__be16 control;
	__be16 type;
};

static __always_inline void count(__u32 answer)
{
	__u64 *value = bpf_map_lookup_elem(&counts, &answer);

	if (value)
		*value += 1;
}

static __always_inline bool is_to(const struct station *station, const __u8 *mac)
{
	__u8 differs = 0;

#pragma unroll
	for (int at = 0; at < ETH_ALEN; at++)
		differs |= station->mac[at] ^ mac[at];
	return !differs;
}

/* An IPv4 packet with so many bytes from its header to the end of the frame. */
static __always_inline enum answer inet(const struct iphdr *ip, __u32 room)
{
	__u32 total = bpf_ntohs(ip->tot_len), destination = ip->daddr;
	__u8 first = bpf_ntohl(destination) >> 24;

	if (ip->version != 4 || ip->ihl < 5 || total < sizeof(*ip) || total > room)
		return MALFORMED;
	if (ip->ihl > 5)
		return OPTIONS;
	if (first >= 224)
		return GROUP;
	if (first == 0 || first == 127 || bpf_ntohl(destination) >> 16 == 0xa9fe)
		return SPECIAL;
	if (ip->ttl <= 1)
		return LIFETIME;
	return bpf_map_lookup_elem(&local, &destination) ? LOCAL : FORWARD;
}

static __always_inline bool is_link_local(const struct in6_addr *address)
{
	return (address->s6_addr32[0] & bpf_htonl(0xffc00000)) == bpf_htonl(0xfe800000);
}

/* Unspecified, loopback, and IPv4 addresses written as IPv6. */
static __always_inline bool is_low(const struct in6_addr *address)
{
	return !(address->s6_addr32[0] | address->s6_addr32[1]);
}

static __always_inline enum answer inet6(const struct ipv6hdr *ip, __u32 room)
{
	struct in6_addr destination = ip->daddr;
	__u32 total = bpf_ntohs(ip->payload_len) + sizeof(*ip);

	if (ip->version != 6 || total > room)
		return MALFORMED;
	if (destination.s6_addr[0] == 0xff)
		return GROUP;
	if (is_link_local(&ip->saddr) || is_link_local(&destination) || is_low(&destination))
		return SPECIAL;
	if (ip->hop_limit <= 1)
		return LIFETIME;
	if (ip->nexthdr == IPPROTO_HOPOPTS)
		return OPTIONS;
	return bpf_map_lookup_elem(&local6, &destination) ? LOCAL : FORWARD;
}

/* Bytes of the packet, by its own account. */
static __always_inline __u32 inet_len(const struct iphdr *ip)
{
	return bpf_ntohs(ip->tot_len);
}

static __always_inline __u32 inet6_len(const struct ipv6hdr *ip)
{
	return bpf_ntohs(ip->payload_len) + sizeof(*ip);
}

static __always_inline bool is_trailer(const struct trailer *trailer)
{
	return trailer->low == TRAILER.low && trailer->high == TRAILER.high;
}

/* Frames in the kernel's own form, for packet sockets. Their tags are beside them. */

static __always_inline bool skb_comes_from_us(struct __sk_buff *skb, __u32 end)
{
	struct trailer trailer;

	return skb->len == end + sizeof(trailer) && !bpf_skb_load_bytes(skb, end, &trailer, sizeof(trailer)) &&
	       is_trailer(&trailer);
}

static __always_inline enum answer skb_inet(struct __sk_buff *skb)
{
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return MALFORMED;
	if (skb_comes_from_us(skb, ETH_HLEN + inet_len(&ip)))
		return GIVEN_BACK;
	return inet(&ip, skb->len - ETH_HLEN);
}

static __always_inline enum answer skb_inet6(struct __sk_buff *skb)
{
	struct ipv6hdr ip;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return MALFORMED;
	if (skb_comes_from_us(skb, ETH_HLEN + inet6_len(&ip)))
		return GIVEN_BACK;
	return inet6(&ip, skb->len - ETH_HLEN);
}

static __always_inline enum answer skb_answer(struct __sk_buff *skb)
{
	struct place place = { .interface = skb->ifindex };
	struct station *station;
	struct ethhdr frame;

	if (bpf_skb_load_bytes(skb, 0, &frame, sizeof(frame)))
		return MALFORMED;
	if (skb->vlan_present) {
		/* A provider's VLAN (802.1ad) of that number is another one. */
		if (skb->vlan_proto != bpf_htons(ETH_P_8021Q))
			return NOT_OURS;
		place.vlan = skb->vlan_tci & 0xfff;
	}
	station = bpf_map_lookup_elem(&stations, &place);
	if (!station || !is_to(station, frame.h_dest))
		return NOT_OURS;
	if (skb->gso_size || skb->len > LONGEST)
		return TOO_LONG;
	if (frame.h_proto == bpf_htons(ETH_P_IP))
		return station->forwards_inet ? skb_inet(skb) : NOT_OURS;
	if (frame.h_proto == bpf_htons(ETH_P_IPV6))
		return station->forwards_inet6 ? skb_inet6(skb) : NOT_OURS;
	return NOT_IP;
}

static __always_inline __u32 *in_hand(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&decided, &only);
}

/* Frames that somebody sends pass by here too, and are never received. */
SEC("socket")
int to_ring(struct __sk_buff *skb)
{
	__u32 *answer = in_hand();

	if (!answer || skb->pkt_type == PACKET_OUTGOING)
		return 0;
	*answer = skb_answer(skb);
	return *answer == FORWARD ? 0xffff : 0;
}

SEC("classifier")
int not_to_kernel(struct __sk_buff *skb __attribute__((unused)))
{
	__u32 *decision = in_hand(), answer;

	if (!decision)
		return TCX_NEXT;
	answer = *decision;
	*decision = NOT_OURS;
	count(answer);
	return answer == FORWARD ? TCX_DROP : TCX_NEXT;
}

/* Frames as the driver has them. */

static __always_inline bool xdp_comes_from_us(struct xdp_md *xdp, __u32 len, __u32 end)
{
	struct trailer trailer;

	return len == end + sizeof(trailer) && !bpf_xdp_load_bytes(xdp, end, &trailer, sizeof(trailer)) &&
	       is_trailer(&trailer);
}

static __always_inline enum answer xdp_inet(struct xdp_md *xdp, __u32 len, __u32 at)
{
	struct iphdr *ip = (void *)(long)xdp->data + at;

	if ((void *)(ip + 1) > (void *)(long)xdp->data_end)
		return MALFORMED;
	if (xdp_comes_from_us(xdp, len, at + inet_len(ip)))
		return GIVEN_BACK;
	return inet(ip, len - at);
}

static __always_inline enum answer xdp_inet6(struct xdp_md *xdp, __u32 len, __u32 at)
{
	struct ipv6hdr *ip = (void *)(long)xdp->data + at;

	if ((void *)(ip + 1) > (void *)(long)xdp->data_end)
		return MALFORMED;
	if (xdp_comes_from_us(xdp, len, at + inet6_len(ip)))
		return GIVEN_BACK;
	return inet6(ip, len - at);
}

static __always_inline enum answer xdp_answer(struct xdp_md *xdp, __u32 *socket)
{
	void *data = (void *)(long)xdp->data, *end = (void *)(long)xdp->data_end;
	struct place place = { .interface = xdp->ingress_ifindex };
	struct ethhdr *frame = data;
	struct tag *tag = (void *)(frame + 1);
	__u32 len = end - data, at = ETH_HLEN;
	struct station *station;
	__be16 type;

	if ((void *)tag > end)
		return MALFORMED;
	type = frame->h_proto;
	if (type == bpf_htons(ETH_P_8021Q)) {
		if ((void *)(tag + 1) > end)
			return MALFORMED;
		place.vlan = bpf_ntohs(tag->control) & 0xfff;
		type = tag->type;
		at += sizeof(*tag);
	}
	station = bpf_map_lookup_elem(&stations, &place);
	if (!station || !is_to(station, frame->h_dest) || xdp->rx_queue_index >= station->queues)
		return NOT_OURS;
	*socket = station->sockets + xdp->rx_queue_index;
	if (len - at > LONGEST - ETH_HLEN)
		return TOO_LONG;
	if (type == bpf_htons(ETH_P_IP))
		return station->forwards_inet ? xdp_inet(xdp, len, at) : NOT_OURS;
	if (type == bpf_htons(ETH_P_IPV6))
		return station->forwards_inet6 ? xdp_inet6(xdp, len, at) : NOT_OURS;
	return NOT_IP;
}

/* What a driver writes before a frame would be copied before our slot: it goes, or the frame stays. */
static __always_inline int redirect(struct xdp_md *xdp, __u32 socket)
{
	if (xdp->data_meta < xdp->data && bpf_xdp_adjust_meta(xdp, xdp->data - xdp->data_meta))
		return XDP_PASS;
	return bpf_redirect_map(&sockets, socket, XDP_PASS);
}

SEC("xdp")
int to_socket(struct xdp_md *xdp)
{
	__u32 socket = 0;
	enum answer answer = xdp_answer(xdp, &socket);

	count(answer);
	return answer == FORWARD ? redirect(xdp, socket) : XDP_PASS;
}

/* All frames of an interface, whatever they are: for those who measure. */
SEC("xdp")
int all_to_socket(struct xdp_md *xdp)
{
	struct place place = { .interface = xdp->ingress_ifindex };
	struct station *station = bpf_map_lookup_elem(&stations, &place);

	if (!station || xdp->rx_queue_index >= station->queues)
		return XDP_PASS;
	count(FORWARD);
	return redirect(xdp, station->sockets + xdp->rx_queue_index);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
