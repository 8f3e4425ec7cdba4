/* The smallest router on the bed, for check.sh: it searches all routes for each packet. Usage: test_router FOLDER [FAULT],
 * where FAULT is `lose` (it keeps one packet of a hundred and one), `garble` (it leaves the TTL of one in a hundred and one),
 * `twice` (it sends the third packet twice, and not the fourth) or `last` (it sends the packets of a burst at once, by one port, and leaves the TTL of the last). */
#include <stdlib.h>
#include <string.h>

#include "bed.h"
#include "frames.h"

#define BUFFERS 128
/* Odd, so that the packets that the bed checks in slices have every place in a burst. */
#define BURST 31
#define IP 14
#define FAULTY_ONE_IN 101

struct buffer {
	uint16_t length;
	enum family family;
	_Alignas(64) uint8_t frame[FRAME_ROOM];
};

static void describe(void *const *buffers, uint16_t count, uint16_t length, enum family family)
{
	for (uint16_t i = 0; i < count; i++) {
		((struct buffer *)buffers[i])->length = length;
		((struct buffer *)buffers[i])->family = family;
	}
}

static uint16_t length_of(const void *buffer)
{
	return ((const struct buffer *)buffer)->length;
}

static bool holds(const struct route *route, const uint8_t *address)
{
	uint8_t whole = route->depth / 8, rest = route->depth % 8;

	return memcmp(route->address, address, whole) == 0 &&
	       (rest == 0 || (route->address[whole] ^ address[whole]) >> (8 - rest) == 0);
}

static uint16_t look_up(const struct route_list *table, const uint8_t *address)
{
	const struct route *best = NULL;

	for (size_t i = 0; i < table->count; i++)
		if (holds(&table->routes[i], address) && (best == NULL || table->routes[i].depth >= best->depth))
			best = &table->routes[i];
	return best == NULL ? 0 : best->next_hop;
}

/* Lowers the TTL and adjusts the checksum, whose high byte is of the same word as the TTL (RFC 1624). */
static void lower_ttl(uint8_t *frame)
{
	uint32_t sum = (uint32_t)(frame[IP + 10] << 8 | frame[IP + 11]) + 0x100;

	frame[IP + 8]--;
	sum += sum >> 16;
	frame[IP + 10] = (uint8_t)(sum >> 8);
	frame[IP + 11] = (uint8_t)sum;
}

/* Writes the frame as it leaves; returns its port. */
static uint16_t forward(const struct route_list tables[FAMILIES], struct buffer *packet, bool garbles)
{
	uint8_t *frame = packet->frame;
	uint16_t port = look_up(&tables[packet->family], frame + IP + (packet->family == INET ? 16 : 24));

	memcpy(frame, (const uint8_t[]){2, 0, 0, 0, 0, (uint8_t)port}, 6);
	port_address(port, frame + 6);
	if (packet->family == INET && !garbles)
		lower_ttl(frame);
	return port;
}

static void forward_one_by_one(const struct route_list tables[FAMILIES], void **packets, uint16_t count, const char *wrong)
{
	static size_t number;

	for (uint16_t i = 0; i < count; i++) {
		bool faulty = ++number % FAULTY_ONE_IN == 0;

		if (number == 4 && strcmp(wrong, "twice") == 0)
			bed_tx_burst(((struct buffer *)packets[i - 1])->frame[5], &packets[i - 1], 1);
		else if (!faulty || strcmp(wrong, "lose") != 0)
			bed_tx_burst(forward(tables, packets[i], faulty && strcmp(wrong, "garble") == 0), &packets[i], 1);
	}
}

/* The first bursts are right, because a router that fails the verification runs no slices. */
static void forward_at_once(const struct route_list tables[FAMILIES], void **packets, uint16_t count)
{
	static size_t number;
	uint16_t port = 0;

	for (uint16_t i = 0; i < count; i++)
		port = forward(tables, packets[i], ++number > FAULTY_ONE_IN && i + 1 == count);
	if (count > 0)
		bed_tx_burst(port, packets, count);
}

int main(int argc, char **argv)
{
	static struct buffer memory[BUFFERS];
	struct route_list tables[FAMILIES] = {0};
	void *packets[BUFFERS];
	const char *wrong = argc > 2 ? argv[2] : "";

	if (argc < 2)
		fail(EXIT_USAGE, "usage: test_router FOLDER [lose|garble|twice|last]");
	bed_open(&(struct bed_router){offsetof(struct buffer, frame), NULL, describe, length_of, NULL});
	read_table(argv[1], tables);
	for (size_t i = 0; i < BUFFERS; i++)
		packets[i] = &memory[i];
	bed_lend(packets, BUFFERS);
	while (!bed_is_over()) {
		uint16_t count = bed_rx_burst(packets, BURST);

		if (strcmp(wrong, "last") == 0)
			forward_at_once(tables, packets, count);
		else
			forward_one_by_one(tables, packets, count, wrong);
	}
	free_table(tables);
	return EXIT_SUCCESS;
}
