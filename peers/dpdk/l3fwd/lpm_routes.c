/* Adds routes to l3fwd's LPM table. rte_lpm_add searches all earlier rules of the same length for the one that it adds,
 * which takes one to two minutes for the half million /24s of a full view; rules.sh has seen that none is there twice. */
#include <rte_lpm.h>

#include "../../bed/inputs.h"

/* l3fwd calls this in place of rte_lpm_add (build.sh). A /24 is written directly into its root entry, as rte_lpm_add would
 * do. This is correct only before longer prefixes are added, which is the order of rules.sh: until then no root entry leads
 * to a group. The rule list lacks these rules; lookups do not read it, and l3fwd deletes no routes, which would. */
int add_lpm_route(struct rte_lpm *lpm, uint32_t address, uint8_t depth, uint32_t next_hop)
{
	const struct rte_lpm_tbl_entry entry = {.next_hop = next_hop, .valid = 1, .depth = 24};

	if (depth != 24)
		return rte_lpm_add(lpm, address, depth, next_hop);
	if (lpm->tbl24[address >> 8].valid_group)
		fail(EXIT_INPUT, "a /24 comes after a longer prefix");
	lpm->tbl24[address >> 8] = entry;
	return 0;
}
