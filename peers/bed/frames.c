#include "frames.h"

#include <arpa/inet.h>
#include <string.h>

#define HOP_LIMIT 64
#define UDP_PORT 2000
#define UDP_PROTOCOL 17

/* Offsets of headers and fields; the smallest frame of IPv4 without its FCS, and of IPv6. */
#define IP 14
#define ETHER_TYPE 12
#define INET_UDP (IP + 20)
#define INET_FRAME 60
#define INET6_UDP (IP + 40)
#define INET6_FRAME (INET6_UDP + 8)

#define INET_LENGTH (IP + 2)
#define INET_TTL (IP + 8)
#define INET_PROTOCOL (IP + 9)
#define INET_CHECKSUM (IP + 10)
#define INET_SOURCE (IP + 12)
#define INET_DESTINATION (IP + 16)
#define INET_NUMBER (INET_UDP + 8)

#define INET6_LABEL IP
#define INET6_LENGTH (IP + 4)
#define INET6_PROTOCOL (IP + 6)
#define INET6_HOP_LIMIT (IP + 7)
#define INET6_SOURCE (IP + 8)
#define INET6_DESTINATION (IP + 24)
#define INET6_CHECKSUM (INET6_UDP + 6)
#define MOST_LABEL 0xfffff

_Static_assert(INET6_FRAME <= FRAME_ROOM && INET_FRAME <= FRAME_ROOM, "a frame has room");

void port_address(uint16_t port, uint8_t address[6])
{
	const uint8_t made[6] = {0x02, 0, 0, 0, 1, (uint8_t)port};

	memcpy(address, made, sizeof(made));
}

/* The number of a packet is in the payload of IPv4 and in the flow label of IPv6. */
size_t number_of_packet(const struct generator *generator, const uint8_t *frame)
{
	bool inet = generator->stream->family == INET;
	uint32_t number;

	memcpy(&number, frame + (inet ? INET_NUMBER : INET6_LABEL), sizeof(number));
	return inet ? number : ntohl(number) & MOST_LABEL;
}

static uint16_t folded(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* Adds 16-bit words as they are in memory: the sum is correct except for the order of its bytes. */
static uint32_t sum_of(const uint8_t *bytes, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i += 2) {
		uint16_t word;

		memcpy(&word, bytes + i, sizeof(word));
		sum += word;
	}
	return sum;
}

static void put16(uint8_t *field, uint16_t value)
{
	field[0] = (uint8_t)(value >> 8);
	field[1] = (uint8_t)value;
}

static void write_udp(uint8_t *udp, uint16_t length)
{
	put16(udp, UDP_PORT);
	put16(udp + 2, UDP_PORT);
	put16(udp + 4, length);
}

static void write_inet(struct generator *generator)
{
	static const uint8_t source[4] = {198, 18, 0, 1};
	uint8_t *frame = generator->template;

	frame[IP] = 0x45;
	put16(frame + INET_LENGTH, INET_FRAME - IP);
	frame[INET_TTL] = HOP_LIMIT;
	frame[INET_PROTOCOL] = UDP_PROTOCOL;
	memcpy(frame + INET_SOURCE, source, sizeof(source));
	write_udp(frame + INET_UDP, INET_FRAME - INET_UDP);
	generator->sum = sum_of(frame + IP, INET_UDP - IP);
}

static void write_inet6(struct generator *generator)
{
	static const uint8_t source[16] = {0x20, 0x01, 0, 2, [15] = 1};
	uint8_t *frame = generator->template;

	frame[IP] = 0x60;
	put16(frame + INET6_LENGTH, INET6_FRAME - INET6_UDP);
	frame[INET6_PROTOCOL] = UDP_PROTOCOL;
	frame[INET6_HOP_LIMIT] = HOP_LIMIT;
	memcpy(frame + INET6_SOURCE, source, sizeof(source));
	write_udp(frame + INET6_UDP, INET6_FRAME - INET6_UDP);
	generator->sum = sum_of(source, sizeof(source)) + sum_of(frame + INET6_UDP, INET6_FRAME - INET6_UDP) +
			 htons(INET6_FRAME - INET6_UDP) + htons(UDP_PROTOCOL);
}

struct generator generator_of(const struct stream *stream, bool lowers_hop_limit)
{
	static const uint8_t source[6] = {0x02, 0, 0, 0, 0, 0x01};
	struct generator generator = {.stream = stream, .lowers_hop_limit = lowers_hop_limit};
	bool inet = stream->family == INET;

