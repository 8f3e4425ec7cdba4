#include "frames.h"

#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#define HOP_LIMIT 64
#define PORTS_FROM 2000
#define ETHERNET sizeof(struct rte_ether_hdr)
#define INET_FRAME 60
#define INET6_FRAME (ETHERNET + sizeof(struct rte_ipv6_hdr) + sizeof(struct rte_udp_hdr))

/* The offsets of the fields that differ between the frames of a stream. */
#define INET_CHECKSUM (ETHERNET + offsetof(struct rte_ipv4_hdr, hdr_checksum))
#define INET_DESTINATION (ETHERNET + offsetof(struct rte_ipv4_hdr, dst_addr))
#define INET_NUMBER (ETHERNET + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr))
#define INET6_LABEL ETHERNET
#define INET6_HOP_LIMIT (ETHERNET + offsetof(struct rte_ipv6_hdr, hop_limits))
#define MOST_LABEL 0xfffff
#define INET6_DESTINATION (ETHERNET + offsetof(struct rte_ipv6_hdr, dst_addr))
#define INET6_CHECKSUM (ETHERNET + sizeof(struct rte_ipv6_hdr) + offsetof(struct rte_udp_hdr, dgram_cksum))

void port_address(uint16_t port, uint8_t address[6])
{
	const uint8_t made[6] = {0x02, 0, 0, 0, 1, (uint8_t)port};

	memcpy(address, made, sizeof(made));
}

/* The number of a packet is in the payload of IPv4 and in the flow label of IPv6, as in fullview's own frames. */
size_t number_of_packet(const struct generator *generator, const struct rte_mbuf *packet)
{
	bool inet = generator->stream->family == INET;
	uint32_t number;

	memcpy(&number, rte_pktmbuf_mtod_offset(packet, uint8_t *, inet ? INET_NUMBER : INET6_LABEL), sizeof(number));
	return inet ? number : rte_be_to_cpu_32(number) & MOST_LABEL;
}

static uint16_t folded(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* Adds 16-bit words as they are in memory: the sum is correct except for the order of its bytes. */
static uint32_t sum_of(const void *bytes, size_t length)
{
	const uint16_t *words = bytes;
	uint32_t sum = 0;

	for (size_t i = 0; i < length / 2; i++)
		sum += words[i];
	return sum;
}

static void write_udp(struct rte_udp_hdr *udp, size_t length)
{
	*udp = (struct rte_udp_hdr){
		.src_port = rte_cpu_to_be_16(PORTS_FROM),
		.dst_port = rte_cpu_to_be_16(PORTS_FROM),
		.dgram_len = rte_cpu_to_be_16((uint16_t)length),
	};
}

static void write_inet(struct generator *generator)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(generator->template + ETHERNET);

	*ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16(INET_FRAME - ETHERNET),
		.time_to_live = HOP_LIMIT,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = rte_cpu_to_be_32(RTE_IPV4(198, 18, 0, 1)),
	};
	write_udp((struct rte_udp_hdr *)(ip + 1), INET_FRAME - ETHERNET - sizeof(*ip));
	generator->sum = sum_of(ip, sizeof(*ip));
}

static void write_inet6(struct generator *generator)
{
	static const uint8_t source[16] = {0x20, 0x01, 0, 2, [15] = 1};
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(generator->template + ETHERNET);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	*ip = (struct rte_ipv6_hdr){
		.vtc_flow = rte_cpu_to_be_32(6u << 28),
		.payload_len = rte_cpu_to_be_16(sizeof(*udp)),
		.proto = IPPROTO_UDP,
		.hop_limits = HOP_LIMIT,
	};
	memcpy(ip->src_addr, source, sizeof(source));
	write_udp(udp, sizeof(*udp));
	generator->sum = sum_of(source, sizeof(source)) + sum_of(udp, sizeof(*udp)) + ip->payload_len +
			 rte_cpu_to_be_16(IPPROTO_UDP);
}

struct generator generator_of(const struct stream *stream, bool classifies)
{
	struct generator generator = {.stream = stream};
	struct rte_ether_hdr *ethernet = (struct rte_ether_hdr *)generator.template;
	bool inet = stream->family == INET;

