//! What aya cannot do: load XDP programs that are bound to an interface, and may call functions of its driver; attach a
//! program at tcx to an interface by its index; replace the program of a link.

use std::ffi::CStr;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use aya_obj::generated::{
    bpf_attach_type, bpf_attr, bpf_cmd, bpf_func_info, bpf_insn, bpf_prog_info, bpf_prog_type,
};
use libc::c_int;

use super::socket::check;

/// `BPF_F_XDP_DEV_BOUND_ONLY` of linux/bpf.h.
const BOUND: u32 = 1 << 6;
/// `BPF_F_XDP_HAS_FRAGS` of linux/bpf.h.
const MULTI_BUFFER: u32 = 1 << 5;
/// Where an XDP program runs: `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE` of linux/if_link.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum XdpPlace {
    /// Directly behind the driver.
    BehindDriver = 1 << 1,
    Driver = 1 << 2,
}

/// A program and what its functions are: some may be verified alone.
#[derive(Clone, Copy)]
pub struct ProgramCode<'p> {
    pub instructions: &'p [bpf_insn],
    /// Where functions begin, and their types.
    pub functions: &'p [bpf_func_info],
    /// What [`load_types`] returned.
    pub types: BorrowedFd<'p>,
    pub license: &'p CStr,
}

/// Gives the kernel types in the format of BTF.
pub fn load_types(btf: &[u8]) -> io::Result<OwnedFd> {
    let mut attributes = no_attributes();
    // SAFETY: all bytes of the union were zeroed, which is a valid value of each of its fields.
    let types = unsafe { &mut attributes.__bindgen_anon_7 };
    types.btf = btf.as_ptr() as u64;
    types.btf_size = btf.len() as u32;
    run(bpf_cmd::BPF_BTF_LOAD, &mut attributes)
}

/// Has the kernel verify and compile an XDP program for this interface alone.
pub fn load_bound_xdp(code: ProgramCode<'_>, interface: u32, is_multi_buffer: bool) -> io::Result<OwnedFd> {
    let ProgramCode { instructions, functions, types, license } = code;
    let mut attributes = no_attributes();
    // SAFETY: all bytes of the union were zeroed, which is a valid value of each of its fields.
    let program = unsafe { &mut attributes.__bindgen_anon_3 };
    program.prog_type = bpf_prog_type::BPF_PROG_TYPE_XDP as u32;
    program.expected_attach_type = bpf_attach_type::BPF_XDP as u32;
    program.insns = instructions.as_ptr() as u64;
    program.insn_cnt = instructions.len() as u32;
    program.license = license.as_ptr() as u64;
    program.prog_btf_fd = types.as_raw_fd() as u32;
    program.func_info_rec_size = size_of::<bpf_func_info>() as u32;
    program.func_info = functions.as_ptr() as u64;
    program.func_info_cnt = functions.len() as u32;
    program.prog_flags = if is_multi_buffer { BOUND | MULTI_BUFFER } else { BOUND };
    program.prog_ifindex = interface;
    run(bpf_cmd::BPF_PROG_LOAD, &mut attributes)
}

/// Attaches an XDP program to an interface until the returned link is closed.
pub fn attach_xdp(program: BorrowedFd<'_>, interface: u32, place: XdpPlace) -> io::Result<OwnedFd> {
    link(program, interface, bpf_attach_type::BPF_XDP, place as u32)
}

/// Attaches a program to an interface at tcx ingress, after all programs there, until the returned link is closed.
pub fn attach_at_tcx(program: BorrowedFd<'_>, interface: u32) -> io::Result<OwnedFd> {
    link(program, interface, bpf_attach_type::BPF_TCX_INGRESS, 0)
}

/// Replaces the program of a link. Packets meet one of the two; none meets neither.
pub fn replace(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut attributes = no_attributes();
    attributes.link_update.link_fd = link.as_raw_fd() as u32;
    attributes.link_update.__bindgen_anon_1.new_prog_fd = program.as_raw_fd() as u32;
    call(bpf_cmd::BPF_LINK_UPDATE, &mut attributes).map(drop)
}

/// The number of a program's instructions after the verifier has replaced some of them.
pub fn verified_length(program: BorrowedFd<'_>) -> io::Result<usize> {
    // SAFETY: the structure has only numbers, for which zeros are a valid value.
    let mut info: bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut attributes = no_attributes();
    attributes.info.bpf_fd = program.as_raw_fd() as u32;
    attributes.info.info_len = size_of::<bpf_prog_info>() as u32;
    attributes.info.info = (&raw mut info) as u64;
    call(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD, &mut attributes)?;
    Ok(info.xlated_prog_len as usize / size_of::<bpf_insn>())
}

fn link(program: BorrowedFd<'_>, interface: u32, place: bpf_attach_type, flags: u32) -> io::Result<OwnedFd> {
    let mut attributes = no_attributes();
    attributes.link_create.__bindgen_anon_1.prog_fd = program.as_raw_fd() as u32;
    attributes.link_create.__bindgen_anon_2.target_ifindex = interface;
    attributes.link_create.attach_type = place as u32;
    attributes.link_create.flags = flags;
    run(bpf_cmd::BPF_LINK_CREATE, &mut attributes)
}

fn no_attributes() -> bpf_attr {
    // SAFETY: the union has only numbers, for which zeros are a valid value.
    unsafe { std::mem::zeroed() }
}

/// Runs a command that returns a descriptor. What the attributes point to has to live until the call ends.
fn run(command: bpf_cmd, attributes: &mut bpf_attr) -> io::Result<OwnedFd> {
    let fd = call(command, attributes)?;
    // SAFETY: the descriptor was just created and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// As [`run`], for any command.
fn call(command: bpf_cmd, attributes: &mut bpf_attr) -> io::Result<c_int> {
    // SAFETY: the kernel reads the attributes, and reads or writes what they point to: the functions above own or borrow
    // the types, the program and the facts about it until the call has ended.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command as c_int, &raw mut *attributes, size_of::<bpf_attr>())
    };
    check(result as c_int)
}
