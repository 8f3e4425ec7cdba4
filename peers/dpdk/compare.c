/* Measures DPDK's route lookups on one core, on the same table and keys that fullview measures itself with.
 * Every answer of every contestant is verified before anything is timed. peers/README.md describes the use. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "contestants.h"
#include "../bed/inputs.h"
#include "measure.h"

struct options {
	unsigned core;
	unsigned memory_mb;
	unsigned samples;
	double seconds;
	bool serve;
	char *only;
	const char *folder;
};

/* A contestant that was requested and cannot take part. */
struct refusal {
	const struct contestant *contestant;
	const char *why;
};

/* The longest slice. */
#define LONGEST_NS 60000000000ull

/* What is measured: the contestants that take part, with the wrong answers of each by stream, the streams they run on,
 * and the contestants that could not take part. */
struct match {
	const struct contestant *contestants[CONTESTANTS];
	size_t *bad[CONTESTANTS];
	size_t count;
	struct refusal refusals[CONTESTANTS];
	size_t refused;
	struct stream_list streams;
	const char *pages;
};

/* ---- options ---- */

static const char usage[] =
	"usage: dpdk-lookup [--core N] [--memory MB] [--only PEER:BATCH,...] [--samples N] [--seconds S] FOLDER\n"
	"       dpdk-lookup [--core N] [--memory MB] [--only PEER:BATCH,...] --serve FOLDER\n"
	"Formats, protocol and exit codes: peers/README.md\n";

static _Noreturn void fail_usage(void)
{
	fputs(usage, stderr);
	exit(EXIT_USAGE);
}

static double parse_positive(const char *text, double max)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value > 0 && value <= max))
		fail(EXIT_USAGE, "%s: want a number above 0 and up to %g", text, max);
	return value;
}

static unsigned parse_whole(const char *text, unsigned long max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || *text == '-' || value > max)
		fail(EXIT_USAGE, "%s: want a whole number up to %lu", text, max);
	return (unsigned)value;
}

static struct options parse_options(int argc, char **argv)
{
	static const struct option known[] = {
		{"core", required_argument, NULL, 'c'},    {"memory", required_argument, NULL, 'm'},
		{"only", required_argument, NULL, 'o'},    {"samples", required_argument, NULL, 'n'},
		{"seconds", required_argument, NULL, 's'}, {"serve", no_argument, NULL, 'i'},
		{NULL, 0, NULL, 0},
	};
	struct options options = {.core = 0, .memory_mb = 2048, .samples = 9, .seconds = 0.5};

	for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		switch (option) {
		case 'c': options.core = parse_whole(optarg, RTE_MAX_LCORE - 1); break;
		case 'm': options.memory_mb = parse_whole(optarg, 1 << 20); break;
		case 'o': options.only = optarg; break;
		case 'n': options.samples = parse_whole(optarg, 1 << 20); break;
		case 's': options.seconds = parse_positive(optarg, 3600); break;
		case 'i': options.serve = true; break;
		default: fail_usage();
		}
	}
	if (optind != argc - 1)
		fail_usage();
	options.folder = argv[optind];
	return options;
}

/* ---- environment ---- */

