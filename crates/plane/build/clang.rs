//! Compiles programs for the kernel's BPF machine; the build scripts of all crates that have some include this file.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// With the feature `bpf`: compiles every `bpf/*.c` into an object of its own in OUT_DIR. Without the feature it does
/// nothing: the default build needs no C compiler.
pub fn compile_programs() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return Ok(());
    }
    // The folder, so that a header or a new program is noticed too.
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    for file in std::fs::read_dir("bpf")? {
        let source = file?.path();
        if source.extension().is_some_and(|extension| extension == "c") {
            compile(&source, &out)?;
        }
    }
    Ok(())
}

/// Compiles with optimisation, which the verifier needs, and with type information (BTF), which describes the maps.
fn compile(source: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let name = source.file_stem().ok_or("a program has a name")?;
    let mut command = Command::new(&clang);
    command.args(["-target", target(), "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror"]);
    command.args(system_headers()).arg("-c").arg(source);
    command.arg("-o").arg(out.join(name).with_extension("o"));
    let done = command.output().map_err(|error| missing(&clang, &error))?;
    let messages = String::from_utf8_lossy(&done.stderr);
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{} was not compiled (headers are in Debian's libbpf-dev):\n{messages}", source.display())
        .into())
}

fn missing(clang: &OsString, error: &std::io::Error) -> String {
    let clang = clang.display();
    format!(
        "feature bpf: {clang}: {error}; install clang and libbpf-dev, or name a clang in the variable CLANG"
    )
}

fn target() -> &'static str {
    let big = std::env::var("CARGO_CFG_TARGET_ENDIAN").is_ok_and(|endian| endian == "big");
    if big { "bpfeb" } else { "bpfel" }
}

/// Debian's folder of `asm/` for the architecture, which clang does not search for the target bpf.
fn system_headers() -> Option<String> {
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").ok()?;
    let folder = format!("/usr/include/{architecture}-linux-gnu");
    Path::new(&folder).exists().then(|| format!("-idirafter{folder}"))
}
