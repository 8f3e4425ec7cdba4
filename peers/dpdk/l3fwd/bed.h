/* The test bed around l3fwd: what its ports are connected to. l3fwd runs its own loop, unchanged; its ports' driver asks
 * here for packets and gives back what was sent. Generator, router and receiver thus run to completion on one core, as
 * they do around fullview's own forwarding (crates/plane/src/traffic/one_core.rs). */
#ifndef PEERS_L3FWD_BED_H
#define PEERS_L3FWD_BED_H

#include <stdint.h>

#include <rte_mbuf.h>

/* Reads what is to be sent; ends the program when it cannot. */
void bed_open(void);

/* Up to `room` packets that come in by port 0. Between runs it waits here for the next command. */
uint16_t bed_receive(struct rte_mempool *pool, struct rte_mbuf **packets, uint16_t room);

/* Packets that came in and have not left. */
uint64_t bed_in_flight(void);

/* Takes packets that leave by a port. */
void bed_send(uint16_t port, struct rte_mbuf **packets, uint16_t count);

#endif
