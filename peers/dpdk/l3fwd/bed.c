#define _GNU_SOURCE
#include "bed.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_mempool.h>

#include "frames.h"

/* The same values as in fullview's own test bed: bursts between two readings of the clock; how long the loop with the
 * router and the loop without it each run before the other takes over; and one packet in how many a run checks. */
#define BURSTS_A_LOOK 16
#define PART_SECONDS 0.008
#define CHECK_ONE_IN 64

/* When everything has been sent, l3fwd returns its last packets within 100 us; after this long a packet counts as lost. */
#define DRAIN_SECONDS 1.0

#define MOST_IN_BURST 256

/* How often, almost in a row, there may be no buffer for a packet. */
#define MOST_UNBUFFERED 1000000

/* A variable of l3fwd: its loop ends when a signal or this program sets it. */
extern volatile bool force_quit;

enum phase { VERIFYING, DRAINING, WAITING, TIMING };

/* Packets and the time they took. */
struct lap {
	double seconds;
	uint64_t sent;
	uint64_t received;
};

static struct {
	struct stream_list streams;
	size_t *bad; /* by stream: packets that came out wrong, or not at all */
	char contestants[FAMILIES][64];
	const char *pages;
	FILE *replies;
	enum phase phase;
	size_t stream; /* the one being sent */
	struct generator generator;
	uint64_t left; /* packets to send before the next step is considered */
	uint64_t sent, received, wrong, unbuffered;
	bool has_direct; /* whether there is a loop without the router to compare with */
	bool passes_by; /* whether the loop without l3fwd is running */
	double until;   /* DRAINING: the latest end */
	/* TIMING */
	double seconds, started, cpu_started;
	struct lap begun, routed, direct;
} bed;

