/* Servers of memif 2.0: the other ends of a router's interfaces. The router is the client and provides the memory. */
#ifndef PEERS_MEMIF_SERVER_H
#define PEERS_MEMIF_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMIF_RING 1024

/* A buffer of the shared memory, in the layout of the protocol. */
struct memif_descriptor {
	uint16_t flags, region;
	uint32_t length, offset, metadata;
};

/* One writer moves the head, and one reader the tail; they have cache lines of their own. In the ring to the client the
 * client offers buffers up to the head, and those up to the tail hold frames. */
struct memif_ring {
	uint32_t cookie;
	uint16_t flags, head;
	_Alignas(64) uint16_t tail;
	_Alignas(64) struct memif_descriptor descriptors[MEMIF_RING];
};

/* An interface whose client has connected. */
struct memif_port {
	int control;
	uint8_t *memory;
	size_t bytes;
	struct memif_ring *from_client;
	struct memif_ring *to_client; /* NULL if the client does not receive */
	uint16_t taken, sent; /* frames that were taken from the client, and sent to it */
};

/* Listens at a path, which exists once clients may connect; ends the program if it cannot. */
int memif_listen(const char *path, int clients);

/* Waits for so many clients, which connect to the interfaces 0 to count - 1; false if that is over before. Ends the program
 * if one asks for something else, or does not connect for so long. */
bool memif_accept_all(int listener, struct memif_port *ports, unsigned count, unsigned seconds, bool (*is_over)(void));

/* Whether the client has ended. */
bool memif_is_gone(const struct memif_port *port);

/* How many frames wait that the client sent. */
static inline uint16_t memif_waiting(const struct memif_port *port)
{
	return (uint16_t)(__atomic_load_n(&port->from_client->head, __ATOMIC_ACQUIRE) - port->taken);
}

/* How many buffers wait for frames to the client. */
static inline uint16_t memif_room(const struct memif_port *port)
{
	return (uint16_t)(__atomic_load_n(&port->to_client->head, __ATOMIC_ACQUIRE) - port->sent);
}

/* The memory of a buffer, which has room for `most` bytes; NULL if a client describes it wrongly. */
static inline uint8_t *memif_buffer(const struct memif_port *port, const struct memif_descriptor *descriptor, size_t most)
{
	uint32_t offset = descriptor->offset;

	return offset <= port->bytes - most ? port->memory + offset : NULL;
}

/* The descriptor of the frame that comes after `after` others. */
static inline struct memif_descriptor *memif_next_from(const struct memif_port *port, uint16_t after)
{
	return &port->from_client->descriptors[(uint16_t)(port->taken + after) % MEMIF_RING];
}

static inline struct memif_descriptor *memif_next_to(const struct memif_port *port, uint16_t after)
{
	return &port->to_client->descriptors[(uint16_t)(port->sent + after) % MEMIF_RING];
}

/* Returns the buffers of so many frames to the client. */
static inline void memif_took(struct memif_port *port, uint16_t count)
{
	port->taken += count;
	__atomic_store_n(&port->from_client->tail, port->taken, __ATOMIC_RELEASE);
}

/* Makes so many frames visible to the client, which has to poll. */
static inline void memif_sent(struct memif_port *port, uint16_t count)
{
	port->sent += count;
	__atomic_store_n(&port->to_client->tail, port->sent, __ATOMIC_RELEASE);
}

#endif
