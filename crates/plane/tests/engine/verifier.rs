//! What the programs cost the kernel's verifier, which gives up after a million instructions.

use fullview_plane::engine::Engine;

use super::dut::{Program, at_each_hook};

/// Another version of the kernel may need several times as many.
const MOST: u32 = 200_000;

#[test]
fn the_programs_are_far_from_the_limit_of_the_verifier() {
    at_each_hook(|hook| {
        let mut engine = Engine::with_room(1).unwrap();
        let info = match hook.program(&mut engine) {
            Program::Xdp(program) => program.info(),
            Program::Tcx(program) => program.info(),
        };
        let verified = info.unwrap().verified_instruction_count().expect("Linux 5.16 tells it");
        println!("{hook:?}: {verified} instructions");
        assert!(verified < MOST, "{hook:?}: {verified} instructions");
    });
}
