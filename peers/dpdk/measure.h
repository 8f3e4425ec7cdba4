/* Verifies and times one contestant on one stream. The contestant must be active. */
#ifndef PEERS_MEASURE_H
#define PEERS_MEASURE_H

#include "contestants.h"
#include "../bed/inputs.h"

struct measurement {
	double mlps;   /* million lookups per second of wall-clock time */
	double on_cpu; /* share of that time this thread ran: below 1, something else used the core */
};

/* Looks every key up exactly as the timed run does, batch by batch. Returns the number of wrong answers and describes
 * the first on stderr. */
size_t count_bad(const struct contestant *contestant, const struct stream *stream);

/* Looks up the keys of the stream, from the start again after the end, for at least `seconds`. */
struct measurement measure(const struct contestant *contestant, const struct stream *stream, double seconds);

#endif
