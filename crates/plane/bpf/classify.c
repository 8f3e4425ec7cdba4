/*
 * Separates the frames that fullview forwards from those that stay with the kernel:
 *
 *   to_socket      (XDP) redirects forwardable frames to the AF_XDP socket of their queue, where the kernel does not see them;
 *   all_to_socket  (XDP) redirects all frames there, for traffic generators and receivers;
 *   to_ring        (filter of a packet socket) accepts forwardable frames, and to_ring_by_kind does, which the kernel may refuse;
 *   not_to_kernel  (tcx, ingress) drops the frames that to_ring accepted, so that the kernel does not forward them too.
 *
 * A frame is forwardable if it is unicast IP to a MAC address of the router, and a router can forward it without any
 * message to its sender. A doubtful frame stays with the kernel, which is always correct.
 *
 * The two programs of packet sockets run one after the other on the same frame and processor, and no other frame comes
 * between, because both belong to one pass of the kernel's receive path. So the first program decides, and the second one
 * uses the decision. If it decided again, a frame that is between the two while the map `ingress` changes would be
 * forwarded twice or not at all.
 *
 * Frames of flows that the filter knows (known_flow.h) are neither for a socket nor for the kernel: they are sent on from here.
 *
 * One more program notes failed links for the workers (link_failures.h).
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

#include "frame.h"
#include "known_flow.h"
#include "link_failures.h"
#include "segments.h"

/* Classes of frames: the indices of `counts`, with names in classify.rs. */
enum class {
	NOT_OURS, /* the interface is unknown or does not forward the family, or another MAC address; also: no decision */
	FORWARD,
	NOT_IP,
	LOCAL,
	GROUP, /* multicast and broadcast */
	SPECIAL, /* link-local, loopback, unspecified, reserved */
	LIFETIME, /* time to live or hop limit used up */
	OPTIONS, /* IPv4 options, IPv6 hop-by-hop options */
	MALFORMED,
	TOO_LONG, /* longer than a packet slot; or several packets in one, other than those that fullview filters and cuts */
	REINJECTED, /* returned by fullview */
	ROUTER_STALLED, /* the router is stopped or hangs, so that the kernel knows better */
	KNOWN_FLOW, /* forwarded here */
	UNSENT, /* of a known flow, and dropped: no memory to change it, or no room for a tag */
	TCP_BESIDE_LARGE, /* the kernel gets the large frames of the connection, and would send them by another next hop */
	CLASSES,
};

struct ingress_key {
	__u32 interface;
	__u32 vlan;
};

struct ingress {
	__u8 mac[ETH_ALEN];
	__u8 forwards_inet;
	__u8 forwards_inet6;
	__u32 sockets; /* the index of the socket of its first queue */
	__u32 queues;
	__u32 leaves_tcp; /* to the kernel */
};

struct trailer {
	__u64 low, high;
};

/* A secret of this process, so that no frame from the wire can pretend to be reinjected. */
const volatile struct trailer TRAILER;
/* The longest forwardable frame, without a tag. */
const volatile __u32 LONGEST;
/* Whether fullview filters: then the kernel gets no unicast packet to another host before the rules have judged it, as it may
 * answer such a packet. fullview drops those that it cannot read, and gives the others to the kernel afterwards. Packet sockets get
 * frames of several segments of TCP, or datagrams of UDP, which they cut. Other packets that are too long for it are dropped here. */
const volatile __u8 FILTERED;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct ingress_key);
	__type(value, struct ingress);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} ingress SEC(".maps");

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
	__uint(max_entries, CLASSES);
} counts SEC(".maps");

struct decision {
	__u32 class; /* NOT_OURS if to_ring did not run */
	__u32 flow; /* the index of the known flow, 0 without one */
};

/* The decision of to_ring about the current frame of this processor. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct decision);
	__uint(max_entries, 1);
} decided SEC(".maps");

/* When the router last had everything that the kernel told it, by the monotonic clock; 0 if it does not report. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
} reported SEC(".maps");

#define LONGEST_SILENCE 1000000000ll

/* Failed links, which workers leave: the words of src/noted_links.rs. */
struct noted_links {
	__u32 changes;		/* how often any of the others became another one */
	__u32 namespace;	/* in which link_failures.h notes links, by its inode number; 0: in none */
	__u32 failed[FAILED];	/* the device whose link has failed, by the low bits of its index */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct noted_links);
} noted_links SEC(".maps");

struct tag {
	__be16 control;
	__be16 type;
};

