/* Verifies and times one contestant on one stream. The contestant must be active. */
#ifndef PEERS_MEASURE_H
#define PEERS_MEASURE_H

#include "contestants.h"
#include "../bed/inputs.h"

struct measurement {
	size_t keys;
	uint64_t time_ns;
	uint64_t lost_core_ns; /* of that time: something else used the core */
};

/* Looks every key up exactly as the timed run does, batch by batch. Returns the number of wrong answers and describes
 * the first on stderr. */
size_t count_bad(const struct contestant *contestant, const struct stream *stream);

/* Looks up keys of the stream from `*at` on, from the start again after the end, for at least that long; `*at` is then
 * where it stopped. */
struct measurement measure(const struct contestant *contestant, const struct stream *stream, size_t *at,
			   uint64_t length_ns);

#endif