	if (!inet && stream->count > MOST_LABEL + 1)
		fail(EXIT_INPUT, "%zu IPv6 keys: %u can be told apart by the flow label", stream->count, MOST_LABEL + 1);
	port_address(0, ethernet->dst_addr.addr_bytes);
	memcpy(ethernet->src_addr.addr_bytes, (const uint8_t[]){0x02, 0, 0, 0, 0, 0x01}, 6);
	ethernet->ether_type = rte_cpu_to_be_16(inet ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
	generator.frame_bytes = inet ? INET_FRAME : INET6_FRAME;
	if (classifies)
		generator.packet_type = RTE_PTYPE_L2_ETHER |
					(inet ? RTE_PTYPE_L3_IPV4_EXT_UNKNOWN : RTE_PTYPE_L3_IPV6_EXT_UNKNOWN);
	if (inet)
		write_inet(&generator);
	else
		write_inet6(&generator);
	return generator;
}

static inline void write_destination(const struct generator *generator, uint8_t *frame, size_t number)
{
	uint16_t checksum;

	if (generator->stream->family == INET) {
		uint32_t destination = rte_cpu_to_be_32(((const uint32_t *)generator->stream->keys)[number]);

		checksum = (uint16_t)~folded(generator->sum + (destination & 0xffff) + (destination >> 16));
		memcpy(frame + INET_DESTINATION, &destination, sizeof(destination));
		memcpy(frame + INET_NUMBER, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
		memcpy(frame + INET_CHECKSUM, &checksum, sizeof(checksum));
	} else {
		const uint8_t *destination = (const uint8_t *)generator->stream->keys + number * 16;

		checksum = (uint16_t)~folded(generator->sum + sum_of(destination, 16));
		checksum = checksum ? checksum : 0xffff;
		memcpy(frame + INET6_LABEL, &(uint32_t){rte_cpu_to_be_32(6u << 28 | (uint32_t)number)}, sizeof(uint32_t));
		memcpy(frame + INET6_DESTINATION, destination, 16);
		memcpy(frame + INET6_CHECKSUM, &checksum, sizeof(checksum));
	}
}

void generate(struct generator *generator, struct rte_mbuf **packets, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct rte_mbuf *packet = packets[i];
		uint8_t *frame = rte_pktmbuf_mtod(packet, uint8_t *);

		packet->data_len = generator->frame_bytes;
		packet->pkt_len = generator->frame_bytes;
		packet->packet_type = generator->packet_type;
		memcpy(frame, generator->template, sizeof(generator->template));
		write_destination(generator, frame, generator->at);
		generator->at = generator->at + 1 == generator->stream->count ? 0 : generator->at + 1;
	}
}

/* Checks the TTL and the checksum of IPv4 after the router. The checksum may be the other zero of one's complement, so it is
 * verified and not compared. */
static bool lower_ttl(uint8_t *frame, const struct rte_mbuf *packet)
{
	const struct rte_ipv4_hdr *sent = rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *, ETHERNET);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(frame + ETHERNET);

	ip->time_to_live--;
	ip->hdr_checksum = sent->hdr_checksum;
	return folded(sum_of(ip, sizeof(*ip))) == 0xffff;
}

/* The Ethernet addresses that l3fwd writes: the neighbour 02:00:00:00:00:PORT as destination, the port's own as source. */
static void leave_by(uint8_t *frame, uint16_t port)
{
	const uint8_t station[6] = {0x02, 0, 0, 0, 0, (uint8_t)port};

	memcpy(frame, station, sizeof(station));
	port_address(port, frame + sizeof(station));
}

const char *fault(const struct generator *generator, const struct rte_mbuf *packet, uint16_t port, bool forwarded)
{
	_Alignas(64) uint8_t expected[64];
	const struct stream *stream = generator->stream;
	size_t number;

	if (packet->data_len != generator->frame_bytes)
		return "has another length";
	number = number_of_packet(generator, packet);
	if (number >= stream->count)
		return "was not sent by the generator";
	memcpy(expected, generator->template, sizeof(expected));
	write_destination(generator, expected, number);
	if (forwarded) {
		/* l3fwd sends a packet without a route back out of port 0, where it arrived; the answer is 0 too. */
		if (port != stream->answers[number])
			return "left by another port than its route says";
		leave_by(expected, port);
		if (stream->family == INET && !lower_ttl(expected, packet))
			return "has a wrong header checksum";
		if (stream->family == INET6 && generator->lowers_hop_limit)
			expected[INET6_HOP_LIMIT]--;
	}
	return memcmp(rte_pktmbuf_mtod(packet, void *), expected, generator->frame_bytes) == 0
		       ? NULL
		       : "has other headers than it should have";
}
