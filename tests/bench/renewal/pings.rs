//! Another client, which only sends pings.
//!
//! A thread and a plain socket: its times contain no work of the benchmark's own runtime.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// The pause between two pings: enough for thousands, and no load.
const PAUSE: Duration = Duration::from_micros(300);

#[allow(clippy::disallowed_methods, reason = "a thread of its own, and no runtime's")]
fn pause() {
    sleep(PAUSE);
}

pub(crate) struct Pings {
    ends: Arc<AtomicBool>,
    times: JoinHandle<Vec<f64>>,
}

impl Pings {
    pub(crate) fn begin(port: u16) -> Self {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("a socket");
        socket.set_nodelay(true).expect("a socket option");
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ends);
        let times = spawn(move || {
            let (mut times, mut reply) = (Vec::new(), [0; 7]);
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                socket.write_all(b"PING\r\n").expect("it writes");
                socket.read_exact(&mut reply).expect("it reads");
                times.push(began.elapsed().as_secs_f64() * 1_000_000.0);
                pause();
            }
            times
        });
        Self { ends, times }
    }

    /// The duration of each ping, in µs.
    pub(crate) fn end(self) -> Vec<f64> {
        self.ends.store(true, Ordering::Relaxed);
        self.times.join().expect("no panic")
    }
}