static __always_inline void count(__u32 class)
{
	__u64 *value = bpf_map_lookup_elem(&counts, &class);

	if (value)
		*value += 1;
}

/* This clock is a little behind that of the router. */
static __always_inline bool is_stalled(void)
{
	__u32 only = 0;
	__u64 *last = bpf_map_lookup_elem(&reported, &only);

	return last && *last && (__s64)(bpf_ktime_get_coarse_ns() - *last) > LONGEST_SILENCE;
}

static __always_inline bool is_to(const struct ingress *settings, const __u8 *mac)
{
	__u8 differs = 0;

#pragma unroll
	for (int at = 0; at < ETH_ALEN; at++)
		differs |= settings->mac[at] ^ mac[at];
	return !differs;
}

/* Classifies an IPv4 packet with `room` bytes from its header to the end of the frame. */
static __always_inline enum class inet(const struct iphdr *ip, __u32 room)
{
	__u32 total = bpf_ntohs(ip->tot_len), destination = ip->daddr;
	__u8 first = bpf_ntohl(destination) >> 24;

	if (ip->version != 4 || ip->ihl < 5 || total < sizeof(*ip) || total > room)
		return MALFORMED;
	if (ip->ihl > 5 && !FILTERED)
		return OPTIONS;
	if (first >= 224)
		return GROUP;
	if (first == 0 || first == 127 || bpf_ntohl(destination) >> 16 == 0xa9fe)
		return SPECIAL;
	if (ip->ttl <= 1 && !FILTERED)
		return LIFETIME;
	return bpf_map_lookup_elem(&local, &destination) ? LOCAL : FORWARD;
}

static __always_inline bool is_link_local(const struct in6_addr *address)
{
	return (address->s6_addr32[0] & bpf_htonl(0xffc00000)) == bpf_htonl(0xfe800000);
}

/* Unspecified and loopback addresses, and IPv4 addresses embedded in IPv6. */
static __always_inline bool is_low(const struct in6_addr *address)
{
	return !(address->s6_addr32[0] | address->s6_addr32[1]);
}

static __always_inline enum class inet6(const struct ipv6hdr *ip, __u32 room)
{
	struct in6_addr destination = ip->daddr;
	__u32 total = bpf_ntohs(ip->payload_len) + sizeof(*ip);

	if (ip->version != 6 || total > room)
		return MALFORMED;
	if (destination.s6_addr[0] == 0xff)
		return GROUP;
	if (is_link_local(&ip->saddr) || is_link_local(&destination) || is_low(&destination))
		return SPECIAL;
	if (ip->hop_limit <= 1 && !FILTERED)
		return LIFETIME;
	if (ip->nexthdr == IPPROTO_HOPOPTS && !FILTERED)
		return OPTIONS;
	return bpf_map_lookup_elem(&local6, &destination) ? LOCAL : FORWARD;
}

/* Bytes of the packet, by its length field. */
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

/* Socket buffers, for packet sockets. Their VLAN tags are not part of the frame. */

static __always_inline bool skb_is_reinjected(struct __sk_buff *skb, __u32 end)
{
	struct trailer trailer;

	return skb->len == end + sizeof(trailer) && !bpf_skb_load_bytes(skb, end, &trailer, sizeof(trailer)) &&
	       is_trailer(&trailer);
}

static __always_inline enum class unless_tcp_is_left(enum class class, const struct ingress *settings, __u8 protocol)
{
	return class == FORWARD && settings->leaves_tcp && protocol == IPPROTO_TCP ? TCP_BESIDE_LARGE : class;
}

/* Whether a frame of several packets has those that packet sockets cut. For most others the kernel cannot describe the offload to a
 * socket (virtio_net_hdr_from_skb), and after the first of those the socket's ring gets no frame any more. */
static __always_inline bool can_be_cut(struct __sk_buff *skb, __u8 protocol, bool by_kind)
{
	return protocol == IPPROTO_TCP || (by_kind && protocol == IPPROTO_UDP && is_datagrams(skb));
}

static __always_inline enum class unless_too_long(enum class class, struct __sk_buff *skb, __u8 protocol, bool by_kind)
{
	return class == FORWARD && skb->gso_size && !can_be_cut(skb, protocol, by_kind) ? TOO_LONG : class;
}