static double seconds_on(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double now(void)
{
	return seconds_on(CLOCK_MONOTONIC_RAW);
}

static struct lap so_far(void)
{
	return (struct lap){.seconds = now(), .sent = bed.sent, .received = bed.received};
}

static void add_since(struct lap *lap, const struct lap *begun)
{
	struct lap ended = so_far();

	lap->seconds += ended.seconds - begun->seconds;
	lap->sent += ended.sent - begun->sent;
	lap->received += ended.received - begun->received;
}

/* ---- packets ---- */

static void use_stream(size_t number)
{
	const char *types = getenv("BED_TYPES");

	bed.stream = number;
	bed.generator = generator_of(&bed.streams.streams[number], types == NULL || strcmp(types, "none") != 0);
	bed.generator.lowers_hop_limit = getenv("BED_LOWERS_HOP_LIMIT") != NULL;
	bed.sent = bed.received = bed.wrong = 0;
}

static const char *contestant(void)
{
	return bed.contestants[bed.generator.stream->family];
}

static uint16_t take(struct rte_mempool *pool, struct rte_mbuf **packets, unsigned count)
{
	if (rte_pktmbuf_alloc_bulk(pool, packets, count) != 0) {
		if (++bed.unbuffered > MOST_UNBUFFERED)
			fail(EXIT_ENVIRONMENT, "%s keeps all packet buffers", contestant());
		return 0;
	}
	generate(&bed.generator, packets, count);
	bed.sent += count;
	return (uint16_t)count;
}

static void check(const struct rte_mbuf *packet, uint16_t port)
{
	const char *what = fault(&bed.generator, packet, port, !bed.passes_by);

	if (what != NULL && bed.wrong++ == 0)
		fprintf(stderr, "l3fwd: %s: packet %zu of stream %s %s\n", contestant(),
			number_of_packet(&bed.generator, packet), bed.generator.stream->name, what);
}

void bed_send(uint16_t port, struct rte_mbuf **packets, uint16_t count)
{
	uint64_t before = bed.received;

	bed.received += count;
	if (bed.phase != TIMING)
		for (uint16_t i = 0; i < count; i++)
			check(packets[i], port);
	else if (before / CHECK_ONE_IN != bed.received / CHECK_ONE_IN)
		check(packets[0], port);
	/* The driver promises to free what l3fwd sends in this way: RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE. */
	rte_mempool_put_bulk(packets[0]->pool, (void **)packets, count);
}

/* ---- before the first command ---- */

void bed_open(void)
{
	const char *folder = getenv("BED_FOLDER"), *peer = getenv("BED_PEER"), *batch = getenv("BED_BATCH");

	bed.pages = getenv("BED_PAGES");
	bed.replies = fdopen(3, "w");
	if (folder == NULL || peer == NULL || batch == NULL || bed.pages == NULL || bed.replies == NULL)
		fail(EXIT_USAGE, "peers/dpdk/l3fwd.sh starts this program, with the environment it needs");
	for (enum family family = INET; family < FAMILIES; family++)
		snprintf(bed.contestants[family], sizeof(bed.contestants[family]), "%s_%s:%s", peer,
			 family_names[family], batch);
	/* The program waits for commands with poll, which does not see what a buffer of the C library holds. */
	setvbuf(stdin, NULL, _IONBF, 0);
	bed.has_direct = getenv("BED_WITHOUT_DIRECT") == NULL;
	bed.streams = read_streams(folder);
	bed.bad = calloc(bed.streams.count, sizeof(*bed.bad));
	if (bed.bad == NULL)
		fail(EXIT_ENVIRONMENT, "out of memory: free some");
	use_stream(0);
	bed.left = bed.streams.streams[0].count;
}

static void print_streams(void)
{
	for (size_t i = 0; i < bed.streams.count; i++)
		fprintf(bed.replies, "%s{\"stream\":\"%s\",\"family\":\"%s\"}", i ? "," : "", bed.streams.streams[i].name,
			family_names[bed.streams.streams[i].family]);
}

static void print_bad(void)
{
	const char *separator = "";

	for (size_t i = 0; i < bed.streams.count; i++) {
		const struct stream *stream = &bed.streams.streams[i];

		if (bed.bad[i] == 0)
			continue;
		fprintf(bed.replies,
			"%s{\"contestant\":\"%s\",\"family\":\"%s\",\"stream\":\"%s\",\"bad\":%zu,\"of\":%zu}", separator,
			bed.contestants[stream->family], family_names[stream->family], stream->name, bed.bad[i],
			stream->count);
		separator = ",";
	}
}

static void print_ready(void)
{
	fprintf(bed.replies,
		"{\"ready\":true,\"pages\":\"%s\",\"contestants\":[\"%s\",\"%s\"],\"facts\":[],\"bad\":[", bed.pages,
		bed.contestants[INET], bed.contestants[INET6]);
	print_bad();
	fprintf(bed.replies, "],\"refused\":[],\"streams\":[");
	print_streams();
	fprintf(bed.replies, "]}\n");
	fflush(bed.replies);
}

static void drain_after(double seconds)
{
	bed.phase = DRAINING;
	bed.until = now() + seconds;
}

/* Every packet of a stream has come out once, or is lost. */
static void judge_stream(void)
{
	bed.bad[bed.stream] = bed.wrong + (bed.sent - bed.received);
	if (bed.stream + 1 < bed.streams.count) {
		use_stream(bed.stream + 1);
		bed.left = bed.generator.stream->count;
		bed.phase = VERIFYING;
		return;
	}
	print_ready();
	bed.phase = WAITING;
}

/* ---- commands ---- */

/* The stream of that name in the family of that contestant; the number of streams if there is none. */
static size_t find_stream(const char *name, const char *contestant)
{
	size_t i = 0;

	while (i < bed.streams.count && (strcmp(bed.streams.streams[i].name, name) != 0 ||
					 strcmp(bed.contestants[bed.streams.streams[i].family], contestant) != 0))
		i++;
	return i;
}

static void start_run(size_t stream, double seconds)
{
	use_stream(stream);
	bed.unbuffered = 0;
	bed.seconds = seconds;
	bed.routed = bed.direct = (struct lap){0};
	bed.phase = TIMING;
	bed.started = now();
	bed.cpu_started = seconds_on(CLOCK_THREAD_CPUTIME_ID);
	bed.begun = so_far();
}

/* Starts the run that a command requests; returns NULL, or what is wrong with the command. */
static const char *obey(const char *line)
{
	char contestant[64], name[256], rest;
	double seconds;
	size_t stream;

	if (sscanf(line, "run %63s %255s %lf %c", contestant, name, &seconds, &rest) != 3)
		return "want: run PEER:BATCH STREAM SECONDS, or quit";
	if (!(seconds > 0 && seconds <= 3600))
		return "seconds must be above 0 and up to 3600";
	stream = find_stream(name, contestant);
	if (stream == bed.streams.count)
		return "no such contestant, or no such stream of its family; the ready line lists them";
	if (bed.bad[stream] > 0)
		return "this contestant forwards wrongly and is not timed";
	start_run(stream, seconds);
	return NULL;
}

/* Reads the next line; NULL at the end of input, or when l3fwd is to end: its signal handler only sets a flag, so the wait
 * has to look at it. */
static const char *next_line(void)
{
	static char *line;
	static size_t room;
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	while (poll(&input, 1, 100) <= 0)
		if (force_quit)
			return NULL;
	return getline(&line, &room, stdin) < 0 ? NULL : line;
}

/* A router in a process of its own never sleeps. Between runs it is stopped, because it would take the core from the
 * router that is measured. */
static void signal_router(int number)
{
	const char *router = getenv("BED_ROUTER");

	if (router != NULL)
		kill((pid_t)strtol(router, NULL, 10), number);
}

/* Waits for a command that starts a run; ends l3fwd at the end of the commands. */
static void await_command(void)
{
	static size_t number;

	signal_router(SIGSTOP);
	while (bed.phase == WAITING && !force_quit) {
		const char *line = next_line(), *wrong;

		number++;
		if (line == NULL || strcmp(line, "quit\n") == 0) {
			force_quit = true;
			break;
		}
		wrong = obey(line);
		if (wrong != NULL)
			fprintf(bed.replies, "{\"error\":\"command %zu: %s\"}\n", number, wrong);
		fflush(bed.replies);
	}
	signal_router(SIGCONT);
}

/* ---- running ---- */

static double rate(uint64_t packets, double seconds)
{
	return (double)packets / seconds * 1e-6;
}

static void reply(void)
{
	double wall = now() - bed.started;
	double ran = seconds_on(CLOCK_THREAD_CPUTIME_ID) - bed.cpu_started;
	char loop[64] = "";

	if (bed.has_direct)
		snprintf(loop, sizeof(loop), "\"loop_mpps\":%.3f,", rate(bed.direct.received, bed.direct.seconds));
	if (bed.unbuffered > 0)
		fprintf(bed.replies, "{\"error\":\"out of packet buffers %llu times\"}\n",
			(unsigned long long)bed.unbuffered);
	else
		fprintf(bed.replies,
			"{\"peer\":\"%s\",\"family\":\"%s\",\"stream\":\"%s\",\"mpps\":%.3f,\"sent_mpps\":%.3f,"
			"%s\"bad\":%llu,\"lost\":%lld,\"on_cpu\":%.3f,\"pages\":\"%s\"}\n",
			contestant(), family_names[bed.generator.stream->family], bed.generator.stream->name,
			rate(bed.routed.received, bed.routed.seconds), rate(bed.routed.sent, bed.routed.seconds),
			loop, (unsigned long long)bed.wrong,
			(long long)(bed.sent - bed.received), RTE_MIN(ran / wall, 1.0), bed.pages);
	fflush(bed.replies);
}

/* Runs the same generator and receiver without a router: this time is subtracted. */
static void run_direct(struct rte_mempool *pool, unsigned burst)
{
	struct rte_mbuf *packets[MOST_IN_BURST];
	struct lap begun = so_far();

	bed.passes_by = true;
	do {
		for (unsigned i = 0; i < BURSTS_A_LOOK; i++) {
			uint16_t count = take(pool, packets, burst);

			if (count > 0)
				bed_send(1, packets, count);
		}
	} while (now() - begun.seconds < PART_SECONDS);
	bed.passes_by = false;
	add_since(&bed.direct, &begun);
}

static void end_part(struct rte_mempool *pool, unsigned burst)
{
	add_since(&bed.routed, &bed.begun);
	if (bed.has_direct)
		run_direct(pool, burst);
	bed.begun = so_far();
	if (bed.routed.seconds + bed.direct.seconds >= bed.seconds)
		drain_after(DRAIN_SECONDS);
}

/* Chooses the next step when everything has been sent. */
static void step(struct rte_mempool *pool, unsigned burst)
{
	switch (bed.phase) {
	case VERIFYING:
		drain_after(DRAIN_SECONDS);
		break;
	case DRAINING:
		if (bed.received < bed.sent && now() < bed.until)
			break;
		if (bed.seconds > 0) {
			reply();
			bed.phase = WAITING;
		} else {
			judge_stream();
		}
		break;
	case WAITING:
		await_command();
		break;
	case TIMING:
		if (now() - bed.begun.seconds >= PART_SECONDS)
			end_part(pool, burst);
		if (bed.phase == TIMING)
			bed.left = (uint64_t)BURSTS_A_LOOK * burst;
		break;
	}
}

uint64_t bed_in_flight(void)
{
	return bed.sent - bed.received;
}

uint16_t bed_receive(struct rte_mempool *pool, struct rte_mbuf **packets, uint16_t room)
{
	unsigned burst = RTE_MIN(room, MOST_IN_BURST);
	uint16_t count;

	if (unlikely(bed.left == 0)) {
		step(pool, burst);
		if (bed.left == 0)
			return 0;
	}
	count = take(pool, packets, (unsigned)RTE_MIN(bed.left, burst));
	bed.left -= count;
	return count;
}
