/* Builds DPDK's four longest-prefix-match structures and calls their lookups in batches of a fixed size. */
#include "contestants.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>

/* ---- building ---- */

static uint32_t ipv4_of(const struct route *route)
{
	const uint8_t *byte = route->address;

	return (uint32_t)byte[0] << 24 | (uint32_t)byte[1] << 16 | (uint32_t)byte[2] << 8 | byte[3];
}

/* An upper bound of the 256-entry groups below the 24-bit root that the table can need: one per route and per
 * started byte beyond 24 bits. Real tables share most of them, but rte_fib6 reserves nearly this many. */
static uint32_t tbl8_bound(const struct route_list *table)
{
	uint32_t groups = 0;

	for (size_t i = 0; i < table->count; i++)
		if (table->routes[i].depth > 24)
			groups += (table->routes[i].depth - 24 + 7) / 8;
	return groups ? groups : 1;
}

static void *create_lpm(const struct route_list *table)
{
	const struct rte_lpm_config config = {
		.max_rules = (uint32_t)table->count,
		.number_tbl8s = tbl8_bound(table),
	};

	return rte_lpm_create("lpm", SOCKET_ID_ANY, &config);
}

static void *create_fib(const struct route_list *table)
{
	struct rte_fib_conf config = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = 0,
		.max_routes = (int)table->count,
		.dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_2B, .num_tbl8 = tbl8_bound(table)},
	};

	return rte_fib_create("fib", SOCKET_ID_ANY, &config);
}

static void *create_lpm6(const struct route_list *table)
{
	const struct rte_lpm6_config config = {
		.max_rules = (uint32_t)table->count,
		.number_tbl8s = tbl8_bound(table),
	};

	return rte_lpm6_create("lpm6", SOCKET_ID_ANY, &config);
}

/* Next hops take four bytes here: the two-byte trie has room for 32,767 groups only, too few for a full view. */
static void *create_fib6(const struct route_list *table)
{
	struct rte_fib6_conf config = {
		.type = RTE_FIB6_TRIE,
		.default_nh = 0,
		.max_routes = (int)table->count,
		.trie = {.nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = tbl8_bound(table)},
	};

	return rte_fib6_create("fib6", SOCKET_ID_ANY, &config);
}

static int add_lpm(void *lpm, const struct route *route)
{
	return rte_lpm_add(lpm, ipv4_of(route), route->depth, route->next_hop);
}

/* Writes a /24 directly into its root entry, as rte_lpm_add would, but without searching every earlier rule of the same
 * depth: for the half million /24s of a full view that search takes a minute and more, and it could only find a
 * duplicate. This is correct only before longer prefixes are added: until then no root entry leads to a group, and none
 * is deeper than 24. The rule list lacks these rules; lookups do not read it, and this program does not delete routes,
 * which would read it. */
static int store_lpm24(void *lpm, const struct route *route)
{
	const struct rte_lpm_tbl_entry entry = {.next_hop = route->next_hop, .valid = 1, .depth = 24};

	((struct rte_lpm *)lpm)->tbl24[ipv4_of(route) >> 8] = entry;
	return 0;
}

static int add_fib(void *fib, const struct route *route)
{
	return rte_fib_add(fib, ipv4_of(route), route->depth, route->next_hop);
}

static int add_lpm6(void *lpm6, const struct route *route)
{
	return rte_lpm6_add(lpm6, route->address, route->depth, route->next_hop);
}

static int add_fib6(void *fib6, const struct route *route)
{
	return rte_fib6_add(fib6, route->address, route->depth, route->next_hop);
}

typedef int (*add_route)(void *structure, const struct route *route);

static const struct {
	const char *name;
	enum family family;
	void *(*create)(const struct route_list *table);
	add_route add;
} kinds[STRUCTURES] = {
	[RTE_LPM] = {"rte_lpm", INET, create_lpm, add_lpm},
	[RTE_FIB] = {"rte_fib", INET, create_fib, add_fib},
	[RTE_LPM6] = {"rte_lpm6", INET6, create_lpm6, add_lpm6},
	[RTE_FIB6] = {"rte_fib6", INET6, create_fib6, add_fib6},
};

/* A structure that a contestant needs: what was built and how long that took, or why it could not be built. */
static struct {
	void *structure;
	double seconds;
	char refusal[160];
} built[STRUCTURES];

