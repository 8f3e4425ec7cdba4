//! The boundary: every function here is a line of `include/fullview_table.h`.
//!
//! The preconditions under *Safety* of each function cannot be checked. The functions check null and misaligned
//! pointers, lengths, text that is not UTF-8, and values out of range. A panic, which would be a bug of this library,
//! ends at this boundary as [`FvStatus::FV_BUG`].
#![allow(unsafe_code)]
#![allow(non_camel_case_types)] // names as C writes them

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;

use fullview_table::fib::registry::Registered;
use fullview_table::{Change, NextHop};

use crate::error::{self, Error};
use crate::family::{Routes, look_up};
pub use crate::status::FvStatus;
use crate::table::{Families, Reader, Table, change};

/// The IPv4 routes of a table.
pub const FV_INET: c_int = 4;
/// The IPv6 routes of a table.
pub const FV_INET6: c_int = 6;

/// A routing table of both families, for the thread that changes it.
pub struct fv_table(Table);

/// A reader, which looks up in a table.
pub struct fv_reader(Reader);

/// Checks what the header guarantees about threads.
const _: () = {
    const fn moves<T: Send>() {}
    const fn is_shared<T: Send + Sync>() {}
    moves::<fv_table>();
    is_shared::<fv_reader>();
};

/// An IPv4 route.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fv_route4 {
    /// The network address, in host byte order, without bits set beyond the length.
    pub addr: u32,
    /// The next hop, 1 to 65534; 0 makes a hole in a shorter prefix. fv_withdraw4() ignores it.
    pub next_hop: u16,
    /// Prefix length, 0 to 32.
    pub len: u8,
}

/// An IPv6 route.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fv_route6 {
    /// The network address, in network byte order, without bits set beyond the length.
    pub addr: [u8; 16],
    /// The next hop, 1 to 65534; 0 makes a hole in a shorter prefix. fv_withdraw6() ignores it.
    pub next_hop: u16,
    /// Prefix length, 0 to 128.
    pub len: u8,
}

/// A route of either family, as C passes it.
trait CRoute {
    type Addr: Registered;
    fn prefix(&self) -> (Self::Addr, u8);
    fn next_hop(&self) -> u16;
}

impl CRoute for fv_route4 {
    type Addr = u32;
    fn prefix(&self) -> (u32, u8) {
        (self.addr, self.len)
    }
    fn next_hop(&self) -> u16 {
        self.next_hop
    }
}

impl CRoute for fv_route6 {
    type Addr = u128;
    fn prefix(&self) -> (u128, u8) {
        (u128::from_be_bytes(self.addr), self.len)
    }
    fn next_hop(&self) -> u16 {
        self.next_hop
    }
}

// ---- arguments and results of all functions ----

/// Runs the body of a function; an error becomes a status, and its message is kept.
fn status(body: impl FnOnce() -> Result<(), Error>) -> FvStatus {
    // A panic may leave a table half changed; the documentation of FV_BUG permits only to free it.
    let result =
        catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(Error::Bug(message(&*panic))));
    let Err(error) = result else { return FvStatus::FV_OK };
    // If there is no memory for the message, the status is returned nevertheless.
    let _ = catch_unwind(AssertUnwindSafe(|| error::keep(&error)));
    error.status()
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without message").into()
}

fn checked<T>(pointer: *const T, what: &str) -> Result<(), Error> {
    if pointer.is_null() {
        return Err(Error::argument(format!("{what} is a null pointer")));
    }
    if !pointer.is_aligned() {
        return Err(Error::argument(format!("{what} is not aligned")));
    }
    Ok(())
}

/// # Safety
/// `pointer` is null, or points to a value that does not change as long as the result lives.
unsafe fn shared<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Error> {
    checked(pointer, what)?;
    // SAFETY: not null, aligned, and the caller guarantees the rest.
    Ok(unsafe { &*pointer })
}

