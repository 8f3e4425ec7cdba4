/* fullview-table: routing tables of both IP families and longest-prefix-match lookup.
 *
 *     struct fv_table *table = fv_table_new();
 *     fv_table_load(table, "view.txt.gz");
 *     fv_table_compile(table, FV_INET, "auto");
 *     struct fv_reader *reader = fv_reader_new(table);
 *     fv_lookup4(reader, addresses, next_hops, count);
 *
 * Who may call what: a table belongs to one thread at a time, which changes it. A reader may be used by any number of
 * threads at once, while its table changes, and outlives its table. Readers never wait.
 *
 * Numbers: an IPv4 address is a uint32_t in host byte order (198.18.0.1 is 0xc6120001), an IPv6 address is 16 bytes in
 * network order, as in struct in6_addr. A next hop is 1 to 65534; 0 is no route.
 *
 * Errors: functions that can fail return a status, FV_OK being 0; fv_last_error says in words what went wrong. A call
 * that fails changes nothing, except where it says otherwise.
 */

#ifndef FULLVIEW_TABLE_H
#define FULLVIEW_TABLE_H

/* Made by cbindgen from crates/table-c/src/ffi.rs; ./ci.sh capi compares, ACCEPT=1 ./ci.sh capi renews. */

#include <stddef.h>
#include <stdint.h>

/**
 * The IPv4 routes of a table.
 */
#define FV_INET 4

/**
 * The IPv6 routes of a table.
 */
#define FV_INET6 6

/**
 * How a call ended. fv_last_error() has the sentence that goes with it.
 */
enum fv_status {
    /**
     * Done.
     */
    FV_OK = 0,
    /**
     * An argument is wrong: a null pointer, a prefix that is none, a next hop out of range.
     */
    FV_ARGUMENT = 1,
    /**
     * The file cannot be read, or is no routing table.
     */
    FV_FEED = 2,
    /**
     * There is no such algorithm.
     */
    FV_ALGORITHM = 3,
    /**
     * The algorithm cannot hold this table, or got no memory.
     */
    FV_COMPILE = 4,
    /**
     * More than 65534 different next hops.
     */
    FV_NEXT_HOPS = 5,
    /**
     * Nothing has been compiled for this family yet.
     */
    FV_NOT_COMPILED = 6,
    /**
     * A bug in this library. The table concerned may only be freed.
     */
    FV_BUG = 7,
};

/**
 * What looks up in a table.
 */
struct fv_reader;

/**
 * A routing table of both families: the writer's side.
 */
struct fv_table;

/**
 * An IPv4 route.
 */
struct fv_route4 {
    /**
     * The network address, in host byte order, no bit set beyond the length.
     */
    uint32_t addr;
    /**
     * 1 to 65534; 0 makes a hole in a shorter prefix. Ignored by fv_withdraw4().
     */
    uint16_t next_hop;
    /**
     * Prefix length, 0 to 32.
     */
    uint8_t len;
};

/**
 * An IPv6 route.
 */