	if (!inet && stream->count > MOST_LABEL + 1)
		fail(EXIT_INPUT, "%zu IPv6 keys: %u can be told apart by the flow label", stream->count, MOST_LABEL + 1);
	port_address(0, generator.template);
	memcpy(generator.template + sizeof(source), source, sizeof(source));
	put16(generator.template + ETHER_TYPE, inet ? 0x0800 : 0x86dd);
	generator.frame_bytes = inet ? INET_FRAME : INET6_FRAME;
	if (inet)
		write_inet(&generator);
	else
		write_inet6(&generator);
	return generator;
}

static inline void write_inet_destination(const struct generator *generator, uint8_t *frame, size_t number)
{
	uint32_t destination = htonl(((const uint32_t *)generator->stream->keys)[number]);
	uint16_t checksum = (uint16_t)~folded(generator->sum + (destination & 0xffff) + (destination >> 16));

	memcpy(frame + INET_DESTINATION, &destination, sizeof(destination));
	memcpy(frame + INET_NUMBER, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
	memcpy(frame + INET_CHECKSUM, &checksum, sizeof(checksum));
}

static inline void write_inet6_destination(const struct generator *generator, uint8_t *frame, size_t number)
{
	const uint8_t *destination = (const uint8_t *)generator->stream->keys + number * 16;
	uint16_t checksum = (uint16_t)~folded(generator->sum + sum_of(destination, 16));

	checksum = checksum ? checksum : 0xffff;
	memcpy(frame + INET6_LABEL, &(uint32_t){htonl(6u << 28 | (uint32_t)number)}, sizeof(uint32_t));
	memcpy(frame + INET6_DESTINATION, destination, 16);
	memcpy(frame + INET6_CHECKSUM, &checksum, sizeof(checksum));
}

static inline void write_destination(const struct generator *generator, uint8_t *frame, size_t number)
{
	if (generator->stream->family == INET)
		write_inet_destination(generator, frame, number);
	else
		write_inet6_destination(generator, frame, number);
}

void generate(struct generator *generator, void *const *buffers, size_t frame_at, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		uint8_t *frame = (uint8_t *)buffers[i] + frame_at;

		memcpy(frame, generator->template, FRAME_ROOM);
		write_destination(generator, frame, generator->at);
		generator->at = generator->at + 1 == generator->stream->count ? 0 : generator->at + 1;
	}
}

/* Checks the TTL and the checksum of IPv4 after the router. The checksum may be the other zero of one's complement, so it is
 * verified and not compared. */
static bool lower_ttl(uint8_t *expected, const uint8_t *frame)
{
	expected[INET_TTL]--;
	memcpy(expected + INET_CHECKSUM, frame + INET_CHECKSUM, sizeof(uint16_t));
	return folded(sum_of(expected + IP, INET_UDP - IP)) == 0xffff;
}

/* The Ethernet addresses that a router writes: the neighbour 02:00:00:00:00:PORT as destination, the port's own as
 * source. */
static void leave_by(uint8_t *frame, uint16_t port)
{
	const uint8_t station[6] = {0x02, 0, 0, 0, 0, (uint8_t)port};

	memcpy(frame, station, sizeof(station));
	port_address(port, frame + sizeof(station));
}

/* Changes an expected frame into what it is behind the router; returns what is wrong already. */
static const char *route(const struct generator *generator, uint8_t *expected, const uint8_t *frame, uint16_t port)
{
	leave_by(expected, port);
	if (generator->stream->family == INET && !lower_ttl(expected, frame))
		return "has a wrong header checksum";
	if (generator->stream->family == INET6 && generator->lowers_hop_limit)
		expected[INET6_HOP_LIMIT]--;
	return NULL;
}

const char *fault(const struct generator *generator, const uint8_t *frame, uint16_t length, uint16_t port, bool forwarded)
{
	_Alignas(64) uint8_t expected[FRAME_ROOM];
	const struct stream *stream = generator->stream;
	size_t number;
	const char *wrong = NULL;

	if (length != generator->frame_bytes)
		return "has another length";
	number = number_of_packet(generator, frame);
	if (number >= stream->count)
		return "was not sent by the generator";
	memcpy(expected, generator->template, sizeof(expected));
	write_destination(generator, expected, number);
	if (forwarded && port != stream->answers[number])
		return "left by another port than its route says";
	/* Without a route l3fwd sends a packet back, and our router rejects it. */
	if (forwarded && port == 0)
		return NULL;
	if (forwarded)
		wrong = route(generator, expected, frame, port);
	if (wrong != NULL)
		return wrong;
	return memcmp(frame, expected, generator->frame_bytes) == 0 ? NULL : "has other headers than it should have";
}