/// # Safety
/// `pointer` is null, or points to a value that nothing else uses as long as the result lives.
unsafe fn exclusive<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Error> {
    checked(pointer, what)?;
    // SAFETY: not null, aligned, and the caller guarantees the rest.
    Ok(unsafe { &mut *pointer })
}

/// The `count` values at `pointer`, which may be null if `count` is 0.
///
/// # Safety
/// `pointer` points to `count` values that do not change as long as the result lives.
unsafe fn list<'a, T>(pointer: *const T, count: usize, what: &str) -> Result<&'a [T], Error> {
    if count == 0 {
        return Ok(&[]);
    }
    checked_list(pointer, count, what)?;
    // SAFETY: not null, aligned, no longer than the address space, and the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

fn checked_list<T>(pointer: *const T, count: usize, what: &str) -> Result<(), Error> {
    checked(pointer, what)?;
    let bytes = count.checked_mul(size_of::<T>()).filter(|bytes| isize::try_from(*bytes).is_ok());
    bytes.map(drop).ok_or_else(|| Error::argument(format!("{count} {what} exceed the address space")))
}

/// Room for `count` answers, set to "no route".
///
/// # Safety
/// `pointer` points to room for `count` values that nothing else uses as long as the result lives.
unsafe fn answers<'a>(pointer: *mut u16, count: usize) -> Result<&'a mut [NextHop], Error> {
    if count == 0 {
        return Ok(&mut []);
    }
    checked_list(pointer, count, "next_hops")?;
    // SAFETY: not null, aligned, and the caller guarantees the room. C may never have written there, and a reference to
    // uninitialised memory is not allowed, so it is written first.
    unsafe { ptr::write_bytes(pointer, 0, count) };
    // SAFETY: as above, and `NextHop` is a transparent `u16`, all of whose values are valid.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast::<NextHop>(), count) })
}

/// # Safety
/// `pointer` is null, or points to text that ends with a NUL and that does not change as long as the result lives.
unsafe fn bytes<'a>(pointer: *const c_char, what: &str) -> Result<&'a CStr, Error> {
    checked(pointer, what)?;
    // SAFETY: not null, and the caller guarantees the rest.
    Ok(unsafe { CStr::from_ptr(pointer) })
}

/// # Safety
/// The same as for [`bytes`].
unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Error> {
    // SAFETY: the caller guarantees the same.
    let bytes = unsafe { bytes(pointer, what) }?;
    bytes.to_str().map_err(|_| Error::argument(format!("{what} is not UTF-8")))
}

fn families(family: c_int) -> Result<Families, Error> {
    match family {
        FV_INET => Ok(Families::Inet),
        FV_INET6 => Ok(Families::Inet6),
        other => Err(Error::argument(format!("{other} is not a family: pass FV_INET or FV_INET6"))),
    }
}

/// Applies changes after checking all of them.
fn apply<R: CRoute>(
    routes: &mut Routes<R::Addr>,
    listed: &[R],
    next_hop: impl Fn(&R) -> Option<u16>,
) -> Result<(), Error> {
    let numbered = listed.iter().enumerate();
    let changes = numbered.map(|(index, route)| change(index, route.prefix(), next_hop(route)));
    routes.change(&changes.collect::<Result<Vec<Change<R::Addr>>, Error>>()?)
}

// ---- the library ----

/// The version of this library, for example "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn fv_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The message of the last call of this thread that failed; "" if none has failed. It is valid until the next failure
/// on this thread, or its end.
#[unsafe(no_mangle)]
pub extern "C" fn fv_last_error() -> *const c_char {
    error::last()
}

// ---- tables ----

/// Makes an empty table. Free it with fv_table_free().
#[unsafe(no_mangle)]
pub extern "C" fn fv_table_new() -> *mut fv_table {
    Box::into_raw(Box::new(fv_table(Table::default())))
}

/// Frees a table; a null pointer is ignored. Its readers keep their routes and see no further changes.
///
/// # Safety
/// `table` comes from fv_table_new(), is not in use, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_table_free(table: *mut fv_table) {
    if !table.is_null() {
        // SAFETY: it was made by `Box::into_raw`, and the caller guarantees that it is not used again.
        drop(unsafe { Box::from_raw(table) });
    }
}