struct fv_route6 {
    /**
     * The network address, in network byte order, no bit set beyond the length.
     */
    uint8_t addr[16];
    /**
     * 1 to 65534; 0 makes a hole in a shorter prefix. Ignored by fv_withdraw6().
     */
    uint16_t next_hop;
    /**
     * Prefix length, 0 to 128.
     */
    uint8_t len;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of this library, for example "0.1.0".
 */
const char *fv_version(void);

/**
 * What went wrong in the last call of this thread that failed, in words; "" if none has. Valid until the next failure
 * on this thread, or its end.
 */
const char *fv_last_error(void);

/**
 * An empty table, to be freed with fv_table_free().
 */
struct fv_table *fv_table_new(void);

/**
 * Frees a table; null is let pass. Its readers stay as they are and see no further changes.
 *
 * # Safety
 * `table` comes from fv_table_new(), is not in use, and is not used again.
 */
void fv_table_free(struct fv_table *table);

/**
 * Replaces all routes and next hops by those of a file: text or MRT, plain or compressed. Families that are compiled
 * are compiled anew. If one cannot be, FV_COMPILE, all is as before, but IPv4 readers may have seen the file's routes.
 *
 * # Safety
 * `table` is a table that nobody else uses now; `path` is text that ends with a NUL.
 */
enum fv_status fv_table_load(struct fv_table *table,
                             const char *path);

/**
 * Compiles a family's routes for its readers, by the algorithm of that name, or by "auto", which takes the best for
 * the table. From then on every change reaches the readers at once.
 *
 * "auto" chooses again as the table changes. An algorithm asked for by name that cannot take a change gives way to
 * the best that can, which fv_table_algorithm() names, and is tried again later, at once if it is asked for again.
 *
 * # Safety
 * `table` is a table that nobody else uses now; `algorithm` is text that ends with a NUL.
 */
enum fv_status fv_table_compile(struct fv_table *table,
                                int family,
                                const char *algorithm);

/**
 * How many routes of a family a table holds; 0 for a null table or a family there is not.
 *
 * # Safety
 * `table` is null or a table that nobody changes now.
 */
size_t fv_table_routes(const struct fv_table *table, int family);

/**
 * Bytes that lookups of a family may touch; 0 before it is compiled.
 *
 * # Safety
 * `table` is null or a table that nobody changes now.
 */
size_t fv_table_bytes(const struct fv_table *table, int family);

/**
 * Writes the name of the algorithm that serves a family, "" before it is compiled, and a NUL into `buffer`. A name
 * that does not fit in `size` bytes is cut off.
 *
 * # Safety
 * `table` is a table that nobody changes now; `buffer` has room for `size` bytes.
 */
enum fv_status fv_table_algorithm(const struct fv_table *table,
                                  int family,
                                  char *buffer,
                                  size_t size);

/**
 * The index of a next hop given as an address ("192.0.2.1") or a number ("7"): the same text always gets the same
 * index.
 *
 * # Safety
 * `table` is a table that nobody else uses now; `target` is text that ends with a NUL; `next_hop` is room for one
 * value.
 */
enum fv_status fv_next_hop(struct fv_table *table,
                           const char *target,
                           uint16_t *next_hop);

/**
 * Writes what a next hop stands for, "" if it is not one of this table's, and a NUL into `buffer`. Text that does not
 * fit in `size` bytes is cut off.
 *
 * # Safety
 * `table` is a table that nobody changes now; `buffer` has room for `size` bytes.
 */
enum fv_status fv_next_hop_text(const struct fv_table *table,
                                uint16_t next_hop,
                                char *buffer,
                                size_t size);

/**
 * Adds one route or replaces it. The prefix is text of either family: "198.18.0.0/15", "2001:2::/48".
 *
 * FV_COMPILE, here as in all changes, means that the routes are changed, but no algorithm could follow and readers see
 * the table as it was; of a list of changes they may see the first part. Compile again once there is memory, or fewer
 * routes.
 *
 * # Safety
 * `table` is a table that nobody else uses now; `prefix` is text that ends with a NUL.
 */
enum fv_status fv_announce(struct fv_table *table,
                           const char *prefix,
                           uint16_t next_hop);

/**
 * Takes one route away; one that is not there is let pass.
 *
 * # Safety
 * `table` is a table that nobody else uses now; `prefix` is text that ends with a NUL.
 */
enum fv_status fv_withdraw(struct fv_table *table, const char *prefix);

/**
 * Adds or replaces IPv4 routes, all of them or, if one is wrong, none. Readers are told once, at the end.
 *
 * # Safety
 * `table` is a table that nobody else uses now; `routes` points to `count` routes.
 */
enum fv_status fv_announce4(struct fv_table *table, const struct fv_route4 *routes, size_t count);

/**
 * Takes IPv4 routes away, all of them or, if one is wrong, none. Those that are not there are let pass.
 *
 * # Safety
 * `table` is a table that nobody else uses now; `routes` points to `count` routes.
 */
enum fv_status fv_withdraw4(struct fv_table *table, const struct fv_route4 *routes, size_t count);

/**
 * As fv_announce4(), for IPv6.
 *
 * # Safety
 * `table` is a table that nobody else uses now; `routes` points to `count` routes.
 */
enum fv_status fv_announce6(struct fv_table *table, const struct fv_route6 *routes, size_t count);

/**
 * As fv_withdraw4(), for IPv6.
 *
 * # Safety
 * `table` is a table that nobody else uses now; `routes` points to `count` routes.
 */
enum fv_status fv_withdraw6(struct fv_table *table, const struct fv_route6 *routes, size_t count);

/**
 * A reader of a table, to be freed with fv_reader_free(); null if the table is null.
 *
 * # Safety
 * `table` is null or a table that nobody changes now.
 */
struct fv_reader *fv_reader_new(const struct fv_table *table);

/**
 * Frees a reader; null is let pass.
 *
 * # Safety
 * `reader` comes from fv_reader_new(), is not in use, and is not used again.
 */
void fv_reader_free(struct fv_reader *reader);

/**
 * Looks up `count` IPv4 addresses in the table as it is now: `next_hops[i]` becomes the next hop of `addrs[i]`, 0
 * where there is no route. FV_NOT_COMPILED, with all answers 0, before fv_table_compile().
 *
 * Any number of threads may call this with the same reader. Batches of 32 and more are faster than single addresses.
 *
 * # Safety
 * `reader` is a reader; `addrs` points to `count` addresses and `next_hops` to room for as many answers, elsewhere.
 */
enum fv_status fv_lookup4(const struct fv_reader *reader,
                          const uint32_t *addrs,
                          uint16_t *next_hops,
                          size_t count);

/**
 * As fv_lookup4(), for IPv6: `count` addresses of 16 bytes each, in network byte order, need not be aligned.
 *
 * # Safety
 * `reader` is a reader; `addrs` points to `count` addresses and `next_hops` to room for as many answers, elsewhere.
 */
enum fv_status fv_lookup6(const struct fv_reader *reader,
                          const uint8_t (*addrs)[16],
                          uint16_t *next_hops,
                          size_t count);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FULLVIEW_TABLE_H */
