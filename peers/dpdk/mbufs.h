/* DPDK's packet buffers as the bed sees them. */
#ifndef PEERS_MBUFS_H
#define PEERS_MBUFS_H

#include <stdint.h>
#include <stdlib.h>

#include <rte_mbuf.h>

#include "../bed/inputs.h"

/* A frame begins behind the mbuf and its headroom: pools of l3fwd have no private area. */
#define FRAME_IN_MBUF (sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM)

/* What a network card reports of a frame, or nothing, so that l3fwd has to parse it (BED_TYPES=none). */
static inline uint32_t packet_type_of(enum family family)
{
	static int reports = -1;

	if (reports < 0)
		reports = getenv("BED_TYPES") == NULL;
	if (!reports)
		return RTE_PTYPE_UNKNOWN;
	return RTE_PTYPE_L2_ETHER | (family == INET ? RTE_PTYPE_L3_IPV4_EXT_UNKNOWN : RTE_PTYPE_L3_IPV6_EXT_UNKNOWN);
}

static inline void describe_mbufs(void *const *buffers, uint16_t count, uint16_t length, enum family family)
{
	uint32_t packet_type = packet_type_of(family);

	for (uint16_t i = 0; i < count; i++) {
		struct rte_mbuf *packet = buffers[i];

		packet->data_len = length;
		packet->pkt_len = length;
		packet->packet_type = packet_type;
	}
}

static inline uint16_t length_of_mbuf(const void *buffer)
{
	return ((const struct rte_mbuf *)buffer)->data_len;
}

/* The number of buffers of the bed, the same for every router. */
static inline size_t buffers_of_bed(void)
{
	const char *set = getenv("BED_BUFFERS");

	return set == NULL ? 2048 : strtoul(set, NULL, 10);
}

/* Takes buffers out of a pool and gives them to the bed for good. */
static inline void lend_mbufs(struct rte_mempool *pool, size_t count)
{
	struct rte_mbuf **mbufs = calloc(count, sizeof(*mbufs));

	if (mbufs == NULL || rte_pktmbuf_alloc_bulk(pool, mbufs, (unsigned)count) != 0)
		fail(EXIT_ENVIRONMENT, "%zu packet buffers: the pool has fewer, or there is no memory", count);
	bed_lend((void **)mbufs, count);
	free(mbufs);
}

#endif
