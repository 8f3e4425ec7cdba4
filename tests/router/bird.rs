//! BIRD in a host of the test's own: its files in a folder that goes with it, ended by its process.

use fullview_testnet::{Node, Program, eventually, find};
use std::fs;
use std::path::Path;

pub struct Bird {
    folder: tempfile::TempDir,
    pub program: Program,
}

impl Bird {
    pub fn start(node: &Node, config: &str) -> Bird {
        let folder = tempfile::tempdir().unwrap();
        let config = format!("log stderr {{ warning, error, fatal, bug }};\nprotocol device {{}}\n{config}");
        fs::write(folder.path().join("bird.conf"), config).unwrap();
        let program = Bird::run(node, folder.path(), &[]);
        Bird { folder, program }
    }

    fn run(node: &Node, folder: &Path, options: &[&str]) -> Program {
        let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let (config, socket, pid) = (file("bird.conf"), file("socket"), file("pid"));
        node.start("bird", &[&["-f", "-c", &config, "-s", &socket, "-P", &pid], options].concat())
    }

    /// Ends it so that the other side keeps its routes, and starts it again.
    pub fn restart_gracefully(&mut self, node: &Node) {
        self.ask("graceful restart");
        assert!(eventually(|| !self.program.is_running()), "{}", self.program.output());
        self.program = Bird::run(node, self.folder.path(), &["-R"]);
    }

    pub fn ask(&self, question: &str) -> String {
        let socket = self.folder.path().join("socket");
        let mut birdc = std::process::Command::new(find("birdc").unwrap());
        let output = birdc.arg("-s").arg(socket).args(question.split(' ')).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until a table holds so many routes.
    pub fn wait_for(&self, table: &str, count: usize) {
        let words = format!("{count} of {count} routes");
        let there = eventually(|| self.ask(&format!("show route count table {table}")).contains(&words));
        assert!(there, "{}{}", self.ask("show route count"), self.program.output());
    }
}
