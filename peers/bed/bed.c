#define _GNU_SOURCE
#include "bed.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"

/* Bursts between two readings of the clock, so that the readings do not show in the rate; one packet in how many is
 * checked in slices. Every packet is checked before the first slice. */
#define BURSTS_A_LOOK 16
#define CHECK_ONE_IN 64

#define MOST_IN_BURST 256

/* A router may keep packets for a moment to send more at once. After this long a packet counts as lost. */
#define DRAIN_NS 1000000000ull

#define LONGEST_NS 60000000000ull

/* A router that goes on has so long before packets come. */
#define RESUME_NS 1000000

/* What the router's loop does at present: it forwards every packet of a stream once; it returns what it keeps; it waits
 * for a command, inside bed_rx_burst; it runs the part of a slice that does not count, or the part that does. */
enum phase { VERIFYING, DRAINING, WAITING, LEADING_IN, TIMING, OVER };

/* What a drained router is to do next. */
enum next { JUDGE, REPORT_TOTALS, START_SLICE, START_CONTROL, REST };

struct totals {
	uint64_t sent, received, wrong;
};

struct slice {
	uint64_t lead_in_ns, length_ns;
	uint64_t begun_ns, begun_cpu_ns; /* of the part that runs */
	struct totals before;
};

static struct {
	struct bed_router router;
	struct stream_list streams;
	size_t *bad; /* by stream: packets that came out wrong, or not at all */
	bool *seen; /* JUDGE: by packet of the stream, whether it has come out */
	char contestants[FAMILIES][64], controls[FAMILIES][64];
	const char *pages;
	unsigned burst;
	bool lowers_hop_limit;
	FILE *replies;

	enum phase phase;
	enum next next;
	size_t stream, next_stream; /* the one being sent, and the one that the next slice sends */
	struct generator generator;
	uint64_t left;       /* VERIFYING: packets to send */
	uint64_t returned, starved_ns; /* VERIFYING: how many came back at the last look; when the bed gives up */
	uint64_t drained_ns; /* DRAINING: the latest end */
	unsigned bursts;     /* until the clock is read */
	bool is_control;     /* whether the bed runs without the router */
	struct totals routed, unrouted; /* of this stream, through the router and without it */
	uint64_t lost; /* of this stream: packets that no drain waits for any more */
	struct slice slice;
} bed;

/* The free buffers in the order of their return. */
static struct {
	void **buffers;
	size_t mask, first, count;
} ring;

static uint64_t ns_on(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t now(void)
{
	return ns_on(CLOCK_MONOTONIC);
}

static struct totals *totals(void)
{
	return bed.is_control ? &bed.unrouted : &bed.routed;
}

static const char *contestant(void)
{
	return bed.contestants[bed.generator.stream->family];
}

/* ---- buffers ---- */

static inline void give_back(void *const *buffers, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ring.buffers[(ring.first + ring.count + i) & ring.mask] = buffers[i];
	ring.count += count;
}

static inline unsigned take(void **buffers, unsigned room)
{
	unsigned count = ring.count < room ? (unsigned)ring.count : room;

	for (unsigned i = 0; i < count; i++)
		buffers[i] = ring.buffers[(ring.first + i) & ring.mask];
	ring.first += count;
	ring.count -= count;
	return count;
}

void bed_lend(void *const *buffers, size_t count)
{
	size_t room = 1;

	if (count == 0)
		fail(EXIT_USAGE, "no packet buffers: BED_BUFFERS is a number above 0");
	while (room < count)
		room *= 2;
	ring.buffers = calloc(room, sizeof(*ring.buffers));
	if (ring.buffers == NULL)
		fail(EXIT_ENVIRONMENT, "out of memory: free some");
	ring.mask = room - 1;
	give_back(buffers, (unsigned)count);
}

/* ---- packets ---- */

static inline uint16_t receive(void **packets, unsigned room)
{
	unsigned count = take(packets, room);

	generate(&bed.generator, packets, bed.router.frame_at, count);
	bed.router.describe(packets, (uint16_t)count, bed.generator.frame_bytes,
			    bed.generator.stream->family);
	totals()->sent += count;
	return (uint16_t)count;
}

static const uint8_t *frame_of(const void *packet)
{
	return bed.router.frame_of == NULL ? (const uint8_t *)packet + bed.router.frame_at : bed.router.frame_of(packet);
}

static const char *came_out_before(const uint8_t *frame)
{
	bool *seen = &bed.seen[number_of_packet(&bed.generator, frame)], before = *seen;

	*seen = true;
	return before ? "has come out before" : NULL;
}

static void check(const void *packet, uint16_t port)
{
	const uint8_t *frame = frame_of(packet);
	const char *what = fault(&bed.generator, frame, bed.router.length_of(packet), port, !bed.is_control);

	if (what == NULL && bed.next == JUDGE)
		what = came_out_before(frame);
	if (what != NULL && totals()->wrong++ == 0)
		fprintf(stderr, "%s: packet %zu of stream %s %s\n", contestant(), number_of_packet(&bed.generator, frame),
			bed.generator.stream->name, what);
}

void bed_tx_burst(uint16_t port, void *const *packets, uint16_t count)
{
	struct totals *counted = totals();
	uint64_t before = counted->received;

	counted->received += count;
	if (bed.next == JUDGE)
		for (uint16_t i = 0; i < count; i++)
			check(packets[i], port);
	else /* By packet and not by call: routers that send few packets at once would pay for more checks. */
		for (uint64_t i = -before % CHECK_ONE_IN; i < count; i += CHECK_ONE_IN)
			check(packets[i], port);
	give_back(packets, count);
}

/* A router may return a packet twice. */
static uint64_t missing(void)
{
	return bed.routed.sent > bed.routed.received ? bed.routed.sent - bed.routed.received : 0;
}

uint64_t bed_in_flight(void)
{
	return missing() > bed.lost ? missing() - bed.lost : 0;
}

bool bed_is_over(void)
{
	return bed.phase == OVER || (bed.router.quits != NULL && *bed.router.quits);
}

/* ---- before the first command ---- */

static void use_stream(size_t number)
{
	bed.stream = number;
	bed.generator = generator_of(&bed.streams.streams[number], bed.lowers_hop_limit);
	bed.routed = bed.unrouted = (struct totals){0};
	bed.lost = 0;
}

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL)
		fail(EXIT_USAGE, "%s is missing: a script of peers/ starts this program, with the environment it needs", name);
	return value;
}

