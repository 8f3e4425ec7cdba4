/*
 * Copies of packets for the process: samples for flow export, and packets that a trace or a capture asks for.
 *
 * Each program is compiled twice, with and without this code (`is_observed`), so that a packet pays for it only while
 * something is wanted. The process then replaces the program of each interface.
 *
 * What is known before the packet is forwarded stays in the memory of the processor until the packet's fate is known. The
 * verifier does not follow the contents of that memory, so it checks the forwarding path once, and not once for each
 * combination of wishes.
 */
#ifndef OBSERVE_H
#define OBSERVE_H

#include <stddef.h>

#include "frame.h"

/* Sizes and order as in src/engine/observed/layout.rs. */
#define INTERFACES (1 << 10)
#define WATCHES 8
#define KEY_WORDS 6

/* Bytes of a frame in a copy: of a sampled packet, and of another one. */
#define SAMPLED_BYTES 128
#define MOST_BYTES 2104

/* The header fields that a watch may compare. Addresses of IPv4 are the first 32 bits of their words. */
struct header_key {
	__u32 device;
	__u16 vlan;
	__u16 type;
	__u64 source[2], destination[2];
	__u16 ports[2];
	__u8 protocol;
	__u8 unused[3];
};

/* A packet matches if the bits of the mask are equal. `fates` has the bit of each fate that is wanted: 0 for a forwarded
 * packet, else the reason. */
struct watch {
	__u64 value[KEY_WORDS];
	__u64 mask[KEY_WORDS];
	__u64 fates;
};

/* Samples that the ring had no room for, and the packets that they stood for. */
struct loss {
	__u32 samples;
	__u32 packets;
	__u32 device;
	__u32 unused;
};

struct wishes {
	__u32 longest_gap;	/* between two samples of a processor; 0: no samples */
	__u32 watches;
	__u32 missed;		/* packets of watches that the ring had no room for */
	__u32 unused;
	struct watch watch[WATCHES];
	struct loss losses[INTERFACES];	/* by interface; 0: no interface */
	__u32 rest[812];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wishes);
} wished SEC(".maps");

/* A copy, as the ring holds it without the unused end of `bytes`. */
struct copy {
	__u64 at;		/* nanoseconds of CLOCK_MONOTONIC */
	__u64 passed;		/* of a sample: packets of its interface since the sample before, this one included */
	__u32 device;
	__u32 length;
	__u32 egress;		/* a forwarded packet's device */
	__u16 copied;
	__u8 reason;		/* 0: forwarded */
	__u8 kinds;
	__be16 tag_protocol;	/* of a tag that is not in the frame; 0: there is none */
	__u16 tag_control;
	__u32 segments;		/* of a large frame that is split later */
	__u8 bytes[MOST_BYTES];
};

/* Kinds of copies. */
#define IS_SAMPLE 1
#define IS_WATCHED 2

/* The memory of a processor. A program is not interrupted by another one on the same processor. */
struct observer {
	__u32 left;		/* packets up to the next sample, that one included */
	__u32 is_sample;
	__u64 fates;		/* that are wanted of the present packet */
	__u64 passed[INTERFACES];
	struct header_key key;
	struct copy copy;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct observer);
} observers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} copies SEC(".maps");

/* Hides what is known of a value from the compiler, which would leave out the comparison that the verifier needs. */
#define OPAQUE(value) asm volatile("" : "+r"(value))

/* Copies the first bytes of a frame, `most` of them at most. */
static __always_inline void copy_frame(struct frame frame, struct copy *copy, __u64 most)
{
	__u64 len = length_of(frame);

	if (len > most)
		len = most;
	copy->copied = 0;
	OPAQUE(len);
	if (!len || len > MOST_BYTES)
		return;
	if (frame.is_skb ? bpf_skb_load_bytes(frame.context, 0, copy->bytes, len) :
			   bpf_xdp_load_bytes(frame.context, 0, copy->bytes, len))
		return;
	copy->copied = len;
}

/* The number of packets from one sample to the next: 1 to `longest`, all equally probable. */
static __always_inline __u32 draw_gap(__u32 longest)
{
	return 1 + ((__u64)bpf_get_prandom_u32() * longest >> 32);
}

/* Whether this packet is the next sample. */
static __always_inline int is_due(struct observer *observer, __u32 longest_gap)
{
	if (!observer->left)
		observer->left = draw_gap(longest_gap);
	return !--observer->left;
}

/* Reads the key from the copied bytes. What is behind the end of a short frame is left of another one: the process compares
 * again. */
