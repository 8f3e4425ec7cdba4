//! Operators use the router during the run: queries, metrics, traces, captures, another configuration.

use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use fullview_testnet::Program;
use serde_json::Value;

use super::place::Place;
use crate::control::{ask, connect};
use crate::exposition;
use crate::operations::{FULLVIEW, converse};

/// Returns the configuration, with the parts that may change while the router runs.
fn configuration(place: &Place, router: &str, live: &str) -> String {
    let folder = place.folder.path().display();
    let capture = if has_workers(router) {
        format!("[capture]\ndrops = \"{folder}/drops.pcapng\"\npackets-per-second = 200\n")
    } else {
        String::new()
    };
    format!(
        "[router]\ninterfaces = [\"eth1\", \"eth2\", \"eth3\"]\n{router}{live}\n\
         [control]\nsocket = \"{folder}/control.sock\"\n[metrics]\nlisten = \"{folder}/metrics.sock\"\n{capture}"
    )
}

/// Only workers choose an algorithm; in this run, packets are traced and captured with them too.
fn has_workers(router: &str) -> bool {
    !router.contains("engine")
}

/// Variants of the changeable parts.
const LIVE: [&str; 4] = [
    "algorithm = \"auto\"\n",
    "algorithm = \"dxr\"\n[interface.eth3]\nsource-check = \"strict\"\n",
    "algorithm = \"auto\"\n[framework]\nbucket-time-ms = 20\n[interface.eth1]\nsource-check = \"loose\"\n",
    "algorithm = \"poptrie\"\n[interface.eth3]\nsource-check = \"loose\"\n",
];

fn without_algorithm(live: &str) -> &str {
    live.split_once('\n').map_or("", |(_, rest)| rest)
}

/// A client that sends queries and makes the router reload its configuration.
pub struct Operator<'p> {
    place: &'p Place,
    /// The lines of `[router]` that never change.
    router: &'static str,
    pub answers: usize,
    pub busy: usize,
    pub reloads: usize,
}

impl<'p> Operator<'p> {
    pub fn new(place: &'p Place, router: &'static str) -> Operator<'p> {
        Operator { place, router, answers: 0, busy: 0, reloads: 0 }
    }

    pub fn write(&self, live: &str) -> PathBuf {
        let path = self.place.path("router.toml");
        std::fs::write(&path, configuration(self.place, self.router, live)).unwrap();
        path
    }

    fn socket(&self) -> PathBuf {
        self.place.path("control.sock")
    }

    /// Sends every kind of query on one connection.
    pub fn ask(&mut self) {
        let mut stream = connect(&self.socket());
        let traces = has_workers(self.router);
        for request in [
            "\"interfaces\"",
            "\"fib\"",
            "\"neighbors\"",
            "\"counters\"",
            r#"{"events":{"last":50}}"#,
            r#"{"routes":{"table":254,"within":"0.0.0.0/0"}}"#,
            r#"{"routes":{"table":254,"within":"2001:db8::/32","limit":300}}"#,
            r#"{"path":{"address":"20.0.7.70","table":254}}"#,
            r#"{"path":{"address":"2001:db8:2007::1","table":254}}"#,
            r#"{"watch":{"count":20,"match":"udp and dst 20.0.0.0/8"}}"#,
            "\"noted\"",
            r#"{"watch":{"count":20,"drops-only":true}}"#,
            "\"noted\"",
        ]
        .into_iter()
        .filter(|request| traces || !["watch", "noted"].iter().any(|word| request.contains(word)))
        {
            self.exchange(&mut stream, request);
        }
    }

    fn exchange(&mut self, stream: &mut BufReader<UnixStream>, request: &str) {
        let answer = ask(stream, request);
        match &answer["error"] {
            Value::Null => self.answers += 1,
            Value::String(text) if text.contains("busy") => self.busy += 1,
            error => panic!("{request}: {error}"),
        }
    }

    /// Scrapes the metrics, whose form has to be right, and connects as clients that break the rules.
    pub fn scrape(&mut self) {
        let answer = converse(&self.place.path("metrics.sock"), b"GET /metrics HTTP/1.1\r\n\r\n", true);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
        if head.contains("503") && body.contains("busy") {
            self.busy += 1;
            return;
        }
        exposition::check(body);
        assert!(converse(&self.socket(), b"{\"routes\":7}\n", true).contains("not a request"));
        drop(UnixStream::connect(self.socket()).unwrap());
    }

    /// Runs the program's commands as clients.
    pub fn trace(&self) {
        let (control, asked) = (self.socket(), self.place.path("asked.pcapng"));
        for arguments in [
            &["show", "counters"][..],
            &["trace", "--count", "5"],
            &["capture-drops", "--count", "5", "--write", asked.to_str().unwrap()],
        ]
        .into_iter()
        .filter(|arguments| has_workers(self.router) || arguments[0] == "show")
        {
            let mut command = assert_cmd::Command::new(FULLVIEW);
            command.args(arguments).arg("--control").arg(&control);
            if arguments[0] != "show" {
                command.args(["--seconds", "2"]);
            }
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            // Routes change between a packet and its explanation. The trace reports that, and it is no error here.
            let is_fine = output.status.success()
                || said.contains("busy")
                || said.contains("not forwarded as explained");
            assert!(is_fine, "{arguments:?}: {said}");
        }
    }

    /// Loads another configuration by a signal or a request; a wrong one changes nothing.
    pub fn reload(&mut self, program: &Program) {
        self.reloads += 1;
        let live = LIVE[self.reloads % LIVE.len()];
        self.write(if has_workers(self.router) { live } else { without_algorithm(live) });
        if self.reloads.is_multiple_of(2) {
            return program.signal("HUP");
        }
        let answer = converse(&self.socket(), b"\"reload\"\n", true);
        assert!(answer.contains("is in force") || answer.contains("busy"), "{answer}");
        self.write("[nonsense]\n");
        let answer = converse(&self.socket(), b"\"reload\"\n", true);
        assert!(answer.contains("nonsense") || answer.contains("busy"), "{answer}");
    }
}
