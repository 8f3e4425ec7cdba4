#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../../bed/inputs.h"

#define COOKIE 0x3e31f20
#define VERSION 0x0200
#define LOG2_RING 10
#define POLLS 1 /* the flag of a ring whose reader polls */
#define FROM_CLIENT 1 /* the flag of a message that adds a ring */

/* A client has so long for each message. */
#define ANSWER_SECONDS 10

enum type { ACK = 1, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED };

/* Messages have no padding between their fields. */
#pragma pack(push, 1)
struct message {
	uint16_t type;
	union {
		struct {
			char name[32];
			uint16_t min_version, max_version, max_region, max_ring_to_client, max_ring_from_client;
			uint8_t max_log2_ring;
		} hello;
		struct {
			uint16_t version;
			uint32_t id;
			uint8_t mode;
		} init;
		struct {
			uint16_t index;
			uint64_t bytes;
		} region;
		struct {
			uint16_t flags, index, region;
			uint32_t offset;
			uint8_t log2_ring;
		} ring;
		uint8_t room[126];
	};
};
#pragma pack(pop)

_Static_assert(sizeof(struct message) == 128, "a message of memif 2.0");
_Static_assert(offsetof(struct memif_ring, tail) == 64 && offsetof(struct memif_ring, descriptors) == 128, "a ring of memif 2.0");
_Static_assert(sizeof(struct memif_descriptor) == 16, "a descriptor of memif 2.0");
_Static_assert(MEMIF_RING == 1 << LOG2_RING, "the size of a ring");

int memif_listen(const char *path, int clients)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	/* Bound under another name, because the file appears before clients can connect. */
	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", path) >= sizeof(address.sun_path))
		fail(EXIT_USAGE, "%s: too long for a socket", path);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, clients) < 0 || rename(address.sun_path, path) < 0)
		fail(EXIT_ENVIRONMENT, "%s: cannot listen: %s", path, strerror(errno));
	return listener;
}

static void answer(int control, const struct message *message)
{
	if (send(control, message, sizeof(*message), MSG_NOSIGNAL) != sizeof(*message))
		fail(EXIT_ENVIRONMENT, "the router has ended: %s", strerror(errno));
}