static __always_inline enum class skb_inet(struct __sk_buff *skb, const struct ingress *settings, bool by_kind)
{
	enum class class;
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return MALFORMED;
	if (skb_is_reinjected(skb, ETH_HLEN + inet_len(&ip)))
		return REINJECTED;
	class = unless_tcp_is_left(inet(&ip, skb->len - ETH_HLEN), settings, ip.protocol);
	return unless_too_long(class, skb, ip.protocol, by_kind);
}

static __always_inline enum class skb_inet6(struct __sk_buff *skb, const struct ingress *settings, bool by_kind)
{
	enum class class;
	struct ipv6hdr ip;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return MALFORMED;
	if (skb_is_reinjected(skb, ETH_HLEN + inet6_len(&ip)))
		return REINJECTED;
	class = unless_tcp_is_left(inet6(&ip, skb->len - ETH_HLEN), settings, ip.nexthdr);
	return unless_too_long(class, skb, ip.nexthdr, by_kind);
}

static __always_inline enum class skb_class(struct __sk_buff *skb, bool by_kind)
{
	struct ingress_key key = { .interface = skb->ifindex };
	enum class class = NOT_IP;
	struct ingress *settings;
	struct ethhdr frame;
	bool too_long;

	if (bpf_skb_load_bytes(skb, 0, &frame, sizeof(frame)))
		return MALFORMED;
	if (skb->vlan_present) {
		/* A service VLAN (802.1ad) with this number is another VLAN. */
		if (skb->vlan_proto != bpf_htons(ETH_P_8021Q))
			return NOT_OURS;
		key.vlan = skb->vlan_tci & 0xfff;
	}
	settings = bpf_map_lookup_elem(&ingress, &key);
	if (!settings || !is_to(settings, frame.h_dest))
		return NOT_OURS;
	if (is_stalled())
		return ROUTER_STALLED;
	too_long = skb->gso_size ? !FILTERED : skb->len > LONGEST;
	if (too_long && !FILTERED)
		return TOO_LONG;
	if (frame.h_proto == bpf_htons(ETH_P_IP))
		class = settings->forwards_inet ? skb_inet(skb, settings, by_kind) : NOT_OURS;
	else if (frame.h_proto == bpf_htons(ETH_P_IPV6))
		class = settings->forwards_inet6 ? skb_inet6(skb, settings, by_kind) : NOT_OURS;
	return too_long && class == FORWARD ? TOO_LONG : class;
}

/* A packet that is too long stays with the kernel, unless fullview filters and the packet is to another host. */
static __always_inline bool is_dropped(__u32 class)
{
	return class == FORWARD || class == KNOWN_FLOW || (FILTERED && class == TOO_LONG);
}

static __always_inline struct decision *current_decision(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&decided, &only);
}

/* The first bytes of a frame. The packet is aligned. */
struct skb_headers {
	__u8 before[2];
	struct ethhdr ethernet;
	union {
		struct inet_headers inet;
		struct inet6_headers inet6;
	};
} __attribute__((aligned(8)));

#define INET_HEADERS (sizeof(struct ethhdr) + sizeof(struct inet_headers))
#define INET6_HEADERS (sizeof(struct ethhdr) + sizeof(struct inet6_headers))

/* Whether a frame whose packet has a header of this length is no TCP segment or a plain one. */
static __always_inline bool skb_is_plain(struct __sk_buff *skb, struct shown *shown, __u32 header)
{
	struct tcp_rest tcp;

	if (!shown->is_segment)
		return true;
	return !bpf_skb_load_bytes(skb, ETH_HLEN + header + TCP_REST, &tcp, sizeof(tcp)) &&
	       show_segment(shown, &tcp, shown->bytes - header);
}

/* What a frame shows, if a known flow may have such frames. */
static __always_inline bool skb_show(struct __sk_buff *skb, struct shown *shown)
{
	struct skb_headers headers = {};
	void *more = (void *)&headers.ethernet + INET_HEADERS;
	bool is_plain;

	if (bpf_skb_load_bytes(skb, 0, &headers.ethernet, INET_HEADERS))
		return false;
	shown->ingress = skb->ifindex;
	if (skb->vlan_present) {
		if (skb->vlan_proto != bpf_htons(ETH_P_8021Q))
			return false;
		shown->ingress |= (__u64)(skb->vlan_tci & 0xfff) << 32;
	}
	shown->station = station_of(headers.ethernet.h_dest);
	shown->is_inet6 = headers.ethernet.h_proto == bpf_htons(ETH_P_IPV6);
	if (!shown->is_inet6)
		is_plain = headers.ethernet.h_proto == bpf_htons(ETH_P_IP) && show_inet(shown, &headers.inet) &&
			   skb_is_plain(skb, shown, sizeof(struct iphdr));
	else
		is_plain = !bpf_skb_load_bytes(skb, INET_HEADERS, more, INET6_HEADERS - INET_HEADERS) &&
			   show_inet6(shown, &headers.inet6) && skb_is_plain(skb, shown, sizeof(struct ipv6hdr));
	return is_plain && shown->bytes <= skb->len - ETH_HLEN && !skb_is_reinjected(skb, ETH_HLEN + shown->bytes);
}

