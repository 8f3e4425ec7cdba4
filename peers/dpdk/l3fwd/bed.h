/* The test bed around l3fwd: what its ports are connected to. l3fwd runs its own loop, unchanged; the driver of its ports
 * takes packets from here and returns what l3fwd sent. So generator, router and receiver run to completion on one core,
 * as they do around fullview's own forwarding (traffic/one_core.rs there). */
#ifndef PEERS_L3FWD_BED_H
#define PEERS_L3FWD_BED_H

#include <stdint.h>

#include <rte_mbuf.h>

/* Reads what is to be sent; ends the program if it cannot. */
void bed_open(void);

/* Provides up to `room` packets that arrive at port 0. Between runs the program waits here for the next command. */
uint16_t bed_receive(struct rte_mempool *pool, struct rte_mbuf **packets, uint16_t room);

/* The number of packets that arrived and have not left. */
uint64_t bed_in_flight(void);

/* Takes the packets that leave by a port. */
void bed_send(uint16_t port, struct rte_mbuf **packets, uint16_t count);

#endif