/* Free 2 MiB pages of the machine, in MiB; 0 where the kernel has none. */
static unsigned long free_huge_mb(void)
{
	FILE *file = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");
	unsigned long pages = 0;

	if (file == NULL)
		return 0;
	if (fscanf(file, "%lu", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * 2;
}

/* EAL maps any amount of memory, and when it runs out the kernel ends some process, not necessarily this one. */
static void refuse_too_much(unsigned memory_mb)
{
	unsigned long page_kb = (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
	unsigned long physical_mb = (unsigned long)sysconf(_SC_PHYS_PAGES) * page_kb / 1024;

	if (memory_mb > physical_mb)
		fail(EXIT_ENVIRONMENT, "--memory %u: this machine has %lu MB; ask for less", memory_mb, physical_mb);
}

/* Starts EAL on one core and returns the kind of pages its memory is on. --no-huge is not a silent substitute: the
 * page size changes these figures, so the program prints it here and in every result line. EAL has no in-memory mode
 * without huge pages; there --no-shconf keeps it from leaving files behind. */
static const char *start_eal(const struct options *options, char *program)
{
	bool huge = free_huge_mb() >= options->memory_mb;
	char core[16], memory[16];
	char *arguments[] = {
		program, "--no-pci", "--no-telemetry", "--force-max-simd-bitwidth=512", "--log-level=lib.eal:error",
		"-l", core, "-m", memory, huge ? "--in-memory" : "--no-shconf", "--no-huge",
	};

	refuse_too_much(options->memory_mb);
	snprintf(core, sizeof(core), "%u", options->core);
	snprintf(memory, sizeof(memory), "%u", options->memory_mb);
	if (rte_eal_init((int)RTE_DIM(arguments) - huge, arguments) < 0)
		fail(EXIT_ENVIRONMENT, "EAL does not start on core %u with %u MB: %s", options->core,
		     options->memory_mb, rte_strerror(rte_errno));
	fprintf(stderr, "dpdk-lookup: %u MB on %s\n", options->memory_mb,
		huge ? "2 MiB huge pages" : "4 KiB pages (--no-huge): too few free huge pages");
	return huge ? "2M" : "4K";
}

/* ---- the contestants that take part ---- */

static bool is_called(const struct contestant *contestant, const char *name)
{
	size_t length = strlen(contestant->peer);
	char *end;

	return strncmp(name, contestant->peer, length) == 0 && name[length] == ':' && name[length + 1] != '\0' &&
	       strtoul(name + length + 1, &end, 10) == contestant->batch && *end == '\0';
}

/* The number of a contestant, or `count` if there is none of that name. */
static size_t number_of(const struct match *match, const char *name)
{
	size_t i = 0;

	while (i < match->count && !is_called(match->contestants[i], name))
		i++;
	return i;
}

static const struct stream *find_stream(const struct match *match, const char *name, enum family family)
{
	for (size_t i = 0; i < match->streams.count; i++)
		if (match->streams.streams[i].family == family && strcmp(match->streams.streams[i].name, name) == 0)
			return &match->streams.streams[i];
	return NULL;
}

static bool has_stream(const struct stream_list *streams, enum family family)
{
	for (size_t i = 0; i < streams->count; i++)
		if (streams->streams[i].family == family)
			return true;
	return false;
}

/* Keeps only the contestants named in `list`, which strtok_r takes apart. */
static void restrict_to(struct match *match, char *list)
{
	struct match all = *match;
	char *rest;

	match->count = 0;
	for (char *name = strtok_r(list, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
		size_t number = number_of(&all, name);

		if (number == all.count)
			fail(EXIT_USAGE, "--only %s: no such contestant for these keys; the README lists them", name);
		if (number_of(match, name) == match->count)
			match->contestants[match->count++] = all.contestants[number];
	}
}

static void choose_contestants(struct match *match, char *only)
{
	for (size_t i = 0; i < CONTESTANTS; i++)
		if (has_stream(&match->streams, family_of(&contestants[i])))
			match->contestants[match->count++] = &contestants[i];
	if (only != NULL)
		restrict_to(match, only);
	if (match->count == 0)
		fail(EXIT_USAGE, "--only names no contestant");
}

/* Why a contestant cannot take part, once its structure was to be built; NULL if it can. */
static const char *obstacle(const struct contestant *contestant, const struct route_list tables[FAMILIES])
{
	const char *refusal = build_for(contestant, tables);

	if (refusal != NULL)
		return refusal;
	return activate(contestant) ? NULL : "this CPU cannot run it";
}

/* Builds every structure that is needed, and leaves out, with a message, the contestants that cannot take part. */
static void build_all(struct match *match, const struct route_list tables[FAMILIES])
{
	size_t asked = match->count;

	match->count = 0;
	for (size_t i = 0; i < asked; i++) {
		const struct contestant *contestant = match->contestants[i];
		const char *why = obstacle(contestant, tables);

		if (why == NULL) {
			match->contestants[match->count++] = contestant;
			continue;
		}
		match->refusals[match->refused++] = (struct refusal){contestant, why};
		fprintf(stderr, "dpdk-lookup: %s:%u left out: %s\n", contestant->peer, contestant->batch, why);
	}
}

/* Without --serve no ready line reports what is missing, so a library that cannot hold the table ends the program. What
 * this CPU cannot run is only left out. */
static void insist(const struct match *match, const struct route_list tables[FAMILIES])
{
	for (size_t i = 0; i < match->refused; i++) {
		const char *refusal = build_for(match->refusals[i].contestant, tables);

		if (refusal != NULL)
			fail(EXIT_REFUSED, "%s; leave it out with --only", refusal);
	}
}

/* build_all activated every contestant once. If that fails now, going on would time or verify another contestant. */
static void activate_or_fail(const struct contestant *contestant)
{
	if (!activate(contestant))
		fail(EXIT_ENVIRONMENT, "%s can no longer be selected", contestant->peer);
}

static size_t verify(const struct contestant *contestant, const struct stream *stream)
{
	if (stream->family != family_of(contestant))
		return 0;
	activate_or_fail(contestant);
	return count_bad(contestant, stream);
}

/* Counts the wrong answers of every contestant on every stream; returns their sum. */
static size_t verify_all(struct match *match)
{
	size_t bad = 0;

	for (size_t c = 0; c < match->count; c++) {
		match->bad[c] = calloc(match->streams.count, sizeof(*match->bad[c]));
		if (match->bad[c] == NULL)
			fail(EXIT_ENVIRONMENT, "out of memory: free some");
		for (size_t s = 0; s < match->streams.count; s++)
			bad += match->bad[c][s] = verify(match->contestants[c], &match->streams.streams[s]);
	}
	return bad;
}

/* ---- samples ---- */

/* Takes one sample: a tenth of its length untimed, because the contestant before filled the caches, then the timed part.
 * `bad` is always 0 here: a contestant with a wrong answer is not timed. */
static void sample(const struct match *match, const struct contestant *contestant, const struct stream *stream,
		   double seconds)
{
	uint64_t length_ns = (uint64_t)(seconds * 1e9);
	struct measurement result;
	size_t at = 0;

	activate_or_fail(contestant);
	measure(contestant, stream, &at, length_ns / 10);
	result = measure(contestant, stream, &at, length_ns);
	printf("{\"peer\":\"%s\",\"family\":\"%s\",\"stream\":\"%s\",\"batch\":%u,\"mlps\":%.2f,\"bad\":0,"
	       "\"on_cpu\":%.3f,\"pages\":\"%s\"}\n",
	       contestant->peer, family_names[stream->family], stream->name, contestant->batch,
	       (double)result.keys / (double)result.time_ns * 1e3,
	       1.0 - (double)result.lost_core_ns / (double)result.time_ns, match->pages);
	fflush(stdout);
}

/* Runs every contestant once on a stream, then on the next stream, then again, so that slow drift of the machine affects
 * all of them alike. */
static void run_samples(const struct match *match, unsigned samples, double seconds)
{
	for (unsigned round = 0; round < samples; round++)
		for (size_t s = 0; s < match->streams.count; s++)
			for (size_t c = 0; c < match->count; c++)
				if (family_of(match->contestants[c]) == match->streams.streams[s].family)
					sample(match, match->contestants[c], &match->streams.streams[s], seconds);
}

/* ---- serving commands ---- */

/* For the structures whose build time is known. */
static void print_facts(const struct match *match)
{
	bool first = true;

	for (size_t i = 0; i < match->count; i++) {
		double seconds = build_seconds(match->contestants[i]);

		if (seconds > 0)
			printf("%s{\"contestant\":\"%s:%u\",\"build_s\":%.3f}", first ? "" : ",",
			       match->contestants[i]->peer, match->contestants[i]->batch, seconds);
		first = first && !(seconds > 0);
	}
}

static void print_bad(const struct match *match)
{
	const char *separator = "";

	for (size_t c = 0; c < match->count; c++)
		for (size_t s = 0; s < match->streams.count; s++) {
			const struct stream *stream = &match->streams.streams[s];

			if (match->bad[c][s] == 0)
				continue;
			printf("%s{\"contestant\":\"%s:%u\",\"family\":\"%s\",\"stream\":\"%s\",\"bad\":%zu,"
			       "\"of\":%zu}",
			       separator, match->contestants[c]->peer, match->contestants[c]->batch,
			       family_names[stream->family], stream->name, match->bad[c][s], stream->count);
			separator = ",";
		}
}

static void print_refusals(const struct match *match)
{
	for (size_t i = 0; i < match->refused; i++)
		printf("%s{\"contestant\":\"%s:%u\",\"why\":\"%s\"}", i ? "," : "",
		       match->refusals[i].contestant->peer, match->refusals[i].contestant->batch,
		       match->refusals[i].why);
}

static void print_ready(const struct match *match)
{
	printf("{\"ready\":true,\"pages\":\"%s\",\"contestants\":[", match->pages);
	for (size_t i = 0; i < match->count; i++)
		printf("%s\"%s:%u\"", i ? "," : "", match->contestants[i]->peer, match->contestants[i]->batch);
	printf("],\"facts\":[");
	print_facts(match);
	printf("],\"bad\":[");
	print_bad(match);
	printf("],\"refused\":[");
	print_refusals(match);
	printf("],\"streams\":[");
	for (size_t i = 0; i < match->streams.count; i++)
		printf("%s{\"stream\":\"%s\",\"family\":\"%s\"}", i ? "," : "", match->streams.streams[i].name,
		       family_names[match->streams.streams[i].family]);
	printf("]}\n");
	fflush(stdout);
}

/* A lead-in that does not count, and a slice that does, each from the key where the stream was left. */
static void slice(const struct contestant *contestant, const struct stream *stream, uint64_t lead_in_ns,
		  uint64_t length_ns)
{
	static size_t at;
	static const struct stream *walked;
	struct measurement result;

	if (walked != stream)
		at = 0;
	walked = stream;
	activate_or_fail(contestant);
	if (lead_in_ns > 0)
		measure(contestant, stream, &at, lead_in_ns);
	result = measure(contestant, stream, &at, length_ns);
	printf("{\"counted\":%zu,\"offered\":%zu,\"time_ns\":%llu,\"lost_core_ns\":%llu}\n", result.keys, result.keys,
	       (unsigned long long)result.time_ns, (unsigned long long)result.lost_core_ns);
}

/* Executes one command; returns NULL, or what is wrong with it. */
static const char *obey(const struct match *match, char *line)
{
	char peer[64], stream_name[256], rest;
	unsigned long long lead_in_ns, length_ns;
	size_t number;
	const struct stream *stream;

	if (sscanf(line, "slice %63s %255s %llu %llu %c", peer, stream_name, &lead_in_ns, &length_ns, &rest) != 4)
		return "want: slice PEER:BATCH STREAM LEAD-IN LENGTH (in nanoseconds), or quit";
	if (lead_in_ns > LONGEST_NS || length_ns == 0 || length_ns > LONGEST_NS)
		return "a slice has 1 to 60000000000 nanoseconds, and its lead-in 0 to 60000000000";
	number = number_of(match, peer);
	if (number == match->count)
		return "no such contestant; the ready line lists them";
	stream = find_stream(match, stream_name, family_of(match->contestants[number]));
	if (stream == NULL)
		return "no such stream of this contestant's family; the ready line lists them";
	if (match->bad[number][stream - match->streams.streams] > 0)
		return "this contestant answers wrongly and is not timed";
	slice(match->contestants[number], stream, lead_in_ns, length_ns);
	return NULL;
}

/* Answers one line per command until "quit" or the end of input, so that another program can alternate with this one. */
static void serve(const struct match *match)
{
	char *line = NULL;
	size_t room = 0;

	print_ready(match);
	for (size_t number = 1; getline(&line, &room, stdin) >= 0 && strcmp(line, "quit\n") != 0; number++) {
		const char *wrong = obey(match, line);

		if (wrong != NULL)
			printf("{\"error\":\"command %zu: %s\"}\n", number, wrong);
		fflush(stdout);
	}
	free(line);
}

int main(int argc, char **argv)
{
	struct options options = parse_options(argc, argv);
	struct route_list tables[FAMILIES] = {0};
	struct match match = {0};
	size_t bad;

	read_table(options.folder, tables);
	match.streams = read_streams(options.folder);
	choose_contestants(&match, options.only);
	match.pages = start_eal(&options, argv[0]);
	build_all(&match, tables);
	if (!options.serve)
		insist(&match, tables);
	free_table(tables);
	bad = verify_all(&match);
	if (bad > 0 && !options.serve)
		fail(EXIT_WRONG_ANSWER, "%zu wrong answers; nothing was timed", bad);
	if (options.serve)
		serve(&match);
	else
		run_samples(&match, options.samples, options.seconds);
	for (size_t i = 0; i < match.count; i++)
		free(match.bad[i]);
	free_streams(&match.streams);
	if (rte_eal_cleanup() != 0)
		fail(EXIT_ENVIRONMENT, "EAL does not shut down");
	return ferror(stdout) ? EXIT_ENVIRONMENT : EXIT_SUCCESS;
}
