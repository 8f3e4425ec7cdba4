/* The bed that every router is measured on: generator, receiver and packet memory on the core of the router. The router
 * receives from it and transmits to it by two functions, as from and to a network card, and runs its own loop. Between two
 * slices the process waits for the next command inside bed_rx_burst; peers/README.md has the commands. */
#ifndef PEERS_BED_H
#define PEERS_BED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inputs.h"

/* What differs between the routers: the memory of a packet, of which the bed knows only where the frame is. */
struct bed_router {
	size_t frame_at; /* bytes from the start of a buffer to its frame */
	/* The frame that the router sends; NULL if it is where it was received. */
	const uint8_t *(*frame_of)(const void *buffer);
	/* Writes into each buffer what a network card reports of a frame that it received; all have this length
	 * and are of this family. */
	void (*describe)(void *const *buffers, uint16_t count, uint16_t length, enum family family);
	uint16_t (*length_of)(const void *buffer); /* the length of the frame that the router sends */
	/* The variable that ends the router's loop, set by its signal handler and by the bed; NULL if the loop asks
	 * bed_is_over. */
	volatile bool *quits;
};

/* Reads what is to be sent, and the environment; ends the program if it cannot. */
void bed_open(const struct bed_router *router);

/* Gives the bed memory for packets. Every packet is in one of these buffers, which are used in turn, so that their number
 * decides how many packets can be on their way and which cache they are in. */
void bed_lend(void *const *buffers, size_t count);

/* Writes the next frames into up to `room` free buffers and hands these out: packets that arrive at port 0. */
uint16_t bed_rx_burst(void **packets, uint16_t room);

/* Counts the packets that leave by a port, checks some of them, and takes their buffers back. A packet without a route
 * leaves by port 0. */
void bed_tx_burst(uint16_t port, void *const *packets, uint16_t count);

/* The number of packets that arrived and have not left. */
uint64_t bed_in_flight(void);

/* Whether the last command has been executed. */
bool bed_is_over(void);

#endif
