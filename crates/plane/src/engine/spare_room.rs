//! Room in which the verifier can make a bound program longer without moving it.
//!
//! The verifier replaces instructions by longer sequences, and moves a program that outgrows its pages. The kernel (seen in
//! Linux 6.12 and 6.18) keeps a pointer to the first place of a program that is bound to an interface, and follows it when
//! the interface goes: it then reads freed memory, and may stop with the lock of all network interfaces held.

use std::fs;

use aya_obj::generated::{BPF_ALU64, BPF_JEQ, BPF_JMP, BPF_K, BPF_MOV, bpf_func_info, bpf_insn};

/// A jump reaches this many instructions.
const MOST_SPARE: usize = i16::MAX as usize;

/// Puts as many instructions before a program as it has. The verifier sees that a constant condition jumps over them, and
/// removes them before it makes the program longer; the pages stay.
pub(super) fn with_spare_room(program: &[bpf_insn]) -> Vec<bpf_insn> {
    let spare = program.len().min(MOST_SPARE);
    let mut with_room = vec![clear_r0(); spare + 2];
    with_room[1] = bpf_insn { code: (BPF_JMP | BPF_JEQ | BPF_K) as u8, off: spare as i16, ..clear_r0() };
    with_room.extend_from_slice(program);
    with_room
}

/// Where functions begin in a program of so many instructions that was given room. The first one begins at the room.
pub(super) fn moved_functions(functions: &[bpf_func_info], program: usize) -> Vec<bpf_func_info> {
    let room = (program.min(MOST_SPARE) + 2) as u32;
    let moved = |from: u32| if from == 0 { 0 } else { from + room };
    functions
        .iter()
        .map(|function| bpf_func_info { insn_off: moved(function.insn_off), type_id: function.type_id })
        .collect()
}

/// `r0 = 0`; a program starts with nothing in this register.
fn clear_r0() -> bpf_insn {
    bpf_insn {
        code: (BPF_ALU64 | BPF_MOV | BPF_K) as u8,
        _bitfield_align_1: [],
        _bitfield_1: Default::default(),
        off: 0,
        imm: 0,
    }
}

/// Whether the kernel replaces constants in the programs of root (`net.core.bpf_jit_harden`), in a copy of each program.
/// Only the initial network namespace shows it.
pub(super) fn kernel_copies_programs() -> bool {
    const EVERYONE: &str = "2";
    fs::read_to_string("/proc/sys/net/core/bpf_jit_harden").is_ok_and(|level| level.trim() == EVERYONE)
}
