/* Verifies and times one contestant on one stream, through the same calls. */
#include "measure.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <time.h>

#include <rte_common.h>

/* Keys between two readings of the clock: some ten microseconds, so that the readings do not show in the rate and a slice of
 * a millisecond has its length. */
#define SEGMENT ((size_t)4096)

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

static uint64_t ns_on(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct measurement measure(const struct contestant *contestant, const struct stream *stream, size_t *at,
			   uint64_t length_ns)
{
	size_t key_bytes = stream->family == INET ? 4 : 16;
	uint64_t ran = ns_on(CLOCK_THREAD_CPUTIME_ID), from = ns_on(CLOCK_MONOTONIC);
	struct measurement done = {0};
	union results out;

	do {
		size_t size = RTE_MIN(stream->count - *at, SEGMENT);

		look_up(contestant, (const uint8_t *)stream->keys + *at * key_bytes, size, &out);
		done.keys += size;
		*at = *at + size == stream->count ? 0 : *at + size;
		done.time_ns = ns_on(CLOCK_MONOTONIC) - from;
	} while (done.time_ns < length_ns);
	ran = ns_on(CLOCK_THREAD_CPUTIME_ID) - ran;
	done.lost_core_ns = done.time_ns > ran ? done.time_ns - ran : 0;
	return done;
}