/* Receives a message and the descriptor that comes with it, or -1. */
static int next_message(int control, struct message *message)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} files = {0};
	struct iovec part = {message, sizeof(*message)};
	struct msghdr whole = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &files, .msg_controllen = sizeof(files)};
	struct cmsghdr *header;
	ssize_t got;
	int file = -1;

	while ((got = recvmsg(control, &whole, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (got != sizeof(*message))
		fail(EXIT_ENVIRONMENT, "the router ended, or sent no message of memif in %d s", ANSWER_SECONDS);
	header = CMSG_FIRSTHDR(&whole);
	if (header != NULL && header->cmsg_type == SCM_RIGHTS)
		memcpy(&file, CMSG_DATA(header), sizeof(file));
	return file;
}

static void say_hello(int control)
{
	struct message hello = {.type = HELLO, .hello = {.name = "bed", .min_version = VERSION, .max_version = VERSION,
							 .max_log2_ring = LOG2_RING}};

	answer(control, &hello);
}

/* The memory must have the size that the client says: reading beyond its end would end this program. */
static void map_region(struct memif_port *port, const struct message *message, int file)
{
	struct stat found;

	if (message->region.index != 0 || port->memory != NULL || fstat(file, &found) < 0 ||
	    (uint64_t)found.st_size < message->region.bytes)
		fail(EXIT_ENVIRONMENT, "the router offers memory that does not exist, or more than one region");
	port->bytes = message->region.bytes;
	port->memory = mmap(NULL, port->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (port->memory == MAP_FAILED)
		fail(EXIT_ENVIRONMENT, "the router's memory cannot be mapped: %s", strerror(errno));
}

static void add_ring(struct memif_port *port, const struct message *message)
{
	struct memif_ring **added = message->ring.flags & FROM_CLIENT ? &port->from_client : &port->to_client;
	uint32_t offset = message->ring.offset;

	if (*added != NULL || message->ring.index != 0 || message->ring.log2_ring != LOG2_RING)
		fail(EXIT_ENVIRONMENT, "the router adds more than one ring each way, or one that has not %d frames", MEMIF_RING);
	if (message->ring.region != 0 || offset % 64 != 0 || port->bytes < sizeof(**added) ||
	    offset > port->bytes - sizeof(**added))
		fail(EXIT_ENVIRONMENT, "the router adds a ring that is not in its memory");
	*added = (struct memif_ring *)(port->memory + offset);
	if ((*added)->cookie != COOKIE)
		fail(EXIT_ENVIRONMENT, "the router adds a ring without the cookie of memif");
}

static void connect_rings(struct memif_port *port, int control)
{
	struct message connected = {.type = CONNECTED};

	if (port->from_client == NULL)
		fail(EXIT_ENVIRONMENT, "the router connects without a ring for what it sends");
	port->control = control;
	port->from_client->flags = POLLS;
	port->taken = port->from_client->tail;
	if (port->to_client != NULL)
		port->sent = port->to_client->tail;
	answer(control, &connected);
}

/* The interface that a client asks for. */
static struct memif_port *find_port(struct memif_port *ports, unsigned count, const struct message *message)
{
	uint32_t id = message->init.id;

	if (message->init.version != VERSION)
		fail(EXIT_ENVIRONMENT, "the router has version %#x of memif, and this program %#x", message->init.version, VERSION);
	if (id >= count || ports[id].control >= 0)
		fail(EXIT_ENVIRONMENT, "the router asks for interface %u: there are %u, and each has one client", id, count);
	return &ports[id];
}

/* Answers a client until it is connected. */
static void serve(int control, struct memif_port *ports, unsigned count)
{
	static const struct message ack = {.type = ACK};
	struct memif_port *port = NULL;

	say_hello(control);
	for (;;) {
		struct message message;
		int file = next_message(control, &message);

		if ((message.type == INIT) != (port == NULL))
			fail(EXIT_ENVIRONMENT, "the router sent message %u out of turn", message.type);
		if (message.type == INIT)
			port = find_port(ports, count, &message);
		else if (message.type == ADD_REGION)
			map_region(port, &message, file);
		else if (message.type == ADD_RING)
			add_ring(port, &message);
		else if (message.type == CONNECT)
			break;
		else
			fail(EXIT_ENVIRONMENT, "the router sent message %u out of turn", message.type);
		if (file >= 0)
			close(file);
		answer(control, &ack);
	}
	connect_rings(port, control);
}

static bool await(int listener, time_t until, bool (*is_over)(void))
{
	struct pollfd waiting = {.fd = listener, .events = POLLIN};

	while (!is_over() && time(NULL) < until)
		if (poll(&waiting, 1, 100) > 0)
			return true;
	return false;
}

bool memif_accept_all(int listener, struct memif_port *ports, unsigned count, unsigned seconds, bool (*is_over)(void))
{
	const struct timeval timeout = {.tv_sec = ANSWER_SECONDS};
	time_t until = time(NULL) + seconds;

	for (unsigned i = 0; i < count; i++)
		ports[i] = (struct memif_port){.control = -1};
	for (unsigned i = 0; i < count; i++) {
		int control = await(listener, until, is_over) ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;

		if (control < 0 && is_over())
			return false;
		if (control < 0)
			fail(EXIT_ENVIRONMENT, "the router did not connect in %u s", seconds);
		setsockopt(control, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
		serve(control, ports, count);
	}
	return true;
}

bool memif_is_gone(const struct memif_port *port)
{
	struct pollfd control = {.fd = port->control, .events = POLLIN};

	return poll(&control, 1, 0) > 0;
}
