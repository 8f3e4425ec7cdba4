/*
 * Notes a failed link before the kernel leaves it (src/link_program.rs). When a device is set down or loses its carrier,
 * the kernel first empties its queues, then takes the routes by it out of use, and at last reports that. This program runs
 * where a queue is emptied, at a tracepoint: the function that takes the routes out of use has none.
 *
 * The file that includes this one defines note_failed, which says where links are noted.
 */
#ifndef LINK_FAILURES_H
#define LINK_FAILURES_H

/* Places where devices are noted, as in src/noted_links.rs. A power of two. */
#define FAILED (1 << 12)

/* What is read of the kernel's own types. Where it is in the running kernel, the loader finds out. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	unsigned long state;
	int ifindex;
	possible_net_t nd_net;
};

struct netdev_queue {
	struct net_device *dev;
};

struct Qdisc {
	struct netdev_queue *dev_queue;
};
#pragma clang attribute pop

/* In the state of a device: __LINK_STATE_START, __LINK_STATE_NOCARRIER. */
#define STARTED (1 << 0)
#define NO_CARRIER (1 << 2)

/* Queues are also emptied to be replaced. */
static __always_inline int link_works(const struct net_device *device)
{
	return (device->state & (STARTED | NO_CARRIER)) == STARTED;
}

/* Notes a device in its place, if it is in this network namespace: devices of others have the same indices. Says whether it was
 * not there before. What is written afterwards is seen later than the note. */
static __always_inline int note_in(__u32 *failed, __u32 namespace, const struct net_device *device)
{
	__u32 index = device->ifindex;

	return namespace == device->nd_net.net->ns.inum &&
	       __sync_lock_test_and_set(&failed[index & (FAILED - 1)], index) != index;
}

static __always_inline void note_failed(const struct net_device *device);

SEC("tp_btf/qdisc_reset")
int note_failed_link(const __u64 *arguments)
{
	const struct Qdisc *queue = (const void *)arguments[0];
	const struct net_device *device = queue->dev_queue->dev;

	if (!link_works(device))
		note_failed(device);
	return 0;
}

#endif
