/* Reads the route table and the key streams, and refuses anything that is not exactly in the documented form:
 * figures measured on half a file would look valid. */
#define _GNU_SOURCE
#include "inputs.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define HUGE_PAGE ((size_t)2 << 20)

const char *const family_names[FAMILIES] = {"inet", "inet6"};

static const size_t key_bytes[FAMILIES] = {4, 16};
static const char *const key_suffixes[FAMILIES] = {".inet.keys", ".inet6.keys"};

_Noreturn void fail(enum exit_code code, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(code);
}

static void *checked(void *memory)
{
	if (memory == NULL)
		fail(EXIT_ENVIRONMENT, "out of memory: free some, or give fewer keys");
	return memory;
}

static char *join(const char *folder, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		checked(NULL);
	return path;
}

static FILE *open_input(const char *path)
{
	FILE *file = fopen(path, "rb");

	if (file == NULL)
		fail(EXIT_INPUT, "%s: %s; peers/README.md lists the files a folder needs", path, strerror(errno));
	return file;
}

/* ---- the table ---- */

static bool parse_number(const char *text, unsigned long max, unsigned long *value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoul(text, &end, 10);
	return errno == 0 && *end == '\0' && *value <= max;
}

static bool has_host_bits(const struct route *route, size_t bytes)
{
	for (size_t bit = route->depth; bit < bytes * 8; bit++)
		if (route->address[bit / 8] & (0x80 >> (bit % 8)))
			return true;
	return false;
}

/* Parses "ADDRESS/DEPTH". Returns NULL, or what is wrong with it. */
static const char *parse_prefix(char *text, struct route *route, enum family *family)
{
	char *slash = strchr(text, '/');
	unsigned long depth;

	if (slash == NULL)
		return "prefix without a length";
	*slash = '\0';
	*family = strchr(text, ':') ? INET6 : INET;
	if (inet_pton(*family == INET6 ? AF_INET6 : AF_INET, text, route->address) != 1)
		return "not an address";
	if (!parse_number(slash + 1, key_bytes[*family] * 8, &depth))
		return "prefix length out of range";
	route->depth = (uint8_t)depth;
	return has_host_bits(route, key_bytes[*family]) ? "address has bits beyond its prefix length" : NULL;
}

/* Parses "PREFIX NEXT-HOP". Returns NULL, or what is wrong with it. */
static const char *parse_route(char *line, struct route *route, enum family *family)
{
	char *rest;
	char *prefix = strtok_r(line, " \t\n", &rest);
	char *next_hop = strtok_r(NULL, " \t\n", &rest);
	unsigned long number;

	if (prefix == NULL || next_hop == NULL || strtok_r(NULL, " \t\n", &rest) != NULL)
		return "want two fields, a prefix and a next-hop number";
	if (!parse_number(next_hop, UINT16_MAX, &number) || number == 0)
		return "next-hop number must be 1 to 65535";
	route->next_hop = (uint16_t)number;
	return parse_prefix(prefix, route, family);
}

static void append(struct route_list *list, const struct route *route)
{
	if (list->count == list->capacity) {
		list->capacity = list->capacity ? list->capacity * 2 : 1024;
		list->routes = checked(reallocarray(list->routes, list->capacity, sizeof(*list->routes)));
	}
	list->routes[list->count++] = *route;
}

void read_table(const char *folder, struct route_list tables[FAMILIES])
{
	char *path = join(folder, "table.txt");
	FILE *file = open_input(path);
	char *line = NULL;
	size_t room = 0;

	for (size_t number = 1; getline(&line, &room, file) >= 0; number++) {
		struct route route = {0};
		enum family family;
		const char *wrong = parse_route(line, &route, &family);

		if (wrong != NULL)
			fail(EXIT_INPUT, "%s:%zu: %s; write \"192.0.2.0/24 7\"", path, number, wrong);
		append(&tables[family], &route);
	}
	if (ferror(file))
		fail(EXIT_INPUT, "%s: read error: %s", path, strerror(errno));
	free(line);
	fclose(file);
	free(path);
}

void free_table(struct route_list tables[FAMILIES])
{
	for (enum family family = INET; family < FAMILIES; family++)
		free(tables[family].routes);
}

/* ---- the streams ---- */