/* The bytes of the headers that each packet of a frame has. */
static __always_inline __u32 headers_of(const struct shown *shown)
{
	__u32 network = shown->is_inet6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);

	return shown->is_segment ? shown->bytes - shown->payload : network + UDP_HEADER;
}

/* The length of the longest packet in a frame of those that can be cut, or of one. */
static __always_inline __u32 longest_in(struct __sk_buff *skb, const struct shown *shown)
{
	return skb->gso_size ? headers_of(shown) + skb->gso_size : skb->len - ETH_HLEN;
}

/* Decides to forward a frame by a known flow, if it can be. Several packets of UDP in one frame that may be a tunnel's are left to
 * not_to_kernel, which can tell whether those fit. */
static __always_inline bool skb_decide_by_flow(struct __sk_buff *skb, struct decision *decision, bool by_kind)
{
	__u64 now = bpf_ktime_get_coarse_ns();
	struct shown shown = {};
	struct flow *flow;
	__u32 index, padding;

	if (!FLOW_BUCKETS || !skb_show(skb, &shown))
		return false;
	index = find_flow(&shown, now);
	flow = index ? flow_at(index) : 0;
	if (!flow)
		return false;
	padding = skb->len - ETH_HLEN - shown.bytes;
	if (skb->gso_size && !shown.is_segment && !(by_kind && is_datagrams(skb)))
		decision->class = TOO_LONG;
	else if (longest_in(skb, &shown) <= flow->mtu && claim(flow, &shown, shown.bytes, padding, now))
		decision->class = KNOWN_FLOW;
	else
		return false;
	decision->flow = index;
	return true;
}

/* A filter returns how many bytes of a frame it accepts. */
#define WHOLE 0x7fffffff

/* The filter also sees frames that this host sends, and rejects them. */
static __always_inline int accepted(struct __sk_buff *skb, bool by_kind)
{
	struct decision *decision = current_decision();

	if (!decision || skb->pkt_type == PACKET_OUTGOING)
		return 0;
	decision->flow = 0;
	if (skb_decide_by_flow(skb, decision, by_kind))
		return 0;
	decision->class = skb_class(skb, by_kind);
	return decision->class == FORWARD ? WHOLE : 0;
}

SEC("socket")
int to_ring(struct __sk_buff *skb)
{
	return accepted(skb, false);
}

/* A kernel that is locked down, or without type information, refuses it. */
SEC("socket")
int to_ring_by_kind(struct __sk_buff *skb)
{
	return accepted(skb, true);
}

/* Whether a frame of several packets of UDP is forwarded by its flow. */
static __always_inline bool claim_segments(struct __sk_buff *skb, struct flow *flow, const struct shown *shown)
{
	struct frame frame = { .context = skb, .is_skb = 1 };

	return segments_fit(frame, flow->device, flow->mtu) &&
	       claim(flow, shown, skb->len - ETH_HLEN, 0, bpf_ktime_get_coarse_ns());
}

/* Whether the frame is one that to_ring may have found a flow for. A decision can be that about another frame, if that did not
 * get as far as here, and if this one did not come past to_ring: then no packet socket is open. */
static __always_inline bool skb_is_of(struct __sk_buff *skb, const struct flow *flow, struct shown *shown)
{
	return skb_show(skb, shown) && is_of(flow, shown);
}

/* Sends a frame on by its flow. */
static __always_inline int skb_send(struct __sk_buff *skb, const struct flow *flow)
{
	struct frame frame = { .context = skb, .is_skb = 1 };

	pull_headers(skb);
	if (!rewrite_for_flow(frame, flow, skb->vlan_present)) {
		count(UNSENT);
		return TCX_DROP;
	}
	count(KNOWN_FLOW);
	return bpf_redirect(flow->device, 0);
}

