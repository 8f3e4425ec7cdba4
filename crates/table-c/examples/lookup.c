/* Loads a routing table and prints the next hops of addresses: lookup TABLE ADDRESS...
 *
 *     cargo build --release -p fullview-table-c
 *     cc -O2 -Icrates/table-c/include crates/table-c/examples/lookup.c -Ltarget/release -lfullview_table_c -o lookup
 *     LD_LIBRARY_PATH=target/release ./lookup view.txt.gz 192.0.2.1 2001:db8::1 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "fullview_table.h"

static void must(enum fv_status status)
{
	if (status == FV_OK)
		return;
	fprintf(stderr, "lookup: %s\n", fv_last_error());
	exit(1);
}

/* Looks up one address of either family. Looking up many addresses at a time is faster. */
static uint16_t look_up(const struct fv_reader *reader, const char *text)
{
	struct in_addr inet;
	struct in6_addr inet6;
	uint16_t next_hop = 0;

	if (inet_pton(AF_INET, text, &inet) == 1) {
		uint32_t addr = ntohl(inet.s_addr);

		must(fv_lookup4(reader, &addr, &next_hop, 1));
	} else if (inet_pton(AF_INET6, text, &inet6) == 1) {
		must(fv_lookup6(reader, (const uint8_t(*)[16])&inet6, &next_hop, 1));
	} else {
		fprintf(stderr, "lookup: %s is not an address\n", text);
		exit(2);
	}
	return next_hop;
}

int main(int argc, char **argv)
{
	struct fv_table *table = fv_table_new();
	struct fv_reader *reader;
	char target[64];

	if (argc < 2) {
		fputs("usage: lookup TABLE ADDRESS...\n", stderr);
		return 2;
	}
	must(fv_table_load(table, argv[1]));
	must(fv_table_compile(table, FV_INET, "auto"));
	must(fv_table_compile(table, FV_INET6, "auto"));
	reader = fv_reader_new(table);
	for (int i = 2; i < argc; i++) {
		uint16_t next_hop = look_up(reader, argv[i]);

		must(fv_next_hop_text(table, next_hop, target, sizeof(target)));
		printf("%s %s\n", argv[i], next_hop == 0 ? "has no route" : target);
	}
	fv_reader_free(reader);
	fv_table_free(table);
	return 0;
}
