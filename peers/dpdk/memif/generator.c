/* The other end of a router's memif interfaces: sends the frames of the bed into interface 0 and receives what the router
 * sends to all. It uses one core and the router another. Usage: generator SOCKET PORTS, with the environment of ../memif.sh.
 *
 * It does as little as it can, so that the router is the slower one: a frame is copied once, into the router's memory, and
 * of those that come out only those are read that the bed checks. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../bed/bed.h"
#include "../../bed/frames.h"
#include "server.h"

#define BURST 64
#define MOST_PORTS 32

/* The most packets on their way: no ring overflows, so no packet is lost, and the generator never waits for the router to
 * empty a ring. */
#define WINDOW (MEMIF_RING - BURST)

/* Packets of the bed: what is on its way, and a burst. */
#define PACKETS (WINDOW + BURST)

/* How long a router may take to load its table, and to forward anything at all. */
#define START_SECONDS 240
#define STALL_SECONDS 10

/* A packet of the bed. Its frame is copied into the router's memory; when one comes out, a free packet stands for it. */
struct packet {
	_Alignas(64) uint8_t frame[FRAME_ROOM];
	const uint8_t *at; /* its frame, here or in the router's memory */
	uint16_t length;
};

/* The packets whose frames are on their way. */
static struct {
	void *packets[PACKETS];
	unsigned count;
} away;

static struct memif_port ports[MOST_PORTS];
static unsigned port_count;
static volatile bool force_quit;

static void quit(int signal)
{
	(void)signal;
	force_quit = true;
}

static void describe(void *const *packets, uint16_t count, uint16_t length, enum family family)
{
	(void)family;
	for (uint16_t i = 0; i < count; i++) {
		struct packet *packet = packets[i];

		packet->at = packet->frame;
		packet->length = length;
	}
}

static uint16_t length_of(const void *packet)
{
	return ((const struct packet *)packet)->length;
}

static const uint8_t *frame_of(const void *packet)
{
	return ((const struct packet *)packet)->at;
}

static bool has_router_ended(void)
{
	const char *router = getenv("BED_ROUTER");

	return router != NULL && kill((pid_t)strtol(router, NULL, 10), 0) < 0;
}

static bool is_over(void)
{
	return force_quit || has_router_ended();
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Ends the program if nothing moves for too long. `since` is when that was noticed first, or 0. */
static void check_stall(double *since)
{
	for (unsigned i = 0; i < port_count; i++)
		if (memif_is_gone(&ports[i]))
			fail(EXIT_ENVIRONMENT, "the router has ended");
	*since = *since > 0 ? *since : now();
	if (now() - *since > STALL_SECONDS)
		fail(EXIT_ENVIRONMENT, "the router loses packets, or forwards none any more");
}

static uint8_t *buffer_of(const struct memif_port *port, const struct memif_descriptor *descriptor)
{
	uint8_t *buffer = memif_buffer(port, descriptor, FRAME_ROOM);

	if (buffer == NULL)
		fail(EXIT_ENVIRONMENT, "the router describes a buffer outside of its memory");
	return buffer;
}

/* What the router wrote or read last is in the cache of its core. It is requested all at once, and used later. */
static void request_buffers(const struct memif_port *port)
{
	for (uint16_t i = 0; i < BURST; i++)
		__builtin_prefetch(buffer_of(port, memif_next_to(port, i)), 1);
}

static void request_heads(void)
{
	for (unsigned i = 0; i < port_count; i++)
		__builtin_prefetch(&ports[i].from_client->head);
}

static void request_descriptors(const struct memif_port *port, uint16_t count)
{
	for (uint16_t i = 0; i < count; i += 64 / sizeof(struct memif_descriptor))
		__builtin_prefetch(memif_next_from(port, i));
}

/* Waits for room, which comes unless the router has ended: there are more buffers than packets on their way. */
static void await_room(const struct memif_port *port, uint16_t count)
{
	double stalled = 0;

	for (unsigned idle = 1; memif_room(port) < count && !force_quit; idle++)
		if (idle % (1u << 20) == 0)
			check_stall(&stalled);
}

static void send_all(struct memif_port *port, void *const *packets, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++) {
		const struct packet *packet = packets[i];
		struct memif_descriptor *descriptor = memif_next_to(port, i);

		memcpy(buffer_of(port, descriptor), packet->frame, FRAME_ROOM);
		descriptor->length = packet->length;
		descriptor->flags = 0;
		away.packets[away.count++] = packets[i];
	}
	memif_sent(port, count);
}

static void receive_from(uint16_t number)
{
	struct memif_port *port = &ports[number];
	uint16_t waiting = memif_waiting(port), count = waiting < BURST ? waiting : BURST;

	if (count == 0)
		return;
	if (count > away.count)
		fail(EXIT_WRONG_ANSWER, "the router sends more packets than it received");
	request_descriptors(port, count);
	away.count -= count;
	for (uint16_t i = 0; i < count; i++) {
		struct packet *packet = away.packets[away.count + i];
		const struct memif_descriptor *descriptor = memif_next_from(port, i);

		packet->at = buffer_of(port, descriptor);
		packet->length = (uint16_t)descriptor->length;
	}
	bed_tx_burst(number, away.packets + away.count, count);
	memif_took(port, count);
}

static void send_some(struct memif_port *port)
{
	void *packets[BURST];
	uint16_t count;

	count = bed_rx_burst(packets, BURST);
	await_room(port, count);
	if (!force_quit)
		send_all(port, packets, count);
	request_buffers(port);
}

static void run(void)
{
	double stalled = 0;

	for (unsigned idle = 1; !force_quit; idle++) {
		if (bed_in_flight() + BURST <= WINDOW) {
			send_some(&ports[0]);
			idle = 1;
			stalled = 0;
		}
		request_heads();
		for (uint16_t port = 0; port < port_count; port++)
			receive_from(port);
		if (idle % (1u << 20) == 0)
			check_stall(&stalled);
	}
}

static void lend_packets(void)
{
	static struct packet packets[PACKETS];
	void *lent[PACKETS];

	for (unsigned i = 0; i < PACKETS; i++)
		lent[i] = &packets[i];
	bed_lend(lent, PACKETS);
}

int main(int argc, char **argv)
{
	int listener;

	port_count = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	if (port_count == 0 || port_count > MOST_PORTS)
		fail(EXIT_USAGE, "usage: generator SOCKET PORTS, with 1 to %d ports; peers/dpdk/memif.sh starts this program", MOST_PORTS);
	signal(SIGTERM, quit);
	signal(SIGINT, quit);
	bed_open(&(struct bed_router){offsetof(struct packet, frame), frame_of, describe, length_of, &force_quit});
	lend_packets();
	listener = memif_listen(argv[1], MOST_PORTS);
	if (!memif_accept_all(listener, ports, port_count, START_SECONDS, is_over)) {
		if (!force_quit)
			fail(EXIT_ENVIRONMENT, "the router has ended before it connected");
		return 0;
	}
	if (ports[0].to_client == NULL)
		fail(EXIT_ENVIRONMENT, "the router does not receive by interface 0");
	run();
	return 0;
}
