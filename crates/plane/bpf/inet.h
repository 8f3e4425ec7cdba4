/*
 * What programs do with the header of an IPv4 packet that they forward.
 */
#ifndef INET_H
#define INET_H

#include <linux/ip.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* As crates/plane/src/wire/checksum.rs: the 20 bytes have to add up to all ones. The sum of three half words is a multiple
 * of 0xffff only as 0xffff or twice that, which one more fold detects. */
static __always_inline int header_verifies(const struct iphdr *ip)
{
	const __u32 *words = (const void *)ip;
	__u64 sum = (__u64)words[0] + words[1] + words[2] + words[3] + words[4];

	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

static __always_inline void decrement_ttl(struct iphdr *ip)
{
	/* RFC 1624. 0xffff is changed too, because the sum of a header with a correct checksum is never 0. */
	__u32 check = ip->check + bpf_htons(0x0100);

	ip->check = check + ((check + 1) >> 16);
	ip->ttl--;
}

#endif