static void name_contestants(const char *peer, const char *batch)
{
	for (enum family family = INET; family < FAMILIES; family++) {
		snprintf(bed.contestants[family], sizeof(bed.contestants[family]), "%s_%s:%s", peer, family_names[family], batch);
		snprintf(bed.controls[family], sizeof(bed.controls[family]), "bed_%s:%s", family_names[family], batch);
	}
	bed.burst = (unsigned)strtoul(batch, NULL, 10);
	if (bed.burst == 0 || bed.burst > MOST_IN_BURST)
		fail(EXIT_USAGE, "bursts of %s: want 1 to %d", batch, MOST_IN_BURST);
}

static void verify_stream(size_t number)
{
	use_stream(number);
	bed.left = bed.generator.stream->count;
	free(bed.seen);
	bed.seen = calloc(bed.left, sizeof(*bed.seen));
	if (bed.seen == NULL)
		fail(EXIT_ENVIRONMENT, "out of memory: free some");
	bed.phase = VERIFYING;
	bed.next = JUDGE;
}

void bed_open(const struct bed_router *router)
{
	bed.router = *router;
	name_contestants(setting("BED_PEER"), setting("BED_BATCH"));
	bed.pages = setting("BED_PAGES");
	bed.lowers_hop_limit = getenv("BED_LOWERS_HOP_LIMIT") != NULL;
	bed.replies = fdopen(3, "w");
	if (bed.replies == NULL)
		fail(EXIT_USAGE, "descriptor 3 is closed: the replies go there");
	bed.streams = read_streams(setting("BED_FOLDER"));
	bed.bad = calloc(bed.streams.count, sizeof(*bed.bad));
	if (bed.bad == NULL)
		fail(EXIT_ENVIRONMENT, "out of memory: free some");
	verify_stream(0);
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
		"{\"ready\":true,\"pages\":\"%s\",\"contestants\":[\"%s\",\"%s\",\"%s\",\"%s\"],\"facts\":[],\"bad\":[",
		bed.pages, bed.contestants[INET], bed.contestants[INET6], bed.controls[INET], bed.controls[INET6]);
	print_bad();
	fprintf(bed.replies, "],\"refused\":[],\"streams\":[");
	print_streams();
	fprintf(bed.replies, "]}\n");
	fflush(bed.replies);
}

/* Every packet of a stream has come out once, is lost, or could not be sent for lack of buffers. */
static void judge_stream(void)
{
	bed.bad[bed.stream] = bed.routed.wrong + missing() + bed.left;
	if (bed.stream + 1 < bed.streams.count) {
		verify_stream(bed.stream + 1);
		return;
	}
	free(bed.seen);
	bed.seen = NULL;
	use_stream(bed.stream);
	print_ready();
	bed.phase = WAITING;
	bed.next = REPORT_TOTALS;
}

/* ---- slices ---- */