/// Replaces all routes and next hops by those of a file: text or MRT, plain or compressed. Compiled families are
/// compiled again. If that fails (FV_COMPILE), the table is as before, but IPv4 readers may have seen the routes of the
/// file.
///
/// # Safety
/// `table` is a table that no other call uses now; `path` is text that ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_table_load(table: *mut fv_table, path: *const c_char) -> FvStatus {
    status(|| {
        // SAFETY: the caller guarantees both.
        let (table, path) = unsafe { (exclusive(table, "table")?, bytes(path, "path")?) };
        table.0.load(Path::new(OsStr::from_bytes(path.to_bytes())))
    })
}

/// Compiles the routes of a family for its readers, with the algorithm of that name, or with the best one for the table
/// if the name is "auto". From then on every change reaches the readers at once.
///
/// "auto" chooses again as the table changes. If an algorithm named here cannot take a change, the best that can takes
/// over, which fv_table_algorithm() names. The algorithm is tried again later, or at once if this function names it
/// again.
///
/// # Safety
/// `table` is a table that no other call uses now; `algorithm` is text that ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_table_compile(
    table: *mut fv_table,
    family: c_int,
    algorithm: *const c_char,
) -> FvStatus {
    status(|| {
        // SAFETY: the caller guarantees both.
        let (table, algorithm) = unsafe { (exclusive(table, "table")?, text(algorithm, "algorithm")?) };
        table.0.compile(families(family)?, algorithm)
    })
}

/// The number of routes of a family in a table; 0 for a null pointer or an unknown family.
///
/// # Safety
/// `table` is null or a table that no other call changes now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_table_routes(table: *const fv_table, family: c_int) -> usize {
    // SAFETY: the caller guarantees it.
    let table = unsafe { shared(table, "table") };
    table.and_then(|table| Ok(table.0.routes(families(family)?))).unwrap_or(0)
}

/// The number of bytes that lookups of a family may read; 0 before it is compiled.
///
/// # Safety
/// `table` is null or a table that no other call changes now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_table_bytes(table: *const fv_table, family: c_int) -> usize {
    // SAFETY: the caller guarantees it.
    let table = unsafe { shared(table, "table") };
    let serving = table.and_then(|table| Ok(table.0.serving(families(family)?)));
    serving.ok().flatten().map_or(0, |(_, bytes)| bytes)
}

/// Writes the name of the algorithm that serves a family, "" before it is compiled, and a NUL into `buffer`. A name
/// that does not fit in `size` bytes is cut off.
///
/// # Safety
/// `table` is a table that no other call changes now; `buffer` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_table_algorithm(
    table: *const fv_table,
    family: c_int,
    buffer: *mut c_char,
    size: usize,
) -> FvStatus {
    status(|| {
        // SAFETY: the caller guarantees it.
        let table = unsafe { shared(table, "table") }?;
        let name = table.0.serving(families(family)?).map_or("", |(name, _)| name);
        // SAFETY: the caller guarantees it.
        unsafe { write_text(name, buffer, size) }
    })
}

/// # Safety
/// `buffer` has room for `size` bytes.
unsafe fn write_text(text: &str, buffer: *mut c_char, size: usize) -> Result<(), Error> {
    checked(buffer, "buffer")?;
    let room = size.checked_sub(1).ok_or_else(|| Error::argument("the buffer has no room for a NUL"))?;
    let length = text.len().min(room);
    // SAFETY: both have at least `length` bytes, they do not overlap because Rust owns `text`, and there is room for
    // one more byte.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, length);
        buffer.add(length).write(0);
    }
    Ok(())
}

// ---- next hops ----

