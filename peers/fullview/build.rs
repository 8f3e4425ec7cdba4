//! Compiles the bed with the flags that l3fwd gets (`peers/dpdk/l3fwd/build.sh`).

fn main() {
    let files = ["bed.c", "frames.c", "inputs.c"].map(|file| format!("../bed/{file}"));
    cc::Build::new()
        .files(files)
        .std("gnu11")
        .flag("-march=native")
        .opt_level(3)
        .warnings(true)
        .compile("bed");
    println!("cargo::rerun-if-changed=../bed");
}
