/* Verifies and times one contestant on one stream, through the same calls. */
#include "measure.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <time.h>

#include <rte_common.h>

/* Keys between two readings of the clock: enough to hide its ~30 ns, few enough to end a sample on time. */
#define SEGMENT ((size_t)65536)

static void report_bad(const struct contestant *contestant, const struct stream *stream, size_t bad, size_t first)
{
	char key[INET6_ADDRSTRLEN];

	print_key(stream, first, key);
	fprintf(stderr, "dpdk-lookup: %s:%u on %s stream %s: %zu bad of %zu; first is key %zu, %s, expected %u\n",
		contestant->peer, contestant->batch, family_names[stream->family], stream->name, bad, stream->count,
		first, key, stream->answers[first]);
}

size_t count_bad(const struct contestant *contestant, const struct stream *stream)
{
	size_t key_bytes = stream->family == INET ? 4 : 16;
	size_t bad = 0, first = 0, size;
	union results out;

	for (size_t at = 0; at < stream->count; at += size) {
		size = RTE_MIN(stream->count - at, (size_t)contestant->batch);
		look_up(contestant, (const uint8_t *)stream->keys + at * key_bytes, size, &out);
		for (size_t i = 0; i < size; i++)
			if (contestant->answer(&out, i) != stream->answers[at + i] && bad++ == 0)
				first = at + i;
	}
	if (bad > 0)
		report_bad(contestant, stream, bad, first);
	return bad;
}

static double seconds_on(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct measurement measure(const struct contestant *contestant, const struct stream *stream, double seconds)
{
	size_t key_bytes = stream->family == INET ? 4 : 16;
	size_t at = 0, done = 0;
	double ran = seconds_on(CLOCK_THREAD_CPUTIME_ID);
	double from = seconds_on(CLOCK_MONOTONIC_RAW), elapsed;
	union results out;

	do {
		size_t size = RTE_MIN(stream->count - at, SEGMENT);

		look_up(contestant, (const uint8_t *)stream->keys + at * key_bytes, size, &out);
		done += size;
		at = at + size == stream->count ? 0 : at + size;
		elapsed = seconds_on(CLOCK_MONOTONIC_RAW) - from;
	} while (elapsed < seconds);
	ran = seconds_on(CLOCK_THREAD_CPUTIME_ID) - ran;
	return (struct measurement){.mlps = (double)done / elapsed * 1e-6, .on_cpu = RTE_MIN(ran / elapsed, 1.0)};
}