static bool create(enum structure structure, const struct route_list *table)
{
	const char *name = kinds[structure].name;

	built[structure].structure = kinds[structure].create(table);
	if (built[structure].structure != NULL)
		return true;
	if (rte_errno == ENOMEM)
		fail(EXIT_ENVIRONMENT, "no memory to create %s; give more with --memory, or leave it out with --only", name);
	snprintf(built[structure].refusal, sizeof(built[structure].refusal), "%s cannot be created for this table: %s",
		 name, rte_strerror(rte_errno));
	return false;
}

/* Adds the routes of depth `from` to `to` in table order. */
static bool add_depths(enum structure structure, add_route add, const struct route_list *table, int from, int to)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct route *route = &table->routes[i];
		int error = route->depth < from || route->depth > to ? 0 : add(built[structure].structure, route);

		if (error == 0)
			continue;
		snprintf(built[structure].refusal, sizeof(built[structure].refusal),
			 "%s refuses %s route %zu (depth %u, next hop %u): %s", kinds[structure].name,
			 family_names[kinds[structure].family], i + 1, route->depth, route->next_hop,
			 rte_strerror(-error));
		return false;
	}
	return true;
}

static bool add_all(enum structure structure, const struct route_list *table)
{
	if (structure != RTE_LPM)
		return add_depths(structure, kinds[structure].add, table, 0, 128);
	return add_depths(RTE_LPM, add_lpm, table, 0, 23) && add_depths(RTE_LPM, store_lpm24, table, 24, 24) &&
	       add_depths(RTE_LPM, add_lpm, table, 25, 32);
}

enum family family_of(const struct contestant *contestant)
{
	return kinds[contestant->structure].family;
}

static void build(enum structure structure, const struct route_list *table)
{
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	if (!create(structure, table) || !add_all(structure, table))
		return;
	clock_gettime(CLOCK_MONOTONIC, &to);
	built[structure].seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
	fprintf(stderr, "dpdk-lookup: %s: %zu routes in %.2f s\n", kinds[structure].name, table->count,
		built[structure].seconds);
}

const char *build_for(const struct contestant *contestant, const struct route_list tables[FAMILIES])
{
	enum structure structure = contestant->structure;
	const char *family = family_names[kinds[structure].family];
	const struct route_list *table = &tables[kinds[structure].family];

	if (table->count == 0)
		fail(EXIT_INPUT, "table.txt has no %s route, but there are %s keys", family, family);
	if (built[structure].structure == NULL && built[structure].refusal[0] == '\0')
		build(structure, table);
	return built[structure].refusal[0] == '\0' ? NULL : built[structure].refusal;
}

double build_seconds(const struct contestant *contestant)
{
	return contestant->structure == RTE_LPM ? 0 : built[contestant->structure].seconds;
}

/* ---- looking up ---- */

/* Makes the compiler believe that `results` is read, so that it keeps the lookups that fill it. */
static inline void keep(const union results *results)
{
	__asm__ volatile("" : : "r"(results) : "memory");
}

/* Out of line: a batch size unknown at compile time gives rte_lpm_lookup_bulk a variable-length array on the stack,
 * which must not share a function with the batches that are measured. */
static __attribute__((noinline)) int lpm_rest(void *lpm, const uint32_t *keys, size_t n, union results *out)
{
	return rte_lpm_lookup_bulk(lpm, keys, out->entry, (unsigned)n);
}

static inline __attribute__((always_inline)) int lpm_batches(void *lpm, const uint32_t *keys, size_t n,
							     const unsigned batch, union results *out)
{
	int error = 0;

	for (; n >= batch; keys += batch, n -= batch) {
		error |= rte_lpm_lookup_bulk(lpm, keys, out->entry, batch);
		keep(out);
	}
	return n > 0 ? error | lpm_rest(lpm, keys, n, out) : error;
}

/* rte_lpm's lookups are inline functions of its header: callers with a constant burst get it unrolled. */
static int lpm_bulk(void *lpm, const void *keys, size_t n, unsigned batch, union results *out)
{
	return batch == 32 ? lpm_batches(lpm, keys, n, 32, out) : lpm_batches(lpm, keys, n, MAX_BATCH, out);
}

/* Stores the sum of the answers, which for one key is its answer. */
static int lpm_scalar(void *lpm, const void *keys, size_t n, unsigned batch, union results *out)
{
	const uint32_t *key = keys;
	uint32_t sum = 0;

	(void)batch;
	for (size_t i = 0; i < n; i++) {
		uint32_t next_hop;

		sum += rte_lpm_lookup(lpm, key[i], &next_hop) == 0 ? next_hop : 0;
	}
	out->entry[0] = sum;
	return 0;
}

