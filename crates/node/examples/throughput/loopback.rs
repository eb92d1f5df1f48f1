//! The system's TCP alone over loopback, between two threads that do nothing else: the limit of a path over it.

use crate::process;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

/// Length of a write, as nodes make it with long bundles, bytes.
const WRITE_BYTES: usize = 256 * 1024;
/// Length of a read, likewise, bytes.
const READ_BYTES: usize = 512 * 1024;

/// Carries as many bytes as bundles of this length would have.
pub(crate) fn run(count: usize, length: usize) -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let me = process::of(None);
    let (cpu, began) = (me.cpu_s(), Instant::now());
    let sending = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let data = vec![7; WRITE_BYTES];
        let mut left = count * length;
        while left > 0 {
            let written = stream.write(&data[..left.min(WRITE_BYTES)]).expect("the peer reads");
            left -= written;
        }
    });
    let (mut stream, _) = listener.accept().expect("it connects");
    let (mut buffer, mut received) = (vec![0; READ_BYTES], 0);
    while received < count * length {
        let some = stream.read(&mut buffer).expect("the peer writes");
        assert!(some > 0, "the peer writes all");
        received += some;
    }
    sending.join().expect("the sender is content");
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), me.cpu_s() - cpu);
    let rate = count as f64 / seconds;
    json!({
        "seconds": seconds,
        "bundles_per_s": rate,
        "mbit_per_s": rate * length as f64 * 8e-6,
        "cpu_us": cpu * 1e6 / count as f64,
        "peak_mb": me.peak_mb(),
        "stranded": 0,
    })
}
