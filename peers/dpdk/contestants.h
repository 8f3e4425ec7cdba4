/* The DPDK lookups that take part: how the program builds each structure from the table and calls each lookup. */
#ifndef PEERS_CONTESTANTS_H
#define PEERS_CONTESTANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../bed/inputs.h"

#define MAX_BATCH 256

/* The results of one batch. They stay in the L1 cache, as a forwarding loop's burst does. */
union results {
	uint64_t wide[MAX_BATCH];  /* rte_fib, rte_fib6 */
	uint32_t entry[MAX_BATCH]; /* rte_lpm: a table entry with its valid bit */
	int32_t hop[MAX_BATCH];    /* rte_lpm6: -1 is no route */
};

enum structure { RTE_LPM, RTE_FIB, RTE_LPM6, RTE_FIB6, STRUCTURES };

/* `lookup` resolves n keys, `batch` at a time, each batch overwriting `out`; it returns 0 or a negative errno.
 * After a call with n <= batch, `answer` gives the next hop of key i of that call, 0 for no route. */
struct contestant {
	const char *peer;
	enum structure structure;
	unsigned batch;
	int lookup_type; /* enum rte_fib_lookup_type or rte_fib6_lookup_type; unused by rte_lpm and rte_lpm6 */
	int (*lookup)(void *structure, const void *keys, size_t n, unsigned batch, union results *out);
	uint32_t (*answer)(const union results *out, size_t i);
};

#define CONTESTANTS 13

extern const struct contestant contestants[CONTESTANTS];

enum family family_of(const struct contestant *contestant);

/* Builds the structure this contestant looks up in, unless another contestant already did. Returns NULL, or why the
 * structure cannot hold the table; fails with EXIT_ENVIRONMENT when memory is short. */
const char *build_for(const struct contestant *contestant, const struct route_list tables[FAMILIES]);

/* How many seconds the build took; 0 for a structure that was built in an unusual way, whose time means nothing. */
double build_seconds(const struct contestant *contestant);

/* Makes this contestant's lookup function the active one of its structure, which contestants share.
 * False if this CPU cannot run it. Its structure must have been built. */
bool activate(const struct contestant *contestant);

/* Runs the lookup on an active contestant; fails with EXIT_ENVIRONMENT if DPDK reports an error. */
void look_up(const struct contestant *contestant, const void *keys, size_t n, union results *out);

#endif
