//! Hosts of a test's own: each a network namespace that a thread holds. It goes with the thread and the programs that
//! were started in it, however they end; no name is left behind.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fullview_plane::wire::ethernet::Mac;

/// Whether this process may make namespaces and finds these programs. If not, the test says so and is skipped; in CI it
/// fails.
pub fn may_run(programs: &[&str]) -> bool {
    let missing: Vec<&&str> = programs.iter().filter(|program| find(program).is_none()).collect();
    let root = rustix::process::geteuid().is_root();
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(
        !ci || root && missing.is_empty(),
        "in CI nothing may be skipped: root {root}, missing {missing:?}"
    );
    if !root {
        eprintln!("skipped: needs root, to make network namespaces");
    } else if !missing.is_empty() {
        eprintln!("skipped: {missing:?} not installed");
    }
    root && missing.is_empty()
}

/// Where a program is: in the path, or where Debian has daemons.
pub fn find(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let daemons = ["/usr/sbin", "/usr/lib/frr"].map(std::path::PathBuf::from);
    let mut folders = std::env::split_paths(&path).chain(daemons);
    folders.find_map(|folder| Some(folder.join(program)).filter(|path| path.exists()))
}

type Job = Box<dyn FnOnce() + Send>;

pub struct Node {
    thread_id: i32,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    /// A host with nothing but a loopback interface. It sends nothing by itself, and does not forward.
    pub fn new() -> Node {
        let (jobs, work) = channel::<Job>();
        let (tell, told) = channel();
        let thread = thread::spawn(move || {
            enter_new_namespace();
            tell.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            work.into_iter().for_each(|job| job());
        });
        let thread_id = told.recv().expect("a namespace of its own");
        let node = Node { thread_id, jobs: Some(jobs), thread: Some(thread) };
        node.ip("link set lo up");
        node
    }

    /// By which number `ip link set netns` finds it.
    pub fn id(&self) -> i32 {
        self.thread_id
    }

