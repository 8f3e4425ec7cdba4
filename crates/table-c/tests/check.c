/* Checks every function of fullview_table.h, its errors too, and readers in threads while the table changes. Exits with 0
 * if all checks pass. ./ci.sh capi builds and runs it, also with sanitizers. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fullview_table.h"

#define CHECK(condition)                                                                                  \
	do {                                                                                              \
		if (!(condition)) {                                                                       \
			fprintf(stderr, "%s:%d: failed: %s; last error: %s\n", __FILE__, __LINE__,        \
				#condition, fv_last_error());                                             \
			exit(1);                                                                          \
		}                                                                                         \
	} while (0)

enum { READERS = 2, COUNT = 1000 };

static const uint8_t inet6_addrs[2][16] = {
	{0x20, 0x01, 0x00, 0x02, [15] = 1},
	{0x20, 0x01, 0x0d, 0xb8, [15] = 1},
};

static uint16_t look_up(const struct fv_reader *reader, uint32_t addr)
{
	uint16_t next_hop = 9999;

	CHECK(fv_lookup4(reader, &addr, &next_hop, 1) == FV_OK);
	return next_hop;
}

static void check_text_and_lookups(struct fv_table *table, struct fv_reader *reader)
{
	const uint32_t addrs[3] = {0xc6120001, 0xc6130001, 0x0a000001};
	uint16_t next_hops[3] = {7, 7, 7};
	char text[64];

	CHECK(fv_lookup4(reader, addrs, next_hops, 3) == FV_NOT_COMPILED && next_hops[0] == 0);
	CHECK(fv_announce(table, "198.18.0.0/15", 1) == FV_OK);
	CHECK(fv_announce(table, "2001:2::/48", 2) == FV_OK);
	CHECK(fv_table_compile(table, FV_INET, "dpdk_lpm4") == FV_OK);
	CHECK(fv_table_compile(table, FV_INET6, "auto") == FV_OK);
	CHECK(fv_announce(table, "198.19.0.0/16", 3) == FV_OK);
	CHECK(fv_lookup4(reader, addrs, next_hops, 3) == FV_OK);
	CHECK(next_hops[0] == 1 && next_hops[1] == 3 && next_hops[2] == 0);
	CHECK(fv_withdraw(table, "198.19.0.0/16") == FV_OK && look_up(reader, addrs[1]) == 1);
	CHECK(fv_lookup6(reader, inet6_addrs, next_hops, 2) == FV_OK);
	CHECK(next_hops[0] == 2 && next_hops[1] == 0);
	CHECK(fv_table_routes(table, FV_INET) == 1 && fv_table_routes(table, FV_INET6) == 1);
	CHECK(fv_table_algorithm(table, FV_INET, text, sizeof(text)) == FV_OK);
	CHECK(strcmp(text, "dpdk_lpm4") == 0 && fv_table_bytes(table, FV_INET) > 1000000);
	CHECK(fv_table_algorithm(table, FV_INET, text, 5) == FV_OK && strcmp(text, "dpdk") == 0);
}

static void check_bulk(struct fv_table *table, struct fv_reader *reader)
{
	struct fv_route4 routes[COUNT];
	struct fv_route6 route6 = {.next_hop = 5, .len = 32};
	uint32_t addrs[COUNT];
	uint16_t next_hops[COUNT];

	for (uint32_t i = 0; i < COUNT; i++) {
		routes[i] = (struct fv_route4){.addr = i << 16, .next_hop = (uint16_t)(i + 1), .len = 24};
		addrs[i] = i << 16 | 255;
	}
	CHECK(fv_announce4(table, routes, COUNT) == FV_OK);
	CHECK(fv_lookup4(reader, addrs, next_hops, COUNT) == FV_OK);
	for (uint32_t i = 0; i < COUNT; i++)
		CHECK(next_hops[i] == i + 1);
	routes[COUNT - 1].len = 8;
	CHECK(fv_withdraw4(table, routes, COUNT) == FV_ARGUMENT && strstr(fv_last_error(), "item 999"));
	CHECK(fv_table_routes(table, FV_INET) == COUNT + 1);
	CHECK(fv_withdraw4(table, routes, COUNT - 1) == FV_OK && fv_table_routes(table, FV_INET) == 2);
	memcpy(route6.addr, inet6_addrs[1], 4);
	CHECK(fv_announce6(table, &route6, 1) == FV_OK);
	CHECK(fv_lookup6(reader, &inet6_addrs[1], next_hops, 1) == FV_OK && next_hops[0] == 5);
	CHECK(fv_withdraw6(table, &route6, 1) == FV_OK && fv_table_routes(table, FV_INET6) == 1);
	CHECK(fv_announce4(table, NULL, 0) == FV_OK);
}

static void check_next_hops(struct fv_table *table)
{
	uint16_t first = 0, again = 0;
	char text[64];

	CHECK(fv_next_hop(table, "192.0.2.1", &first) == FV_OK && first != 0);
	CHECK(fv_next_hop(table, "192.0.2.1", &again) == FV_OK && again == first);
	CHECK(fv_next_hop_text(table, first, text, sizeof(text)) == FV_OK && strcmp(text, "192.0.2.1") == 0);
	CHECK(fv_next_hop_text(table, 60000, text, sizeof(text)) == FV_OK && text[0] == '\0');
	CHECK(fv_next_hop(table, "nowhere", &first) == FV_ARGUMENT);
}

static void check_refusals(struct fv_table *table, struct fv_reader *reader)
{
	uint32_t addr = 0;
	uint16_t next_hop;

	CHECK(fv_announce(NULL, "10.0.0.0/8", 1) == FV_ARGUMENT && strstr(fv_last_error(), "table is a null"));
	CHECK(fv_announce(table, NULL, 1) == FV_ARGUMENT);
	CHECK(fv_announce(table, "10.0.0.1/8", 1) == FV_ARGUMENT && strstr(fv_last_error(), "10.0.0.0/8"));
	CHECK(fv_announce(table, "10.0.0.0/8", 65535) == FV_ARGUMENT);
	CHECK(fv_announce(table, "\xff/8", 1) == FV_ARGUMENT && strstr(fv_last_error(), "UTF-8"));
	CHECK(fv_announce4(table, NULL, 1) == FV_ARGUMENT);
	CHECK(fv_announce4(table, (const struct fv_route4 *)(uintptr_t)64, SIZE_MAX / 2) == FV_ARGUMENT);
	CHECK(fv_lookup4(reader, (const uint32_t *)((const char *)&addr + 1), &next_hop, 1) == FV_ARGUMENT);
	CHECK(fv_lookup4(reader, &addr, NULL, 1) == FV_ARGUMENT);
	CHECK(fv_lookup4(NULL, &addr, &next_hop, 1) == FV_ARGUMENT);
	CHECK(fv_lookup4(reader, NULL, NULL, 0) == FV_OK);
	CHECK(fv_table_compile(table, FV_INET, "nothing") == FV_ALGORITHM);
	CHECK(fv_table_compile(table, 5, "auto") == FV_ARGUMENT && fv_table_routes(table, 5) == 0);
	CHECK(fv_table_load(table, "/there/is/no/such/file") == FV_FEED);
	CHECK(fv_reader_new(NULL) == NULL && fv_table_routes(NULL, FV_INET) == 0);
	fv_table_free(NULL);
	fv_reader_free(NULL);
}

static atomic_bool done;

static void *keep_reading(void *reader)
{
	unsigned long lookups = 0;

	while (!done || lookups == 0) {
		uint16_t next_hop = look_up(reader, 0xc6130001);

		CHECK(next_hop == 1 || next_hop == 3);
		lookups++;
	}
	return NULL;
}

/* Threads share one reader while its table changes in place and is compiled again. */
static void check_threads(struct fv_table *table, struct fv_reader *reader)
{
	pthread_t threads[READERS];

	for (int i = 0; i < READERS; i++)
		CHECK(pthread_create(&threads[i], NULL, keep_reading, reader) == 0);
	for (int i = 0; i < 200; i++) {
		CHECK(fv_announce(table, "198.19.0.0/16", 3) == FV_OK);
		CHECK(fv_withdraw(table, "198.19.0.0/16") == FV_OK);
		if (i % 100 == 0)
			CHECK(fv_table_compile(table, FV_INET, i == 0 ? "radix_lockless" : "dpdk_lpm4") == FV_OK);
	}
	done = true;
	for (int i = 0; i < READERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void)
{
	struct fv_table *table = fv_table_new();
	struct fv_reader *reader = fv_reader_new(table);

	CHECK(strlen(fv_version()) >= 5 && fv_last_error()[0] == '\0');
	check_text_and_lookups(table, reader);
	check_bulk(table, reader);
	check_next_hops(table);
	check_refusals(table, reader);
	check_threads(table, reader);
	fv_table_free(table);
	CHECK(look_up(reader, 0xc6120001) == 1); /* a reader outlives its table */
	fv_reader_free(reader);
	puts("the C interface passed all checks");
	return 0;
}
