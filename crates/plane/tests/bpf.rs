//! The BPF programs are compiled and embedded, and the kernel's verifier accepts them.
#![cfg(feature = "bpf")]
// Helpers of a test panic on failure, as the test itself does.
#![allow(clippy::unwrap_used)]

use aya::TestRun;
use aya::programs::TestRunOptions;
use fullview_plane::bpf;
use fullview_testnet::may_load_programs;

/// The XDP action that passes a frame.
const XDP_PASS: u32 = 2;

#[test]
fn the_smallest_program_runs_in_the_kernel() {
    if !may_load_programs() {
        return;
    }
    let mut pass = bpf::PASS.load().unwrap();
    let frame = [0; 60];
    let options = TestRunOptions { data_in: Some(&frame), ..TestRunOptions::default() };
    let result = pass.xdp("pass").unwrap().test_run(options).unwrap();
    assert_eq!(result.return_value, XDP_PASS);
}
