//! Hosts with Debian's sshd, each in a namespace. Keys, host keys and configurations are in a temporary folder.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use fullview_testnet::{Node, Program, cable, eventually, find};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A host.
pub struct SshNode {
    pub node: Node,
    pub name: String,
    address: String,
    _sshd: Option<Program>,
}

/// Hosts, and the namespace from which they are reached.
pub struct SshHosts {
    pub control: Node,
    pub hosts: Vec<SshNode>,
    pub folder: TempDir,
}

impl SshHosts {
    /// Makes hosts with these names, and starts their servers.
    pub fn start(names: &[&str]) -> SshHosts {
        let (control, folder) = (Node::new(), tempfile::tempdir().unwrap());
        // What sshd wants on every machine, whether or not its service runs.
        fs::create_dir_all("/run/sshd").unwrap();
        key(&folder.path().join("id"));
        fs::copy(folder.path().join("id.pub"), folder.path().join("authorized_keys")).unwrap();
        let hosts = (1..).zip(names).map(|(number, name)| SshNode::new(&control, number, name)).collect();
        let mut hosts = SshHosts { control, hosts, folder };
        hosts.write_config();
        (0..names.len()).for_each(|host| hosts.start_server(host));
        hosts.remember_keys();
        hosts
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn host(&self, name: &str) -> &SshNode {
        self.hosts.iter().find(|host| host.name == name).unwrap()
    }

    fn write_config(&self) {
        let mut text = String::new();
        for host in &self.hosts {
            text += &format!("Host {}\n HostName {}\n", host.name, host.address);
        }
        let folder = self.folder.path().display();
        text += &format!(
            "Host *\n User root\n IdentityFile {folder}/id\n IdentitiesOnly yes\n GlobalKnownHostsFile /dev/null\n \
             UserKnownHostsFile {folder}/known_hosts\n"
        );
        fs::write(self.path("ssh_config"), text).unwrap();
    }

    /// Ends everything on a host, its server included, and starts the server again.
    pub fn restart(&mut self, name: &str) {
        let host = self.hosts.iter().position(|host| host.name == name).unwrap();
        self.hosts[host]._sshd = None;
        for (id, _) in processes_in(&self.hosts[host].node) {
            // It may have ended with the one before.
            let _ = kill_process(Pid::from_raw(id).unwrap(), Signal::KILL);
        }
        self.start_server(host);
    }

    fn start_server(&mut self, host: usize) {
        let folder = self.folder.path();
        let host = &mut self.hosts[host];
        let host_key = folder.join(format!("{}-key", host.name));
        if !host_key.exists() {
            key(&host_key);
        }
        let config = folder.join(format!("{}-sshd", host.name));
        let text = format!(
            "ListenAddress {}\nHostKey {}\nAuthorizedKeysFile {}/authorized_keys\nStrictModes no\nPidFile none\nUsePAM no\n\
             PermitRootLogin prohibit-password\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n",
            host.address,
            host_key.display(),
            folder.display()
        );
        fs::write(&config, text).unwrap();
        let mut server = host.node.start("sshd", &["-D", "-e", "-f", config.to_str().unwrap()]);
        server.wait_for("Server listening");
        host._sshd = Some(server);
    }

    fn remember_keys(&self) {
        let line = |host: &SshNode| {
            let key = fs::read_to_string(self.path(&format!("{}-key.pub", host.name))).unwrap();
            format!("{} {key}", host.address)
        };
        fs::write(self.path("known_hosts"), self.hosts.iter().map(line).collect::<String>()).unwrap();
    }

    /// Gives a host another key than the known one.
    pub fn forge_key(&self, name: &str) {
        let host = self.host(name);
        key(&self.path("forged"));
        let forged = fs::read_to_string(self.path("forged.pub")).unwrap();
        let known = fs::read_to_string(self.path("known_hosts")).unwrap();
        let changed = known.lines().map(|line| match line.starts_with(&format!("{} ", host.address)) {
            true => format!("{} {forged}", host.address),
            false => format!("{line}\n"),
        });
        fs::write(self.path("known_hosts"), changed.collect::<String>()).unwrap();
    }

    /// Whether nothing runs on the hosts but their servers.
    pub fn are_idle(&self) -> bool {
        self.hosts.iter().all(|host| host.work().is_empty())
    }

    /// Waits until nothing runs there.
    pub fn assert_idle(&self) {
        let idle = eventually(|| self.are_idle());
        let work: Vec<Vec<String>> = self.hosts.iter().map(SshNode::work).collect();
        assert!(idle, "still running: {work:#?}");
    }
}

impl SshNode {
    fn new(control: &Node, number: usize, name: &str) -> SshNode {
        let node = Node::new();
        let (near, address) = (format!("m{number}"), format!("10.99.{number}.2"));
        cable((control, &near), (&node, "mgmt"));
        control.ip(&format!("address add 10.99.{number}.1/24 dev {near}"));
        node.ip(&format!("address add {address}/24 dev mgmt"));
        SshNode { node, name: name.into(), address, _sshd: None }
    }

    /// The commands that run there, except for the server and its sessions.
    pub fn work(&self) -> Vec<String> {
        let mut commands = commands_in(&self.node);
        commands.retain(|command| !command.contains("sshd"));
        commands
    }

    /// Kills what runs there as a crash would, except for the server and its sessions.
    pub fn crash_work(&self) {
        let all = processes_in(&self.node).into_iter();
        for (id, _) in all.filter(|(_, command)| !command.contains("sshd")) {
            // It may have ended with the one before.
            let _ = kill_process(Pid::from_raw(id).unwrap(), Signal::KILL);
        }
    }

    /// A setting of an interface.
    pub fn setting(&self, interface: &str, name: &str) -> String {
        let path = format!("/proc/sys/net/ipv4/conf/{interface}/{name}");
        self.node.run(move || fs::read_to_string(path).unwrap().trim().to_owned())
    }
}

/// The commands of all processes in a namespace.
pub fn commands_in(node: &Node) -> Vec<String> {
    processes_in(node).into_iter().map(|(_, command)| command).collect()
}

/// The same with their numbers.
pub fn processes_in(node: &Node) -> Vec<(i32, String)> {
    let inode = |path: PathBuf| fs::metadata(path).map(|metadata| metadata.ino()).ok();
    let own = node.run(move || inode("/proc/thread-self/ns/net".into())).unwrap();
    let this = std::process::id().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ours = processes.filter(|process| {
        let is_process =
            process.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok() && name != this);
        is_process && inode(process.path().join("ns/net")) == Some(own)
    });
    let command = |process: fs::DirEntry| {
        let bytes = fs::read(process.path().join("cmdline")).ok().filter(|bytes| !bytes.is_empty())?;
        let id = process.file_name().to_str()?.parse().ok()?;
        Some((id, String::from_utf8_lossy(&bytes).replace('\0', " ")))
    };
    ours.filter_map(command).collect()
}

fn key(path: &Path) {
    let done = Command::new(find("ssh-keygen").unwrap())
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
        .arg(path)
        .status();
    assert!(done.unwrap().success());
}