static size_t count_records(FILE *file, const char *path, size_t record_bytes)
{
	struct stat status;

	if (fstat(fileno(file), &status) != 0)
		fail(EXIT_INPUT, "%s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode) || status.st_size == 0)
		fail(EXIT_INPUT, "%s: empty, or not a regular file", path);
	if ((size_t)status.st_size % record_bytes != 0)
		fail(EXIT_INPUT, "%s: truncated: %lld bytes is not a multiple of %zu; write it again", path,
		     (long long)status.st_size, record_bytes);
	return (size_t)status.st_size / record_bytes;
}

/* Reads a file of fixed-size records. Each pass reads all keys once, so they are on huge pages where the kernel grants
 * them: page walks for the keys must not count as time of the lookup. */
static void *read_records(const char *path, size_t record_bytes, size_t *count)
{
	FILE *file = open_input(path);
	size_t bytes;
	void *records;

	*count = count_records(file, path, record_bytes);
	bytes = *count * record_bytes;
	bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	records = checked(aligned_alloc(HUGE_PAGE, bytes));
	(void)madvise(records, bytes, MADV_HUGEPAGE); /* a hint: kernels without huge pages refuse it */
	if (fread(records, record_bytes, *count, file) != *count)
		fail(EXIT_INPUT, "%s: ended early while reading; is it still being written?", path);
	fclose(file);
	return records;
}

/* The family that a file name ends in, or FAMILIES if it is not a key file. */
static enum family family_of_file(const char *name)
{
	size_t length = strlen(name);

	for (enum family family = INET; family < FAMILIES; family++) {
		size_t suffix = strlen(key_suffixes[family]);

		if (length > suffix && strcmp(name + length - suffix, key_suffixes[family]) == 0)
			return family;
	}
	return FAMILIES;
}

static int is_key_file(const struct dirent *entry)
{
	return family_of_file(entry->d_name) != FAMILIES;
}

/* Stream names go into JSON lines and space-separated commands unquoted. */
static char *stream_name(const char *folder, const char *file, enum family family)
{
	char *name = checked(strndup(file, strlen(file) - strlen(key_suffixes[family])));

	for (const char *c = name; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-')
			fail(EXIT_INPUT, "%s/%s: stream names have only letters, digits, _ and -", folder, file);
	return name;
}

static struct stream read_stream(const char *folder, const char *file)
{
	enum family family = family_of_file(file);
	struct stream stream = {.family = family, .name = stream_name(folder, file, family)};
	char *keys = join(folder, file);
	char *answers;
	size_t answer_count;

	if (asprintf(&answers, "%s/%s.%s.answers", folder, stream.name, family_names[family]) < 0)
		checked(NULL);
	stream.keys = read_records(keys, key_bytes[family], &stream.count);
	stream.answers = read_records(answers, sizeof(uint16_t), &answer_count);
	if (answer_count != stream.count)
		fail(EXIT_INPUT, "%s: %zu answers for the %zu keys of %s; write both again", answers, answer_count,
		     stream.count, keys);
	free(keys);
	free(answers);
	return stream;
}

struct stream_list read_streams(const char *folder)
{
	struct dirent **entries;
	struct stream_list list = {0};
	int count = scandir(folder, &entries, is_key_file, alphasort);

	if (count < 0)
		fail(EXIT_INPUT, "%s: %s", folder, strerror(errno));
	if (count == 0)
		fail(EXIT_INPUT, "%s: no key file; want NAME.inet.keys or NAME.inet6.keys", folder);
	list.streams = checked(calloc((size_t)count, sizeof(*list.streams)));
	for (; list.count < (size_t)count; list.count++) {
		list.streams[list.count] = read_stream(folder, entries[list.count]->d_name);
		free(entries[list.count]);
	}
	free(entries);
	return list;
}

void free_streams(struct stream_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->streams[i].name);
		free(list->streams[i].keys);
		free(list->streams[i].answers);
	}
	free(list->streams);
}

void print_key(const struct stream *stream, size_t index, char *text)
{
	const uint8_t *key = (const uint8_t *)stream->keys + index * key_bytes[stream->family];
	uint8_t network_order[4];

	if (stream->family == INET) {
		for (size_t i = 0; i < sizeof(network_order); i++)
			network_order[i] = key[3 - i];
		key = network_order;
	}
	inet_ntop(stream->family == INET6 ? AF_INET6 : AF_INET, key, text, INET6_ADDRSTRLEN);
}
