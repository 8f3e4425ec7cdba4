//! The namespaces of one device, and the cores that its parts run on.

use std::path::Path;
use std::thread;

use super::counter::ReceiveCounter;
use super::error::DeviceBedError;
use crate::rates::{BedCores, hand_over, keep, receive_on};
use crate::settings::DutSettings;
use crate::testbed::{
    BEHIND_ROUTER, BESIDE, BESIDE_ROUTER, Namespace, TO_RECEIVER, Testbed, TestbedError, run,
};
use crate::veth::{RouterProcess, RouterProgram};

/// A bed with the place for a device, or with a cable in its place; all of it is removed when this value is dropped.
pub struct DeviceBed {
    pub testbed: Testbed,
    pub cores: BedCores,
    pub is_routed: bool,
    /// Why the lines of `start` failed.
    pub refused: Option<String>,
    /// Where packets come in: at the device, or at the receiver if there is no device.
    ingress: String,
}

impl DeviceBed {
    /// Makes a bed whose kernel forwards, and prepares the device: its redirects, and the lines of `start`.
    pub fn routed(number: usize, cores: BedCores, device: &DutSettings) -> Result<DeviceBed, DeviceBedError> {
        let mut testbed = Testbed::numbered(number)?;
        testbed.link(0)?;
        let ingress = rename(&testbed.router, "d0", number)?;
        // Interfaces have to have addresses for a router to forward there.
        testbed.router.batch(&format!(
            "address add 203.0.113.254/24 dev {ingress}\naddress add 2001:db8:2::ffff/64 dev {ingress} nodad\n"
        ))?;
        [&ingress, TO_RECEIVER]
            .into_iter()
            .try_for_each(|interface| keep_tags(&testbed.router, interface))?;
        poll(&testbed.router, TO_RECEIVER)?;
        poll(&testbed.receiver, BEHIND_ROUTER)?;
        hand_over(&testbed.generator, "g0")?;
        receive_on(&testbed.router, &ingress, cores.device)?;
        let mut bed = DeviceBed { testbed, cores, is_routed: true, refused: None, ingress };
        bed.set_redirects(device.redirects == Some(true))?;
        // What one kernel or tool lacks is no reason to measure none of the devices.
        let started = device.start.iter().flatten().try_for_each(|line| bed.shell(line));
        bed.refused = started.err().map(|error| match error {
            DeviceBedError::Testbed(TestbedError::Command { error, .. }) => format!("testbed.start: {error}"),
            other => other.to_string(),
        });
        Ok(bed)
    }

    /// Makes a bed whose generator and receiver share a cable. The receiver takes packets on the core of the devices.
    pub fn direct(number: usize, cores: BedCores) -> Result<DeviceBed, DeviceBedError> {
        let testbed = Testbed::numbered(number)?;
        let ingress = rename(&testbed.receiver, BESIDE_ROUTER, number)?;
        hand_over(&testbed.generator, BESIDE)?;
        receive_on(&testbed.receiver, &ingress, cores.device)?;
        Ok(DeviceBed { testbed, cores, is_routed: false, refused: None, ingress })
    }

    fn set_redirects(&self, on: bool) -> Result<(), DeviceBedError> {
        let all = "/proc/sys/net/ipv4/conf/*/send_redirects";
        self.shell(&format!("for setting in {all}; do echo {} > $setting; done", u8::from(on)))
    }

    /// Runs a line in the device's namespace. `$INGRESS` and `$EGRESS` are its interfaces.
    fn shell(&self, line: &str) -> Result<(), DeviceBedError> {
        let line = format!("INGRESS={} EGRESS={TO_RECEIVER}\n{line}", self.ingress);
        let arguments = ["netns", "exec", self.testbed.router.name(), "sh", "-ec", &line];
        Ok(run("ip", &arguments, "")?)
    }

    /// Starts this program as the device, on the device's core.
    pub fn start_router(
        &self,
        program: &Path,
        engine: &str,
        options: &[String],
    ) -> Result<RouterProcess, DeviceBedError> {
        let interfaces = format!("{},{TO_RECEIVER}", self.ingress);
        let router = RouterProgram { program, interfaces: &interfaces, engine, options };
        // The program inherits the core of the thread that starts it.
        let start = || {
            keep(None, self.cores.device)?;
            Ok(RouterProcess::start(&self.testbed.router, &router)?)
        };
        thread::scope(|scope| {
            scope.spawn(start).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The generator's interface.
    pub fn source(&self) -> &'static str {
        if self.is_routed { "g0" } else { BESIDE }
    }

    /// The receiver's interface.
    pub fn sink(&self) -> &str {
        if self.is_routed { BEHIND_ROUTER } else { &self.ingress }
    }

    /// Counts what the receiver gets.
    pub fn counter(&self) -> Result<ReceiveCounter, DeviceBedError> {
        ReceiveCounter::open(&self.testbed.receiver, self.sink())
    }
}

/// Gives an interface a name that no other one of the machine has: the kernel names its receiving thread for it.
fn rename(namespace: &Namespace, interface: &str, number: usize) -> Result<String, DeviceBedError> {
    // A thread's name has 15 letters, `napi/` and a dash among them.
    let letter = char::from(b'a' + (number % 26) as u8);
    let name = format!("i{}{letter}", std::process::id());
    let lines = format!("link set {interface} down\nlink set {interface} name {name}\nlink set {name} up\n");
    namespace.batch(&lines)?;
    poll(namespace, &name)?;
    Ok(name)
}

/// Makes a veth device poll (NAPI), without which it takes no redirected frames and has no thread.
fn poll(namespace: &Namespace, interface: &str) -> Result<(), DeviceBedError> {
    Ok(run("ip", &["netns", "exec", namespace.name(), "ethtool", "-K", interface, "gro", "on"], "")?)
}

/// Keeps tags in frames. Without its tag a frame of a VLAN could not be told from others by an XDP program.
fn keep_tags(namespace: &Namespace, interface: &str) -> Result<(), DeviceBedError> {
    Ok(run("ip", &["netns", "exec", namespace.name(), "ethtool", "-K", interface, "rxvlan", "off"], "")?)
}
