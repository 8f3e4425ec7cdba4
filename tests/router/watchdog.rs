//! A service manager that watches the router is told that it works: also by a process that took over, and not while a worker
//! hangs.

use std::os::unix::net::UnixDatagram;
use std::thread;
use std::time::Duration;

use fullview_testnet::{Program, StoppedThread, eventually, may_run};

use crate::control::Control;
use crate::lab::Lab;

/// The time after which the manager would restart the service.
const TIMEOUT: Duration = Duration::from_millis(400);

/// After this time a worker without a round is taken for one that hangs.
const SILENCE: Duration = Duration::from_millis(1500);

/// What a service manager is told.
struct Manager {
    folder: tempfile::TempDir,
    socket: UnixDatagram,
}

impl Manager {
    fn new() -> Manager {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_nonblocking(true).unwrap();
        Manager { folder, socket }
    }

    /// Starts a router with these variables beside the name of the socket.
    fn start(&self, lab: &Lab, variables: &[&str], options: &[&str]) -> Program {
        let socket = format!("NOTIFY_SOCKET={}", self.folder.path().join("notify").display());
        let program = [env!("CARGO_BIN_EXE_fullview"), "forward", "--interfaces", "eth1,eth2"];
        lab.router.start("env", &[&[socket.as_str()], variables, &program, options].concat())
    }

    /// Whether it is told from now on that the service works.
    fn is_told(&self) -> bool {
        self.forget();
        eventually(|| self.next().is_some_and(|message| message == "WATCHDOG=1"))
    }

    /// Whether it is told nothing while it would have been told several times.
    fn is_told_nothing(&self) -> bool {
        self.forget();
        thread::sleep(TIMEOUT * 3);
        self.next().is_none()
    }

    fn forget(&self) {
        while self.next().is_some() {}
    }

    fn next(&self) -> Option<String> {
        let mut message = [0; 100];
        let len = self.socket.recv(&mut message).ok()?;
        Some(String::from_utf8_lossy(&message[..len]).into_owned())
    }
}

fn timeout() -> String {
    format!("WATCHDOG_USEC={}", TIMEOUT.as_micros())
}

#[test]
fn the_manager_is_told_that_the_router_works_unless_a_worker_hangs() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    let (lab, manager) = (Lab::new(), Manager::new());
    let mut program = manager.start(&lab, &[&timeout()], &["--engine", "threads"]);
    assert!(manager.is_told() && manager.is_told(), "{}", program.output());
    let worker = StoppedThread::of(program.id(), "worker");
    program.wait_for("a worker has begun no round for a second");
    assert!(manager.is_told_nothing(), "{}", program.output());
    drop(worker);
    assert!(manager.is_told(), "{}", program.output());
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
}

/// Its workers have ended, and hang not.
#[test]
fn the_manager_is_told_that_a_router_without_interfaces_works() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    let (lab, manager) = (Lab::new(), Manager::new());
    let program = manager.start(&lab, &[&timeout()], &["--engine", "threads"]);
    assert!(manager.is_told(), "{}", program.output());
    ["eth1", "eth2"].iter().for_each(|name| _ = lab.router.ip(&format!("link del {name}")));
    thread::sleep(SILENCE);
    assert!(manager.is_told() && manager.is_told(), "{}", program.output());
    assert!(!program.output().contains("a worker has begun no round"), "{}", program.output());
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
}

/// The manager tells the timeout to processes only that it starts as main ones.
#[test]
fn a_process_that_takes_over_tells_the_manager_too() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    let (lab, manager, control) = (Lab::new(), Manager::new(), Control::new());
    let options = [&control.options()[..], &["--engine", "tc", "--takeover"]].concat();
    let mut first = manager.start(&lab, &[&timeout()], &options);
    assert!(manager.is_told(), "{}", first.output());
    for _ in 0..2 {
        let second = manager.start(&lab, &[], &options);
        assert!(eventually(|| !first.is_running()), "{}", second.output());
        assert!(manager.is_told(), "{}", second.output());
        first = second;
    }
}