    /// Does something there: sockets opened and programs started belong to this host.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = channel();
        let job: Job = Box::new(move || {
            let _ = tell.send(std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)));
        });
        self.jobs.as_ref().unwrap().send(job).unwrap();
        told.recv().unwrap().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Runs `ip` with these arguments, written as one line; it has to succeed.
    pub fn ip(&self, arguments: &str) -> String {
        self.command(&format!("ip {arguments}"))
    }

    /// Runs a program, written as one line, which has to succeed; what it printed.
    pub fn command(&self, line: &str) -> String {
        let output = self.try_command(line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn try_command(&self, line: &str) -> Output {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        self.run(move || Command::new(find(&words[0]).unwrap()).args(&words[1..]).output().unwrap())
    }

    /// The address of one of its interfaces.
    pub fn mac(&self, interface: &str) -> Mac {
        let shown = self.ip(&format!("-o link show {interface}"));
        let mac = shown.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next());
        mac.and_then(|mac| mac.parse().ok()).unwrap_or_else(|| panic!("{shown}"))
    }

    /// By which `ip link` finds its namespace.
    pub fn number(&self) -> i32 {
        self.thread_id
    }

    pub fn sysctl(&self, name: &str, value: &str) {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let value = value.to_owned();
        self.run(move || std::fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}")));
    }

    /// Starts a program that ends with this host at the latest.
    pub fn start(&self, program: &str, arguments: &[&str]) -> Program {
        self.start_saying(program, arguments, Stdio::piped())
    }

    /// One whose standard error goes elsewhere.
    pub fn start_unread(&self, program: &str, arguments: &[&str], pipe: std::io::PipeWriter) -> Program {
        self.start_saying(program, arguments, pipe.into())
    }

    fn start_saying(&self, program: &str, arguments: &[&str], stderr: Stdio) -> Program {
        let program = find(program).unwrap_or_else(|| program.into());
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let child = self.run(move || {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL"]).arg(program).args(arguments);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap()
        });
        Program::new(child)
    }

    /// A socket of this host. One that was just closed may still be there: a program that another test is about to start
    /// has copies of all file descriptors until it runs.
    pub fn udp(&self, address: &str) -> UdpSocket {
        let mut bound = self.try_udp(address);
        eventually(|| {
            let in_use = matches!(&bound, Err(error) if error.kind() == ErrorKind::AddrInUse);
            if in_use {
                bound = self.try_udp(address);
            }
            !in_use
        });
        let socket = bound.unwrap_or_else(|error| panic!("{address}: {error}"));
        socket.set_read_timeout(Some(ANSWER)).unwrap();
        socket
    }

    fn try_udp(&self, address: &str) -> std::io::Result<UdpSocket> {
        let address = address.to_owned();
        self.run(move || UdpSocket::bind(&address))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.jobs.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What is started from this thread is in the namespace too.
#[allow(deprecated)] // it is unsafe only where file descriptors or memory are unshared
fn enter_new_namespace() {
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNET).unwrap();
    let set = |setting: &str, value: &str| std::fs::write(format!("/proc/sys/net/{setting}"), value).unwrap();
    set("ipv6/conf/all/forwarding", "0");
    // IPv4 begins with what the host has, whatever that is: the kernel's own settings are meant.
    for setting in [
        "forwarding",
        "rp_filter",
        "arp_ignore",
        "arp_filter",
        "arp_announce",
        "arp_notify",
        "accept_local",
        "drop_gratuitous_arp",
        "ignore_routes_with_linkdown",
    ] {
        ["all", "default"].iter().for_each(|of| set(&format!("ipv4/conf/{of}/{setting}"), "0"));
    }
    // Otherwise addresses cannot be used before nobody has objected to them for seconds.
    set("ipv6/conf/default/accept_dad", "0");
}

/// A cable between two hosts.
pub fn cable(one: (&Node, &str), other: (&Node, &str)) {
    let ((left, left_name), (right, right_name)) = (one, other);
    left.ip(&format!("link add {left_name} type veth peer name {right_name} netns {}", right.number()));
    left.ip(&format!("link set dev {left_name} up"));
    right.ip(&format!("link set dev {right_name} up"));
}

/// A program at work, and what it prints.
pub struct Program {
    child: Child,
    readers: Vec<JoinHandle<()>>,
    output: std::sync::Arc<std::sync::Mutex<String>>,
}

impl Program {
    fn new(mut child: Child) -> Program {
        let output = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
        let stdout: Box<dyn Read + Send> = Box::new(child.stdout.take().unwrap());
        let stderr = child.stderr.take().map(|stderr| Box::new(stderr) as Box<dyn Read + Send>);
        let streams = [Some(stdout), stderr].into_iter().flatten();
        let read = |stream| {
            let output = std::sync::Arc::clone(&output);
            thread::spawn(move || copy(stream, &output))
        };
        let readers = streams.map(read).collect();
        Program { child, readers, output }
    }

    pub fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has printed these words.
    pub fn wait_for(&mut self, words: &str) {
        let said = eventually(|| self.output().contains(words) || !self.is_running());
        assert!(said && self.output().contains(words), "no {words:?} in: {}", self.output());
    }

    /// Whether it is still at work. If not, all that it printed is there.
    pub fn is_running(&mut self) -> bool {
        let is_running = self.child.try_wait().unwrap().is_none();
        if !is_running {
            self.readers.drain(..).for_each(|reader| reader.join().unwrap());
        }
        is_running
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    /// Has it end, and returns its exit code and all that it printed.
    pub fn end(mut self, signal: &str) -> (Option<i32>, String) {
        self.signal(signal);
        let code = self.child.wait().unwrap().code();
        self.readers.drain(..).for_each(|reader| reader.join().unwrap());
        (code, self.output())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// By whole lines: the other stream's would come between the parts of one.
fn copy(stream: Box<dyn Read + Send>, output: &std::sync::Mutex<String>) {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    while let Ok(1..) = stream.read_until(b'\n', &mut line) {
        output.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
}

/// Many times what anything here takes, on a busy machine too; only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_secs(240);

/// How long a packet may be on its way, on a busy machine too.
pub const ANSWER: Duration = Duration::from_secs(60);

/// Asks until it is so, or patience ends; returns whether it was.
pub fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if is_so() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    is_so()
}