static int fib_bulk(void *fib, const void *keys, size_t n, unsigned batch, union results *out)
{
	uint32_t *key = (uint32_t *)(uintptr_t)keys; /* rte_fib only reads them, but its parameter is not const */
	int error = 0;

	for (size_t size; n > 0; key += size, n -= size) {
		size = RTE_MIN(n, batch);
		error |= rte_fib_lookup_bulk(fib, key, out->wide, (int)size);
	}
	return error;
}

static int lpm6_bulk(void *lpm6, const void *keys, size_t n, unsigned batch, union results *out)
{
	uint8_t(*key)[16] = (uint8_t(*)[16])(uintptr_t)keys; /* read only, as above */
	int error = 0;

	for (size_t size; n > 0; key += size, n -= size) {
		size = RTE_MIN(n, batch);
		error |= rte_lpm6_lookup_bulk_func(lpm6, key, out->hop, (unsigned)size);
	}
	return error;
}

static int fib6_bulk(void *fib6, const void *keys, size_t n, unsigned batch, union results *out)
{
	uint8_t(*key)[16] = (uint8_t(*)[16])(uintptr_t)keys; /* read only, as above */
	int error = 0;

	for (size_t size; n > 0; key += size, n -= size) {
		size = RTE_MIN(n, batch);
		error |= rte_fib6_lookup_bulk(fib6, key, out->wide, (int)size);
	}
	return error;
}

static uint32_t entry_answer(const union results *out, size_t i)
{
	return out->entry[i] & RTE_LPM_LOOKUP_SUCCESS ? out->entry[i] & 0x00FFFFFF : 0;
}

static uint32_t sum_answer(const union results *out, size_t i)
{
	return out->entry[i];
}

static uint32_t hop_answer(const union results *out, size_t i)
{
	return out->hop[i] < 0 ? 0 : (uint32_t)out->hop[i];
}

static uint32_t wide_answer(const union results *out, size_t i)
{
	return (uint32_t)out->wide[i];
}

const struct contestant contestants[CONTESTANTS] = {
	{"rte_lpm_lookup", RTE_LPM, 1, 0, lpm_scalar, sum_answer},
	{"rte_lpm_lookup_bulk", RTE_LPM, 32, 0, lpm_bulk, entry_answer},
	{"rte_lpm_lookup_bulk", RTE_LPM, 256, 0, lpm_bulk, entry_answer},
	{"rte_fib_dir24_8_2b_scalar", RTE_FIB, 32, RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO, fib_bulk, wide_answer},
	{"rte_fib_dir24_8_2b_scalar", RTE_FIB, 256, RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO, fib_bulk, wide_answer},
	{"rte_fib_dir24_8_2b_avx512", RTE_FIB, 32, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512, fib_bulk, wide_answer},
	{"rte_fib_dir24_8_2b_avx512", RTE_FIB, 256, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512, fib_bulk, wide_answer},
	{"rte_lpm6_lookup_bulk_func", RTE_LPM6, 32, 0, lpm6_bulk, hop_answer},
	{"rte_lpm6_lookup_bulk_func", RTE_LPM6, 256, 0, lpm6_bulk, hop_answer},
	{"rte_fib6_trie_4b_scalar", RTE_FIB6, 32, RTE_FIB6_LOOKUP_TRIE_SCALAR, fib6_bulk, wide_answer},
	{"rte_fib6_trie_4b_scalar", RTE_FIB6, 256, RTE_FIB6_LOOKUP_TRIE_SCALAR, fib6_bulk, wide_answer},
	{"rte_fib6_trie_4b_avx512", RTE_FIB6, 32, RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512, fib6_bulk, wide_answer},
	{"rte_fib6_trie_4b_avx512", RTE_FIB6, 256, RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512, fib6_bulk, wide_answer},
};

bool activate(const struct contestant *contestant)
{
	void *structure = built[contestant->structure].structure;

	switch (contestant->structure) {
	case RTE_FIB:
		return rte_fib_select_lookup(structure, (enum rte_fib_lookup_type)contestant->lookup_type) == 0;
	case RTE_FIB6:
		return rte_fib6_select_lookup(structure, (enum rte_fib6_lookup_type)contestant->lookup_type) == 0;
	default:
		return true;
	}
}

void look_up(const struct contestant *contestant, const void *keys, size_t n, union results *out)
{
	if (contestant->lookup(built[contestant->structure].structure, keys, n, contestant->batch, out) != 0)
		fail(EXIT_ENVIRONMENT, "%s reports an error", contestant->peer);
}