SEC("classifier")
int not_to_kernel(struct __sk_buff *skb)
{
	struct decision *decision = current_decision();
	struct shown shown = {};
	struct flow *flow;
	__u32 class;

	if (!decision)
		return TCX_NEXT;
	class = decision->class;
	decision->class = NOT_OURS;
	flow = FLOW_BUCKETS && decision->flow ? flow_at(decision->flow) : 0;
	decision->flow = 0;
	if (flow && skb_is_of(skb, flow, &shown) && (class == KNOWN_FLOW || claim_segments(skb, flow, &shown)))
		return skb_send(skb, flow);
	count(class);
	return is_dropped(class) ? TCX_DROP : TCX_NEXT;
}

/* Frames in the driver's buffers, for AF_XDP sockets. */

static __always_inline bool xdp_is_reinjected(struct xdp_md *xdp, __u32 len, __u32 end)
{
	struct trailer trailer;

	return len == end + sizeof(trailer) && !bpf_xdp_load_bytes(xdp, end, &trailer, sizeof(trailer)) &&
	       is_trailer(&trailer);
}

static __always_inline enum class xdp_inet(struct xdp_md *xdp, __u32 len, __u32 at)
{
	struct iphdr *ip = (void *)(long)xdp->data + at;

	if ((void *)(ip + 1) > (void *)(long)xdp->data_end)
		return MALFORMED;
	if (xdp_is_reinjected(xdp, len, at + inet_len(ip)))
		return REINJECTED;
	return inet(ip, len - at);
}

static __always_inline enum class xdp_inet6(struct xdp_md *xdp, __u32 len, __u32 at)
{
	struct ipv6hdr *ip = (void *)(long)xdp->data + at;

	if ((void *)(ip + 1) > (void *)(long)xdp->data_end)
		return MALFORMED;
	if (xdp_is_reinjected(xdp, len, at + inet6_len(ip)))
		return REINJECTED;
	return inet6(ip, len - at);
}

static __always_inline enum class xdp_class(struct xdp_md *xdp, __u32 *socket)
{
	void *data = (void *)(long)xdp->data, *end = (void *)(long)xdp->data_end;
	struct ingress_key key = { .interface = xdp->ingress_ifindex };
	struct ethhdr *frame = data;
	struct tag *tag = (void *)(frame + 1);
	__u32 len = end - data, at = ETH_HLEN;
	enum class class = NOT_IP;
	struct ingress *settings;
	bool too_long;
	__be16 type;

	if ((void *)tag > end)
		return MALFORMED;
	type = frame->h_proto;
	if (type == bpf_htons(ETH_P_8021Q)) {
		if ((void *)(tag + 1) > end)
			return MALFORMED;
		key.vlan = bpf_ntohs(tag->control) & 0xfff;
		type = tag->type;
		at += sizeof(*tag);
	}
	settings = bpf_map_lookup_elem(&ingress, &key);
	if (!settings || !is_to(settings, frame->h_dest) || xdp->rx_queue_index >= settings->queues)
		return NOT_OURS;
	if (is_stalled())
		return ROUTER_STALLED;
	*socket = settings->sockets + xdp->rx_queue_index;
	too_long = len - at > LONGEST - ETH_HLEN;
	if (too_long && !FILTERED)
		return TOO_LONG;
	if (type == bpf_htons(ETH_P_IP))
		class = settings->forwards_inet ? xdp_inet(xdp, len, at) : NOT_OURS;
	else if (type == bpf_htons(ETH_P_IPV6))
		class = settings->forwards_inet6 ? xdp_inet6(xdp, len, at) : NOT_OURS;
	return too_long && class == FORWARD ? TOO_LONG : class;
}

/* Metadata that a driver writes before a frame would be copied to the memory before the slot. So the metadata is removed, or
 * else the frame stays with the kernel. */
static __always_inline int redirect(struct xdp_md *xdp, __u32 socket)
{
	if (xdp->data_meta < xdp->data && bpf_xdp_adjust_meta(xdp, xdp->data - xdp->data_meta))
		return XDP_PASS;
	return bpf_redirect_map(&sockets, socket, XDP_PASS);
}

/* Where the packet of a frame is, and what comes after it. */
struct xdp_place {
	__u32 at;
	__u32 padding;
	bool is_tagged;
};

/* Whether a packet with a header of this length is no TCP segment or a plain one. */
static __always_inline bool xdp_is_plain(const void *packet, const void *end, struct shown *shown, __u32 header)
{
	const struct tcp_rest *tcp = packet + header + TCP_REST;

	if (!shown->is_segment)
		return true;
	return (const void *)(tcp + 1) <= end && show_segment(shown, tcp, shown->bytes - header);
}

