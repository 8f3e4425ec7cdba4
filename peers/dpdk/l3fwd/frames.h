/* The frames that l3fwd receives, as fullview's own generator makes them (the smallest UDP frames, one destination after
 * the other), and the check of each frame when it comes out. */
#ifndef PEERS_L3FWD_FRAMES_H
#define PEERS_L3FWD_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "../inputs.h"

/* The position in a stream, which starts again after its end. */
struct generator {
	const struct stream *stream;
	size_t at;
	/* The packet type that a network card would report, or RTE_PTYPE_UNKNOWN, so that l3fwd has to parse the packet. */
	uint32_t packet_type;
	uint16_t frame_bytes;
	/* Whether the router also lowers the hop limit of IPv6; l3fwd does not. */
	bool lowers_hop_limit;
	uint32_t sum; /* of all constant bytes under the checksum */
	_Alignas(64) uint8_t template[64];
};

struct generator generator_of(const struct stream *stream, bool classifies);

/* Writes the next frames, one into each of these new mbufs. */
void generate(struct generator *generator, struct rte_mbuf **packets, unsigned count);

/* What is wrong with a packet of this stream that left by a port; NULL if nothing is. */
const char *fault(const struct generator *generator, const struct rte_mbuf *packet, uint16_t port, bool forwarded);

/* The address of a port of l3fwd. */
void port_address(uint16_t port, uint8_t address[6]);

/* Which packet of its stream this is. */
size_t number_of_packet(const struct generator *generator, const struct rte_mbuf *packet);

#endif