static __always_inline void read_key(struct observer *observer, __u32 device, struct stripped_tag tag)
{
	const __u8 *bytes = observer->copy.bytes;
	struct header_key *key = &observer->key;
	__u64 at = ETH_HLEN, ports;
	__u16 type = *(const __u16 *)(bytes + ETH_HLEN - 2);
	__u16 vlan = tag.protocol == bpf_htons(ETH_P_8021Q) ? tag.control : 0;

	if (type == bpf_htons(ETH_P_8021Q)) {
		vlan = bpf_ntohs(*(const __u16 *)(bytes + ETH_HLEN));
		type = *(const __u16 *)(bytes + ETH_HLEN + 2);
		at += 4;
	}
	__builtin_memset(key, 0, sizeof(*key));
	key->device = device;
	key->vlan = vlan & 0xfff;
	key->type = type;
	if (type == bpf_htons(ETH_P_IP)) {
		key->protocol = bytes[at + 9];
		__builtin_memcpy(key->source, bytes + at + 12, 4);
		__builtin_memcpy(key->destination, bytes + at + 16, 4);
		ports = at + 4 * (bytes[at] & 15);
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		key->protocol = bytes[at + 6];
		__builtin_memcpy(key->source, bytes + at + 8, 16);
		__builtin_memcpy(key->destination, bytes + at + 24, 16);
		ports = at + 40;
	} else {
		return;
	}
	__builtin_memcpy(key->ports, bytes + (ports & (SAMPLED_BYTES - 1)), 4);
}

/* The fates of which a watch wants this packet. */
static __always_inline __u64 wanted_fates(const struct watch *watch, const struct header_key *key)
{
	const __u64 *words = (const void *)key;
	__u64 difference = 0;

	for (int word = 0; word < KEY_WORDS; word++)
		difference |= (words[word] ^ watch->value[word]) & watch->mask[word];
	return difference ? 0 : watch->fates;
}

/* Finds out what is wanted of a packet, and copies what will have changed when its fate is known. */
static __always_inline void observe(struct frame frame, struct stripped_tag tag, struct observer *observer,
				    const struct wishes *wishes)
{
	__u64 fates = 0;

	observer->is_sample = wishes->longest_gap && is_due(observer, wishes->longest_gap);
	if (wishes->watches) {
		copy_frame(frame, &observer->copy, SAMPLED_BYTES);
		read_key(observer, ingress_device(frame), tag);
		for (__u32 number = 0; number < WATCHES && number < wishes->watches; number++)
			fates |= wanted_fates(&wishes->watch[number], &observer->key);
	}
	observer->fates = fates;
	observer->copy.length = length_of(frame);
	observer->copy.device = ingress_device(frame);
	observer->copy.tag_protocol = tag.protocol;
	observer->copy.tag_control = tag.control;
	observer->copy.segments = frame.is_skb && as_skb(frame)->gso_size ? as_skb(frame)->gso_segs : 0;
	if (fates & 1)
		copy_frame(frame, &observer->copy, MOST_BYTES);
	else if (observer->is_sample)
		copy_frame(frame, &observer->copy, SAMPLED_BYTES);
}

static __always_inline void count_lost(struct wishes *wishes, __u32 interface, const struct observer *observer)
{
	struct loss *loss = &wishes->losses[interface & (INTERFACES - 1)];

	if (observer->copy.kinds & IS_WATCHED)
		__sync_fetch_and_add(&wishes->missed, 1);
	if (!(observer->copy.kinds & IS_SAMPLE))
		return;
	loss->device = observer->copy.device;
	__sync_fetch_and_add(&loss->packets, (__u32)observer->copy.passed);
	__sync_fetch_and_add(&loss->samples, 1);
}

/* Puts the copy of a packet into the ring, now that its fate is known. */
static __always_inline void report(struct frame frame, struct observer *observer, struct wishes *wishes,
				   __u32 interface, __u32 reason, __u32 egress)
{
	__u64 *passed = &observer->passed[interface & (INTERFACES - 1)];
	struct copy *copy = &observer->copy;
	int is_watched = observer->fates >> (reason & 63) & 1;
	__u64 len;

	*passed += 1;
	if (!is_watched && !observer->is_sample)
		return;
	/* Such a packet has not changed. */
	if (is_watched && reason)
		copy_frame(frame, copy, MOST_BYTES);
	copy->at = bpf_ktime_get_ns();
	copy->kinds = (observer->is_sample ? IS_SAMPLE : 0) | (is_watched ? IS_WATCHED : 0);
	copy->passed = *passed;
	if (observer->is_sample)
		*passed = 0;
	copy->reason = reason;
	copy->egress = egress;
	len = copy->copied;
	OPAQUE(len);
	if (len > MOST_BYTES)
		return;
	if (bpf_ringbuf_output(&copies, copy, offsetof(struct copy, bytes) + len, BPF_RB_NO_WAKEUP))
		count_lost(wishes, interface, observer);
}

_Static_assert(sizeof(struct header_key) == 8 * KEY_WORDS, "a key is compared by words");
_Static_assert(sizeof(struct wishes) % 4096 == 0, "wishes are mapped");
_Static_assert(sizeof(struct observer) <= 32768, "the kernel has no larger values by processor");

#endif