static void begin_part(enum phase part)
{
	bed.phase = part;
	bed.slice.before = *totals();
	bed.slice.begun_cpu_ns = ns_on(CLOCK_THREAD_CPUTIME_ID);
	bed.slice.begun_ns = now();
}

static void begin_slice(void)
{
	bed.bursts = BURSTS_A_LOOK;
	begin_part(bed.slice.lead_in_ns > 0 ? LEADING_IN : TIMING);
}

/* Writes the reply, which goes out when the router rests. */
static void report_slice(uint64_t time_ns)
{
	const struct totals *after = totals(), *before = &bed.slice.before;
	uint64_t ran_ns = ns_on(CLOCK_THREAD_CPUTIME_ID) - bed.slice.begun_cpu_ns;
	uint64_t lost_ns = time_ns > ran_ns ? time_ns - ran_ns : 0;

	fprintf(bed.replies, "{\"counted\":%llu,\"offered\":%llu,\"time_ns\":%llu,\"lost_core_ns\":%llu}\n",
		(unsigned long long)(after->received - before->received), (unsigned long long)(after->sent - before->sent),
		(unsigned long long)time_ns, (unsigned long long)lost_ns);
}

static void rest(void)
{
	fflush(bed.replies);
	bed.phase = WAITING;
}

static void drain(enum next next)
{
	bed.phase = DRAINING;
	bed.next = next;
	bed.drained_ns = now() + DRAIN_NS;
}

static const char *router_process(void)
{
	return getenv("BED_ROUTER");
}

/* A router in a process of its own is stopped between slices. It would drop what it holds if that lasts for more than a second. */
static void end_slice(void)
{
	if (!bed.is_control && router_process() != NULL)
		drain(REST);
	else
		rest();
}

/* Reads the clock and ends the part of a slice whose time is over. */
static void look_at_clock(void)
{
	uint64_t time_ns = now() - bed.slice.begun_ns;

	bed.bursts = BURSTS_A_LOOK;
	if (bed.phase == LEADING_IN && time_ns >= bed.slice.lead_in_ns) {
		begin_part(TIMING);
	} else if (bed.phase == TIMING && time_ns >= bed.slice.length_ns) {
		report_slice(time_ns);
		end_slice();
	}
}

/* The bed without the router, a whole slice: what it receives it sends at once. */
static void run_control(void)
{
	void *packets[MOST_IN_BURST];

	bed.is_control = true;
	begin_slice();
	while (bed.phase != WAITING) {
		uint16_t count = receive(packets, bed.burst);

		bed_tx_burst(1, packets, count);
		if (--bed.bursts == 0)
			look_at_clock();
	}
	bed.is_control = false;
}

static void report_totals(void)
{
	fprintf(bed.replies, "{\"sent\":%llu,\"received\":%llu,\"wrong\":%llu}\n", (unsigned long long)bed.routed.sent,
		(unsigned long long)bed.routed.received, (unsigned long long)(bed.routed.wrong + bed.unrouted.wrong));
	rest();
}

static void go_to(size_t stream)
{
	if (stream != bed.stream)
		use_stream(stream);
}

/* Continues when the router has returned every packet, or time is up. */
static void end_drain(void)
{
	if (bed_in_flight() > 0 && now() < bed.drained_ns)
		return;
	bed.lost = missing();
	switch (bed.next) {
	case JUDGE:
		judge_stream();
		break;
	case REPORT_TOTALS:
		report_totals();
		break;
	case REST:
		rest();
		break;
	case START_SLICE:
		go_to(bed.next_stream);
		begin_slice();
		break;
	case START_CONTROL:
		go_to(bed.next_stream);
		run_control();
		break;
	}
}

/* ---- commands ---- */

/* The stream of that name whose family this contestant serves; the number of streams if there is none. */
static size_t find_stream(const char *name, const char *asked, char names[FAMILIES][64])
{
	size_t i = 0;

	while (i < bed.streams.count && (strcmp(bed.streams.streams[i].name, name) != 0 ||
					 strcmp(names[bed.streams.streams[i].family], asked) != 0))
		i++;
	return i;
}

static const char *obey_slice(const char *asked, const char *name)
{
	size_t stream = find_stream(name, asked, bed.contestants), control = find_stream(name, asked, bed.controls);
	bool is_control = control < bed.streams.count;

	if (bed.slice.lead_in_ns > LONGEST_NS || bed.slice.length_ns == 0 || bed.slice.length_ns > LONGEST_NS)
		return "a slice has 1 to 60000000000 nanoseconds, and its lead-in 0 to 60000000000";
	if (!is_control && stream == bed.streams.count)
		return "no such contestant, or no such stream of its family; the ready line lists them";
	if (!is_control && bed.bad[stream] > 0)
		return "this contestant forwards wrongly and is not timed";
	bed.next_stream = is_control ? control : stream;
	/* The packets that the router keeps have buffers that the control uses, and they belong to their stream. A router that was
	 * stopped has to go on first, or the lead-in would be over before it did. */
	if (is_control || stream != bed.stream || router_process() != NULL)
		drain(is_control ? START_CONTROL : START_SLICE);
	else
		begin_slice();
	return NULL;
}

