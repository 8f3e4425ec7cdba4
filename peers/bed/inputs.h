/* The input files: one route table, and the key streams with their expected answers.
 * The formats are described in peers/README.md. */
#ifndef PEERS_INPUTS_H
#define PEERS_INPUTS_H

#include <stddef.h>
#include <stdint.h>

/* Exit codes of the program, as listed in peers/README.md. */
enum exit_code {
	EXIT_USAGE = 1,
	EXIT_INPUT = 2,        /* a file is missing, truncated or malformed */
	EXIT_WRONG_ANSWER = 3, /* a contestant disagrees with the expected answers */
	EXIT_ENVIRONMENT = 4,  /* EAL, memory, CPU */
	EXIT_REFUSED = 5,      /* a contestant cannot hold the table */
};

enum family { INET, INET6, FAMILIES };

extern const char *const family_names[FAMILIES];

/* Address bytes in network order; IPv4 uses the first four. */
struct route {
	uint8_t address[16];
	uint8_t depth;
	uint16_t next_hop; /* never 0: 0 stands for "no route" in the answers */
};

struct route_list {
	struct route *routes;
	size_t count;
	size_t capacity;
};

/* One key stream. `keys` holds uint32_t in host order (INET) or 16 bytes in network order (INET6) per key. */
struct stream {
	char *name;
	enum family family;
	size_t count;
	void *keys;
	uint16_t *answers;
};

struct stream_list {
	struct stream *streams;
	size_t count;
};

/* Prints the name of the program and the message to stderr and ends the program with `code`. */
_Noreturn void fail(enum exit_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads FOLDER/table.txt into one list per family, in file order. Fails with EXIT_INPUT, naming file and line. */
void read_table(const char *folder, struct route_list tables[FAMILIES]);

void free_table(struct route_list tables[FAMILIES]);

/* Reads every FOLDER/NAME.{inet,inet6}.keys with its .answers, by name. Fails with EXIT_INPUT if there is none. */
struct stream_list read_streams(const char *folder);

void free_streams(struct stream_list *list);

/* The address of key `index` as text, for messages. `text` has room for INET6_ADDRSTRLEN bytes. */
void print_key(const struct stream *stream, size_t index, char *text);

#endif
