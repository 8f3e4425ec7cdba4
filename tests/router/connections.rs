//! Connections of TCP from one host to another.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use fullview_testnet::{ANSWER, Node};

/// Bytes that pass the connection each time: many segments, and windows that move.
const BYTES: usize = 100_000;

/// A connection to a host that sends everything back.
pub struct EchoedConnection {
    pub client: TcpStream,
    server: thread::JoinHandle<()>,
}

impl EchoedConnection {
    pub fn open(from: &Node, to: &Node, address: &'static str) -> EchoedConnection {
        let listener = to.run(move || TcpListener::bind(address).unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = vec![0; 10_000];
            while let Ok(length @ 1..) = stream.read(&mut bytes) {
                stream.write_all(&bytes[..length]).unwrap();
            }
        });
        let connect = move || TcpStream::connect_timeout(&address.parse().unwrap(), ANSWER);
        let client = from.run(connect).unwrap();
        client.set_read_timeout(Some(ANSWER)).unwrap();
        EchoedConnection { client, server }
    }

    /// Sends bytes and waits until they have come back.
    pub fn carries(&mut self) {
        let sent: Vec<u8> = (0..BYTES).map(|at| at as u8).collect();
        let mut writer = self.client.try_clone().unwrap();
        let copy = sent.clone();
        let writing = thread::spawn(move || writer.write_all(&copy));
        let mut back = vec![0; BYTES];
        self.client.read_exact(&mut back).unwrap();
        writing.join().unwrap().unwrap();
        assert!(back == sent);
    }

    /// The client's port.
    pub fn port(&self) -> u16 {
        self.client.local_addr().unwrap().port()
    }

    pub fn close(self) {
        drop(self.client);
        self.server.join().unwrap();
    }
}
