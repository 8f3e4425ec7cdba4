//! The program for interfaces whose driver may strip VLAN tags from frames. It asks the driver for the tag by a function of
//! the kernel (`bpf_xdp_metadata_rx_vlan_tag`), which only a program may call that is bound to the interface. So each such
//! interface has its own copy of the program; all copies use the same maps.

use std::collections::HashSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::OnceLock;

use aya::maps::{Map, MapData, MapError};
use aya::sys::SyscallError;
use aya::{Btf, Ebpf, EbpfError};
use aya_obj::btf::{BtfFeatures, BtfKind};
use aya_obj::generated::{BPF_CALL, BPF_JMP, BPF_PSEUDO_KFUNC_CALL, bpf_func_info, bpf_insn};
use aya_obj::{Function, Object};

use crate::bpf::{BpfError, BpfObject, retry_after_signals};
use crate::port::sys::bpf_call::{self, ProgramCode};

use super::attachment::{Buffers, failed};
use super::spare_room::{kernel_copies_programs, moved_functions, with_spare_room};

const READ_TAG: &str = "bpf_xdp_metadata_rx_vlan_tag";

/// The instructions of the program behind its spare room, ready to be loaded for an interface.
pub(super) struct BoundProgram {
    object: BpfObject,
    name: &'static str,
    buffers: Buffers,
    code: RelocatedCode,
}

struct RelocatedCode {
    instructions: Vec<bpf_insn>,
    functions: Vec<bpf_func_info>,
    types: OwnedFd,
    license: CString,
    /// The maps: instructions name them by the numbers of these descriptors.
    _maps: Vec<OwnedFd>,
}

impl BoundProgram {
    /// Relocates the program of this name to the maps of a loaded object. `None` if the kernel cannot tell stripped tags (before Linux
    /// 6.8, or without type information), or copies programs (`spare_room.rs`).
    pub fn new(
        object: BpfObject,
        (name, buffers): (&'static str, Buffers),
        maps: &Ebpf,
    ) -> Result<Option<BoundProgram>, BpfError> {
        let Some(read_tag) = type_of_read_tag().filter(|_| !kernel_copies_programs()) else {
            return Ok(None);
        };
        let code = relocated(object, name, maps, read_tag)
            .map_err(|error| BpfError::Load { object: object.name(), error: Box::new(error) })?;
        Ok(Some(BoundProgram { object, name, buffers, code }))
    }

    /// Loads a copy for an interface.
    pub fn load(&self, interface: u32) -> Result<OwnedFd, BpfError> {
        let (object, name) = (self.object.name(), self.name);
        let mut program = None;
        let load = || {
            let is_multi_buffer = self.buffers == Buffers::Several;
            let loaded = bpf_call::load_bound_xdp(self.code.as_program(), interface, is_multi_buffer);
            program = Some(loaded.map_err(|error| failed("BPF_PROG_LOAD", error))?);
            Ok(())
        };
        let refused = |error| BpfError::Program { object, program: name, error: Box::new(error) };
        retry_after_signals(load).map_err(refused)?;
        let missing = BpfError::Missing { object, kind: "XDP program", name };
        let program = program.ok_or(missing)?;
        let length = bpf_call::verified_length(program.as_fd())
            .map_err(|error| refused(failed("BPF_OBJ_GET_INFO_BY_FD", error)))?;
        if length > self.code.instructions.len() {
            return Err(BpfError::Moved { object, program: name, length });
        }
        Ok(program)
    }
}

impl RelocatedCode {
    fn as_program(&self) -> ProgramCode<'_> {
        let RelocatedCode { instructions, functions, types, license, .. } = self;
        ProgramCode { instructions, functions, types: types.as_fd(), license }
    }
}

/// The number of the function's type in the running kernel. It takes a while to find among some 100,000 types.
fn type_of_read_tag() -> Option<u32> {
    static TYPE: OnceLock<Option<u32>> = OnceLock::new();
    *TYPE.get_or_init(|| Btf::from_sys_fs().ok()?.id_by_type_name_kind(READ_TAG, BtfKind::Func).ok())
}

fn relocated(object: BpfObject, name: &str, maps: &Ebpf, read_tag: u32) -> Result<RelocatedCode, EbpfError> {
    let mut object = Object::parse(object.bytes())?;
    let types = load_types(&mut object)?;
    let (declared, maps) = (object.maps.clone(), descriptors(maps)?);
    let known = maps.iter().filter_map(|(name, fd)| Some((*name, fd.as_raw_fd(), declared.get(*name)?)));
    let sections: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
    object.relocate_maps(known, &sections)?;
    object.relocate_calls(&sections)?;
    // If it is missing, there are no instructions, which the kernel refuses.
    let program = object.programs.get(name).map(|program| (program.function_key(), program.license.clone()));
    let (function, license) = program.unwrap_or_default();
    let function = object.functions.get(&function);
    let (instructions, functions) = function.map(|code| with_room(code, read_tag)).unwrap_or_default();
    let _maps = maps.into_iter().map(|(_, fd)| fd).collect();
    Ok(RelocatedCode { instructions, functions, types, license, _maps })
}

/// The types of an object, in the kernel. Every kernel that can bind a program to an interface knows all kinds of types.
fn load_types(object: &mut Object) -> Result<OwnedFd, EbpfError> {
    let all = BtfFeatures::new(true, true, true, true, true, true, true, true);
    let types = object.fixup_and_sanitize_btf(&all)?.map(|types| types.to_bytes()).unwrap_or_default();
    bpf_call::load_types(&types).map_err(|error| failed("BPF_BTF_LOAD", error).into())
}

/// The instructions and functions of a program with spare room, and with this number of the kernel's function.
fn with_room(code: &Function, read_tag: u32) -> (Vec<bpf_insn>, Vec<bpf_func_info>) {
    let mut instructions = with_spare_room(&code.instructions);
    instructions.iter_mut().filter(|call| is_kernel_call(call)).for_each(|call| call.imm = read_tag as i32);
    (instructions, moved_functions(&code.func_info.func_info, code.instructions.len()))
}

/// Own descriptors of the maps, with their names.
fn descriptors(maps: &Ebpf) -> Result<Vec<(&str, OwnedFd)>, EbpfError> {
    let maps = maps.maps().filter_map(|(name, map)| Some((name, data(map)?)));
    let copied = maps.map(|(name, data)| Ok((name, data.fd().as_fd().try_clone_to_owned()?)));
    let copied: io::Result<Vec<_>> = copied.collect();
    copied.map_err(|io_error| MapError::from(SyscallError { call: "dup", io_error }).into())
}

fn is_kernel_call(instruction: &bpf_insn) -> bool {
    let is_call = u32::from(instruction.code) == BPF_JMP | BPF_CALL;
    is_call && u32::from(instruction.src_reg()) == BPF_PSEUDO_KFUNC_CALL
}

/// The maps of `bpf/forward.c`.
pub(super) fn data(map: &Map) -> Option<&MapData> {
    match map {
        Map::Array(data)
        | Map::PerCpuArray(data)
        | Map::DevMap(data)
        | Map::ArrayOfMaps(data)
        | Map::RingBuf(data) => Some(data),
        _ => None,
    }
}
