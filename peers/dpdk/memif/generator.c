/* The other end of a router's memif interfaces: sends the frames of l3fwd's test bed into interface 0 and receives what
 * the router sends to the others. It uses one core and the router another. Usage: generator EAL-OPTIONS with
 * --vdev net_memif0,role=server,… for each interface, and the environment of ../memif.sh. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "../../bed/bed.h"
#include "../mbufs.h"

#define BURST 64
#define DESCRIPTORS 1024

/* The most packets on their way: a ring of 1,024 does not overflow, so no packet is lost, and the
 * generator never waits for the router to empty a ring. */
#define WINDOW 960

/* Buffers of the bed: what is on its way, and a burst. */
#define BUFFERS (WINDOW + BURST)

/* How long a router may take to load its table, and to forward anything at all. */
#define START_SECONDS 240
#define STALL_SECONDS 10

static volatile bool force_quit;

static void quit(int signal)
{
	(void)signal;
	force_quit = true;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void open_port(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = {0};

	if (rte_eth_dev_configure(port, 1, 1, &conf) < 0 ||
	    rte_eth_rx_queue_setup(port, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL, pool) < 0 ||
	    rte_eth_tx_queue_setup(port, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL) < 0 || rte_eth_dev_start(port) < 0)
		fail(EXIT_ENVIRONMENT, "interface %u cannot be started", port);
}

static bool is_connected(uint16_t ports)
{
	for (uint16_t port = 0; port < ports; port++) {
		struct rte_eth_link link;

		if (rte_eth_link_get_nowait(port, &link) < 0 || link.link_status != RTE_ETH_LINK_UP)
			return false;
	}
	return true;
}

/* The file tells memif.sh that the router may connect. */
static void await_router(uint16_t ports)
{
	double until = now() + START_SECONDS;
	const char *path = getenv("MEMIF_LISTENS");
	FILE *file = path == NULL ? NULL : fopen(path, "w");

	if (file == NULL)
		fail(EXIT_USAGE, "peers/dpdk/memif.sh starts this program, with the environment it needs");
	fclose(file);
	while (!is_connected(ports) && !force_quit) {
		if (now() > until)
			fail(EXIT_ENVIRONMENT, "the router did not connect in %d s", START_SECONDS);
		rte_delay_ms(10);
	}
}

/* Ends the program if nothing moves for too long. `since` is when that was noticed first, or 0. */
static void check_stall(double *since)
{
	*since = *since > 0 ? *since : now();
	if (now() - *since > STALL_SECONDS)
		fail(EXIT_ENVIRONMENT, "the router loses packets, or forwards none any more");
}

/* Sends a whole burst, repeatedly if a ring is full for a moment: the window guarantees that there will be room, unless the
 * router has ended. */
static void send_all(struct rte_mbuf **packets, uint16_t count)
{
	uint16_t sent = 0;
	double stalled = 0;

	while (sent < count && !force_quit) {
		uint16_t more = rte_eth_tx_burst(0, 0, packets + sent, count - sent);

		sent += more;
		if (more == 0)
			check_stall(&stalled);
		else
			stalled = 0;
	}
}

static void receive_all(uint16_t ports)
{
	struct rte_mbuf *packets[BURST];

	for (uint16_t port = 0; port < ports; port++) {
		uint16_t count = rte_eth_rx_burst(port, 0, packets, BURST);

		if (count > 0)
			bed_tx_burst(port, (void **)packets, count);
	}
}

/* memif copies what it sends and frees the buffer into the pool, and what it receives is in a buffer of the pool. So the
 * bed has fewer buffers as more packets are on their way. */
static void run(uint16_t ports)
{
	struct rte_mbuf *packets[BURST];
	double stalled = 0;

	for (unsigned idle = 0; !force_quit; idle++) {
		if (bed_in_flight() + BURST <= WINDOW) {
			send_all(packets, bed_rx_burst((void **)packets, BURST));
			idle = 0;
			stalled = 0;
		}
		receive_all(ports);
		if (idle < 1u << 20)
			continue;
		idle = 0;
		check_stall(&stalled);
	}
}

int main(int argc, char **argv)
{
	struct rte_mempool *pool;
	uint16_t ports;

	if (rte_eal_init(argc, argv) < 0)
		fail(EXIT_ENVIRONMENT, "EAL does not start");
	signal(SIGTERM, quit);
	signal(SIGINT, quit);
	pool = rte_pktmbuf_pool_create("packets", 8191, 512, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pool == NULL)
		fail(EXIT_ENVIRONMENT, "no memory for packets");
	ports = rte_eth_dev_count_avail();
	for (uint16_t port = 0; port < ports; port++)
		open_port(port, pool);
	bed_open(&(struct bed_router){FRAME_IN_MBUF, describe_mbufs, length_of_mbuf, &force_quit});
	lend_mbufs(pool, BUFFERS);
	await_router(ports);
	run(ports);
	return 0;
}
