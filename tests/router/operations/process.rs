//! The router as a process: its standard error, its user, and its confinement.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use fullview_testnet::{cable, eventually, has, may_run};

use super::{FULLVIEW, Operated, may_operate};
use crate::lab::Lab;

#[test]
fn a_full_standard_error_does_not_stop_the_router() {
    if !may_operate() {
        return;
    }
    let (lab, folder) = (Lab::new(), tempfile::tempdir().unwrap());
    let socket = folder.path().join("control.sock");
    let (unread, full) = std::io::pipe().unwrap();
    let mut filler = full.try_clone().unwrap();
    // This thread keeps the pipe full until its reading end is closed.
    let filling = std::thread::spawn(move || while filler.write_all(&[b'.'; 4096]).is_ok() {});
    let options = ["forward", "--interfaces", "eth1,eth2", "--control", socket.to_str().unwrap()];
    let router = lab.router.start_with_stderr(FULLVIEW, &options, full);
    assert!(eventually(|| UnixStream::connect(&socket).is_ok()), "it does not listen");
    let operated = Operated { lab, router, folder };
    for _ in 0..3 {
        operated.lab.router.ip("link set eth2 down");
        let is_up = |up: bool| eventually(|| operated.json("interfaces")[1]["up"] == up);
        assert!(is_up(false), "{}", operated.ask("show interfaces"));
        operated.lab.router.ip("link set eth2 up");
        assert!(is_up(true), "{}", operated.ask("show interfaces"));
        operated.router.signal("HUP");
    }
    operated.forwards();
    assert_eq!(operated.router.end("TERM").0, Some(0));
    drop(unread);
    filling.join().unwrap();
}

/// The rights that remain have to be enough, also to open ports later.
#[test]
fn another_user_forwards_as_well() {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&["--user", "nobody", "--metrics", "127.0.0.1:0"]);
    operated.forwards();
    let nobody = operated.lab.router.command("id -u nobody").trim().to_owned();
    let status = std::fs::read_to_string(format!("/proc/{}/status", operated.router.id())).unwrap();
    let users = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    assert_eq!(users.split_whitespace().skip(1).collect::<Vec<_>>(), [nobody.as_str(); 4]);
    operated.lab.router.ip("link del eth2");
    cable((&operated.lab.right, "eth0"), (&operated.lab.router, "eth2"));
    operated.lab.router.ip("addr add 10.0.2.1/24 dev eth2");
    operated.lab.right.ip("addr add 10.0.2.2/24 dev eth0");
    operated.forwards();
    assert!(operated.ask("show counters").contains("forwarded"));
    let (code, said) = operated.router.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    // As another user, too, it ends with the thread that started it: here the one of the host's namespace.
    let mut program = operated.lab.forward(&["--user", "nobody"]);
    assert!(program.is_running());
    drop(operated.lab);
    assert!(eventually(|| !program.is_running()));
}

/// Its lowest priority comes before all threads that are not in real time.
#[test]
fn the_thread_that_watches_links_runs_in_real_time() {
    if !may_operate() || !may_run(&["chrt"]) {
        return;
    }
    for options in [&[][..], &["--user", "nobody"]] {
        let operated = Operated::start(options);
        let may = operated.lab.router.try_command("chrt --fifo 1 true").status.success();
        if !has(may, "real time: the cgroup of this process has none") {
            return;
        }
        let tasks = std::fs::read_dir(format!("/proc/{}/task", operated.router.id())).unwrap();
        let mut tasks = tasks.map(|task| task.unwrap().path());
        let of_links = |task: &PathBuf| std::fs::read_to_string(task.join("comm")).unwrap() == "links\n";
        let task = tasks.find(of_links).unwrap_or_else(|| panic!("{}", operated.router.output()));
        let policy =
            || operated.lab.router.command(&format!("chrt -p {}", task.file_name().unwrap().display()));
        let is_first = || policy().contains("SCHED_FIFO") && policy().contains("priority: 1\n");
        assert!(eventually(is_first), "{}: {}", policy(), operated.router.output());
    }
}

#[test]
fn a_confined_router_has_what_it_needs_and_no_more() {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&["--metrics", "127.0.0.1:0"]);
    operated.forwards();
    // Where the limit could not be raised, the thread that watches links needs a capability.
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", operated.router.id())).unwrap();
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max realtime priority")).unwrap();
    let nice = if limit.trim().starts_with('1') { 0 } else { 1 << 23 };
    // `setpriv` executes the router in its own process, so the child's threads are those of the router.
    let tasks = std::fs::read_dir(format!("/proc/{}/task", operated.router.id())).unwrap();
    let statuses: Vec<String> =
        tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).unwrap()).collect();
    assert!(statuses.len() >= 4, "{}", statuses.len());
    for status in statuses {
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        assert_eq!((field("NoNewPrivs:"), field("Seccomp:")), ("1".into(), "2".into()), "{status}");
        let capabilities = u64::from_str_radix(&field("CapEff:"), 16).unwrap();
        const NET_ADMIN_RAW_BPF_PERFMON_IPC_LOCK: u64 = 1 << 12 | 1 << 13 | 1 << 39 | 1 << 38 | 1 << 14;
        assert_eq!(capabilities & !(NET_ADMIN_RAW_BPF_PERFMON_IPC_LOCK | nice), 0, "{status}");
        assert_eq!(field("CapEff:"), field("CapPrm:"));
    }
    operated.forwards();
    assert_eq!(operated.router.end("INT").0, Some(0));
}