/* Starts what a command requests; returns NULL, or what is wrong with the command. */
static const char *obey(const char *line)
{
	char asked[64], name[256], rest;
	unsigned long long lead_in_ns, length_ns;

	if (strcmp(line, "totals") == 0) {
		drain(REPORT_TOTALS);
		return NULL;
	}
	if (sscanf(line, "slice %63s %255s %llu %llu %c", asked, name, &lead_in_ns, &length_ns, &rest) != 4)
		return "want: slice PEER:BATCH STREAM LEAD-IN LENGTH (in nanoseconds), totals, or quit";
	bed.slice = (struct slice){.lead_in_ns = lead_in_ns, .length_ns = length_ns};
	return obey_slice(asked, name);
}

/* Waits for input; false when the router is to end: its signal handler only sets a variable, so the wait looks at it. */
static bool await_input(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	while (poll(&input, 1, 100) <= 0)
		if (bed_is_over())
			return false;
	return true;
}

/* The next line without its end; NULL at the end of input or of the router. */
static const char *next_line(void)
{
	static char text[1024];
	static size_t used, had;
	char *end;

	memmove(text, text + had, used -= had);
	while ((end = memchr(text, '\n', used)) == NULL) {
		ssize_t got = used < sizeof(text) && await_input() ? read(STDIN_FILENO, text + used, sizeof(text) - used) : 0;

		if (got <= 0)
			return NULL;
		used += (size_t)got;
	}
	*end = '\0';
	had = (size_t)(end + 1 - text);
	return text;
}

/* A router in a process of its own never sleeps. Between slices it is stopped, because it would take the core from the
 * router that is measured. */
static bool signal_router(int number)
{
	const char *router = router_process();

	return router != NULL && kill((pid_t)strtol(router, NULL, 10), number) == 0;
}

/* Ours drops what it receives in a round in which it was stopped for a second. So it ends that round first. */
static void resume_router(void)
{
	const struct timespec round = {.tv_nsec = RESUME_NS};

	if (signal_router(SIGCONT))
		nanosleep(&round, NULL);
}

static void end(void)
{
	bed.phase = OVER;
	if (bed.router.quits != NULL)
		*bed.router.quits = true;
}

/* Waits for a command that the router has a part in, and executes the others. */
static void await_command(void)
{
	static size_t number;

	signal_router(SIGSTOP);
	while (bed.phase == WAITING) {
		const char *line = next_line(), *wrong;

		number++;
		if (line == NULL || strcmp(line, "quit") == 0) {
			end();
			break;
		}
		wrong = obey(line);
		if (wrong != NULL)
			fprintf(bed.replies, "{\"error\":\"command %zu: %s\"}\n", number, wrong);
		fflush(bed.replies);
		/* The router has no part in this, and need not go on. */
		if (bed.phase == DRAINING && bed.next == START_CONTROL && bed_in_flight() == 0)
			end_drain();
	}
	resume_router();
}

/* ---- the router's loop ---- */

/* Whether the router has all buffers, and has returned none for so long that they are lost. */
static bool is_starved(void)
{
	if (ring.count > 0 || bed.routed.received != bed.returned) {
		bed.returned = bed.routed.received;
		bed.starved_ns = now() + DRAIN_NS;
	}
	return now() > bed.starved_ns;
}

/* Chooses the next step after some bursts. */
static void step(void)
{
	switch (bed.phase) {
	case VERIFYING:
		if (bed.left == 0 || is_starved())
			drain(JUDGE);
		break;
	case DRAINING:
		end_drain();
		break;
	case LEADING_IN:
	case TIMING:
		look_at_clock();
		break;
	case WAITING:
	case OVER:
		break;
	}
	if (bed.phase == WAITING)
		await_command();
}

static bool sends(void)
{
	return bed.phase == LEADING_IN || bed.phase == TIMING;
}

uint16_t bed_rx_burst(void **packets, uint16_t room)
{
	uint16_t count;

	if (bed.bursts <= 1)
		step();
	else
		bed.bursts--;
	if (sends())
		return receive(packets, room);
	if (bed.phase != VERIFYING)
		return 0;
	count = receive(packets, bed.left < room ? (unsigned)bed.left : room);
	bed.left -= count;
	return count;
}