/// Stores the index of a next hop given as an address ("192.0.2.1") or a number ("7"): the same text always has the
/// same index.
///
/// # Safety
/// `table` is a table that no other call uses now; `target` is text that ends with a NUL; `next_hop` is room for one
/// value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_next_hop(
    table: *mut fv_table,
    target: *const c_char,
    next_hop: *mut u16,
) -> FvStatus {
    status(|| {
        // SAFETY: the caller guarantees both.
        let (table, target) = unsafe { (exclusive(table, "table")?, text(target, "target")?) };
        checked(next_hop, "next_hop")?;
        let index = table.0.intern(target)?.0;
        // SAFETY: not null, aligned, and the caller vouches that there is room for a value.
        unsafe { next_hop.write(index) };
        Ok(())
    })
}

/// Writes what a next hop stands for, "" if it is not in this table, and a NUL into `buffer`. Text that does not
/// fit in `size` bytes is cut off.
///
/// # Safety
/// `table` is a table that no other call changes now; `buffer` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_next_hop_text(
    table: *const fv_table,
    next_hop: u16,
    buffer: *mut c_char,
    size: usize,
) -> FvStatus {
    status(|| {
        // SAFETY: the caller guarantees it.
        let table = unsafe { shared(table, "table") }?;
        let target = table.0.target(NextHop(next_hop)).unwrap_or_default();
        // SAFETY: the caller guarantees it.
        unsafe { write_text(&target, buffer, size) }
    })
}

// ---- changes ----

/// Adds one route or replaces it. The prefix is text of either family: "198.18.0.0/15", "2001:2::/48".
///
/// FV_COMPILE, here and in all changes, means that the routes are changed and no algorithm could compile them:
/// readers see the table as before, or the first part of a list of changes. Compile again once there is memory, or
/// there are fewer routes.
///
/// # Safety
/// `table` is a table that no other call uses now; `prefix` is text that ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_announce(table: *mut fv_table, prefix: *const c_char, next_hop: u16) -> FvStatus {
    // SAFETY: the caller guarantees both.
    status(|| unsafe { exclusive(table, "table")?.0.change(text(prefix, "prefix")?, Some(next_hop)) })
}

/// Removes one route; nothing happens if there is no such route.
///
/// # Safety
/// `table` is a table that no other call uses now; `prefix` is text that ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_withdraw(table: *mut fv_table, prefix: *const c_char) -> FvStatus {
    // SAFETY: the caller guarantees both.
    status(|| unsafe { exclusive(table, "table")?.0.change(text(prefix, "prefix")?, None) })
}

/// Adds or replaces IPv4 routes, all of them or, if one is wrong, none. Until the call returns, each address
/// has its old answer or its new one.
///
/// # Safety
/// `table` is a table that no other call uses now; `routes` points to `count` routes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_announce4(
    table: *mut fv_table,
    routes: *const fv_route4,
    count: usize,
) -> FvStatus {
    status(|| {
        // SAFETY: the caller guarantees both.
        let (table, routes) = unsafe { (exclusive(table, "table")?, list(routes, count, "routes")?) };
        apply(&mut table.0.inet, routes, |route| Some(route.next_hop()))
    })
}

/// Removes IPv4 routes, all of them or, if one is wrong, none. Routes that do not exist are ignored.
///
/// # Safety
/// `table` is a table that no other call uses now; `routes` points to `count` routes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_withdraw4(
    table: *mut fv_table,
    routes: *const fv_route4,
    count: usize,
) -> FvStatus {
    status(|| {
        // SAFETY: the caller guarantees both.
        let (table, routes) = unsafe { (exclusive(table, "table")?, list(routes, count, "routes")?) };
        apply(&mut table.0.inet, routes, |_| None)
    })
}

