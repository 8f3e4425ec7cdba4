//! Compiles `bpf/*.c` for `src/bpf.rs` to embed.

#[path = "build/clang.rs"]
mod clang;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    clang::compile_programs()
}
