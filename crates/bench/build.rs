//! Compiles `bpf/testbed.c` for the test bed to embed.

#[path = "../plane/build/clang.rs"]
mod clang;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    clang::compile_programs()
}