/* What a frame shows, if a known flow may have such frames. */
static __always_inline bool xdp_show(struct xdp_md *xdp, struct shown *shown, struct xdp_place *place)
{
	void *data = (void *)(long)xdp->data, *end = (void *)(long)xdp->data_end, *packet;
	struct ethhdr *frame = data;
	struct tag *tag = (void *)(frame + 1);
	__u32 len = end - data;
	bool is_plain = false;
	__be16 type;

	if ((void *)(tag + 1) > end)
		return false;
	type = frame->h_proto;
	place->is_tagged = type == bpf_htons(ETH_P_8021Q);
	place->at = place->is_tagged ? ETH_HLEN + sizeof(*tag) : ETH_HLEN;
	packet = place->is_tagged ? (void *)(tag + 1) : (void *)tag;
	shown->ingress = xdp->ingress_ifindex;
	if (place->is_tagged) {
		shown->ingress |= (__u64)(bpf_ntohs(tag->control) & 0xfff) << 32;
		type = tag->type;
	}
	shown->station = station_of(frame->h_dest);
	shown->is_inet6 = type == bpf_htons(ETH_P_IPV6);
	if (shown->is_inet6)
		is_plain = packet + sizeof(struct inet6_headers) <= end && show_inet6(shown, packet) &&
			   xdp_is_plain(packet, end, shown, sizeof(struct ipv6hdr));
	else if (type == bpf_htons(ETH_P_IP))
		is_plain = packet + sizeof(struct inet_headers) <= end && show_inet(shown, packet) &&
			   xdp_is_plain(packet, end, shown, sizeof(struct iphdr));
	if (!is_plain || shown->bytes > len - place->at)
		return false;
	place->padding = len - place->at - shown->bytes;
	return !xdp_is_reinjected(xdp, len, place->at + shown->bytes);
}

/* Forwards a frame by a known flow, if it can be. Returns the action, or -1. */
static __always_inline int xdp_forward_by_flow(struct xdp_md *xdp)
{
	struct frame frame = { .context = xdp };
	__u64 now = bpf_ktime_get_coarse_ns();
	struct xdp_place place = {};
	struct shown shown = {};
	struct flow *flow;
	__u32 index;

	if (!FLOW_BUCKETS || !xdp_show(xdp, &shown, &place))
		return -1;
	index = find_flow(&shown, now);
	flow = index ? flow_at(index) : 0;
	/* A driver loses frames that are longer than the link takes, if only by bytes behind the packet. */
	if (!flow || shown.bytes + place.padding > flow->mtu || !claim(flow, &shown, shown.bytes, place.padding, now))
		return -1;
	if (!rewrite_for_flow(frame, flow, place.is_tagged)) {
		count(UNSENT);
		return XDP_DROP;
	}
	count(KNOWN_FLOW);
	return bpf_redirect(flow->device, 0);
}

SEC("xdp")
int to_socket(struct xdp_md *xdp)
{
	int action = xdp_forward_by_flow(xdp);
	__u32 socket = 0;
	enum class class;

	if (action >= 0)
		return action;
	class = xdp_class(xdp, &socket);
	count(class);
	if (class == FORWARD)
		return redirect(xdp, socket);
	return is_dropped(class) ? XDP_DROP : XDP_PASS;
}

/* Redirects all frames of an interface, for measurements. */
SEC("xdp")
int all_to_socket(struct xdp_md *xdp)
{
	struct ingress_key key = { .interface = xdp->ingress_ifindex };
	struct ingress *settings = bpf_map_lookup_elem(&ingress, &key);

	if (!settings || xdp->rx_queue_index >= settings->queues)
		return XDP_PASS;
	count(FORWARD);
	return redirect(xdp, settings->sockets + xdp->rx_queue_index);
}

/* Ends all known flows after a link was noted. A worker reads their generation before the number of changes, so it shares no flow
 * by that link in the new generation. */
static __always_inline void note_failed(const struct net_device *device)
{
	__u32 first = 0;
	struct noted_links *links = bpf_map_lookup_elem(&noted_links, &first);
	struct flow_head *head = bpf_map_lookup_elem(&flow_head, &first);
	/* An addition is a barrier if its result is used. */
	volatile __u32 before;

	if (!links || !head || !note_in(links->failed, links->namespace, device))
		return;
	before = __sync_fetch_and_add(&links->changes, 1);
	(void)before;
	__sync_fetch_and_add(&head->generation, 1);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