/// Does what fv_announce4() does, for IPv6.
///
/// # Safety
/// `table` is a table that no other call uses now; `routes` points to `count` routes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_announce6(
    table: *mut fv_table,
    routes: *const fv_route6,
    count: usize,
) -> FvStatus {
    status(|| {
        // SAFETY: the caller guarantees both.
        let (table, routes) = unsafe { (exclusive(table, "table")?, list(routes, count, "routes")?) };
        apply(&mut table.0.inet6, routes, |route| Some(route.next_hop()))
    })
}

/// Does what fv_withdraw4() does, for IPv6.
///
/// # Safety
/// `table` is a table that no other call uses now; `routes` points to `count` routes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_withdraw6(
    table: *mut fv_table,
    routes: *const fv_route6,
    count: usize,
) -> FvStatus {
    status(|| {
        // SAFETY: the caller guarantees both.
        let (table, routes) = unsafe { (exclusive(table, "table")?, list(routes, count, "routes")?) };
        apply(&mut table.0.inet6, routes, |_| None)
    })
}

// ---- lookups ----

/// Makes a reader of a table; null if the table is null. Free it with fv_reader_free().
///
/// # Safety
/// `table` is null or a table that no other call changes now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_reader_new(table: *const fv_table) -> *mut fv_reader {
    // SAFETY: the caller guarantees it.
    match unsafe { shared(table, "table") } {
        Ok(table) => Box::into_raw(Box::new(fv_reader(table.0.reader()))),
        Err(error) => {
            error::keep(&error);
            ptr::null_mut()
        }
    }
}

/// Frees a reader; a null pointer is ignored.
///
/// # Safety
/// `reader` comes from fv_reader_new(), is not in use, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_reader_free(reader: *mut fv_reader) {
    if !reader.is_null() {
        // SAFETY: it was made by `Box::into_raw`, and the caller guarantees that it is not used again.
        drop(unsafe { Box::from_raw(reader) });
    }
}

/// Looks up `count` IPv4 addresses in the present table: `next_hops[i]` becomes the next hop of `addrs[i]`, or 0 if
/// there is no route. Before fv_table_compile() it returns FV_NOT_COMPILED, and all answers are 0.
///
/// Any number of threads may call this with the same reader. Batches of 32 and more are faster than single addresses.
///
/// # Safety
/// `reader` is a reader; `addrs` points to `count` addresses and `next_hops` to room for as many answers, elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_lookup4(
    reader: *const fv_reader,
    addrs: *const u32,
    next_hops: *mut u16,
    count: usize,
) -> FvStatus {
    status(|| {
        // SAFETY: the caller guarantees all three.
        let (reader, addrs, answers) =
            unsafe { (shared(reader, "reader")?, list(addrs, count, "addrs")?, answers(next_hops, count)?) };
        look_up(&reader.0.inet, addrs, answers)
    })
}

/// IPv6 addresses converted to host byte order at a time: they stay in the first-level cache.
const CONVERTED: usize = 256;

/// Does what fv_lookup4() does, for IPv6: `count` addresses of 16 bytes each, in network byte order, need not be
/// aligned.
///
/// # Safety
/// `reader` is a reader; `addrs` points to `count` addresses and `next_hops` to room for as many answers, elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fv_lookup6(
    reader: *const fv_reader,
    addrs: *const [u8; 16],
    next_hops: *mut u16,
    count: usize,
) -> FvStatus {
    status(|| {
        // SAFETY: the caller guarantees all three.
        let (reader, addrs, answers) =
            unsafe { (shared(reader, "reader")?, list(addrs, count, "addrs")?, answers(next_hops, count)?) };
        if addrs.is_empty() {
            // The status still depends on whether the routes are compiled.
            return look_up(&reader.0.inet6, &[], &mut []);
        }
        let mut converted = [0; CONVERTED];
        for (addrs, answers) in addrs.chunks(CONVERTED).zip(answers.chunks_mut(CONVERTED)) {
            converted
                .iter_mut()
                .zip(addrs)
                .for_each(|(converted, addr)| *converted = u128::from_be_bytes(*addr));
            look_up(&reader.0.inet6, &converted, answers)?;
        }
        Ok(())
    })
}
