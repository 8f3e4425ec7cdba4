/* The frames that routers receive (the smallest UDP frames, one destination after the other), and the check of each frame
 * when it comes out. */
#ifndef PEERS_FRAMES_H
#define PEERS_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inputs.h"

/* The first bytes of every frame, which are all that the bed reads and writes: one cache line. */
#define FRAME_ROOM 64

/* The position in a stream, which starts again after its end. */
struct generator {
	const struct stream *stream;
	size_t at;
	uint16_t frame_bytes;
	/* Whether the router also lowers the hop limit of IPv6; l3fwd does not. */
	bool lowers_hop_limit;
	uint32_t sum; /* of all constant bytes under the checksum */
	_Alignas(64) uint8_t template[FRAME_ROOM];
};

struct generator generator_of(const struct stream *stream, bool lowers_hop_limit);

/* Writes the next frames, one at this offset into each of these buffers. */
void generate(struct generator *generator, void *const *buffers, size_t frame_at, unsigned count);

/* What is wrong with a frame of this stream that left by a port; NULL if nothing is. `forwarded` is whether a router
 * forwarded it. */
const char *fault(const struct generator *generator, const uint8_t *frame, uint16_t length, uint16_t port, bool forwarded);

/* The Ethernet address of a router's port. */
void port_address(uint16_t port, uint8_t address[6]);

/* Which packet of its stream this is. */
size_t number_of_packet(const struct generator *generator, const uint8_t *frame);

#endif
