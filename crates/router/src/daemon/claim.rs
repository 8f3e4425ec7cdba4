//! One router an interface: with two, each would send on every packet that comes in.
//!
//! A router holds a Unix socket for each of its interfaces, whose abstract name belongs to the network namespace, and
//! is gone with the process however that ends.

use std::os::fd::OwnedFd;

use anyhow::Context;
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::process::geteuid;

use crate::error::BadInput;
use crate::log;

/// Routers that may be refused before nobody can ask any more: as many as the system lets wait.
const WAITING: i32 = i32::MAX;

/// Held as long as the router forwards.
pub struct Claims {
    _sockets: Vec<OwnedFd>,
}

/// Claims all interfaces, or says which one another router has.
pub fn claim(interfaces: &[String]) -> anyhow::Result<Claims> {
    let claims = interfaces.iter().filter_map(|name| claim_one(name).transpose());
    Ok(Claims { _sockets: claims.collect::<anyhow::Result<_>>()? })
}

fn claim_one(interface: &str) -> anyhow::Result<Option<OwnedFd>> {
    let address = SocketAddrUnix::new_abstract_name(format!("fullview forwards by {interface}").as_bytes())?;
    let socket = socket()?;
    match bind(&socket, &address) {
        Ok(()) => {
            listen(&socket, WAITING).context("a claim to an interface")?;
            Ok(Some(socket))
        }
        Err(Errno::ADDRINUSE) if is_a_routers(&address) => Err(BadInput(format!(
            "interface {interface}: another fullview forwards by it, and every packet would go out twice; end that one first"
        ))
        .into()),
        Err(error) => {
            log::line(&format!("interface {interface}: not known to be ours alone: {error}"));
            Ok(None)
        }
    }
}

/// Anybody may take a name; only what root or our own user holds is a router.
fn is_a_routers(address: &SocketAddrUnix) -> bool {
    let holder =
        socket().and_then(|socket| connect(&socket, address).and_then(|()| socket_peercred(&socket)));
    holder.is_ok_and(|holder| holder.uid.is_root() || holder.uid == geteuid())
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_one_router() {
        // Names are those of the whole host here, where other tests may run.
        let name = format!("fv{}", std::process::id());
        let first = claim(std::slice::from_ref(&name)).unwrap();
        for _ in 0..5 {
            let refused = claim(&["fv0".into(), name.clone()]).err().unwrap().to_string();
            assert!(refused.contains(&name) && refused.contains("another fullview"), "{refused}");
        }
        drop(first);
        claim(&[name]).unwrap();
    }
}
