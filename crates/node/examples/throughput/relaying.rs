//! A node that relays the bundles of others: sender and receiver are in another process, so that its processor time is its own.

use crate::path::{application, node, receive, send, settle};
use crate::process;
use crate::resting::ready;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Measures a node that relays this number of bundles; its store is in `memory` or on `disk`.
pub(crate) fn run(count: usize, length: usize, kind: &str) -> Value {
    let folder = crate::folder().join(format!("longwire-relay-{}", std::process::id()));
    let carol = node(&folder, "carol", kind, "listen = ['127.0.0.1:0']");
    let mut client = carol.client();
    application(ready(&mut client));
    let mut ends = Command::new(std::env::current_exe().expect("this program has a path"));
    ends.arg("ends").args([carol.addresses()[0].to_string(), count.to_string(), length.to_string()]);
    let mut ends = ends.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(ends.stdout.take().expect("a pipe")).lines();
    let mut next = || said.next().expect("the ends are there").expect("it is text");
    assert_eq!(next(), "up");
    let me = process::of(None);
    let cpu = me.cpu_s();
    ends.stdin.take().expect("a pipe").write_all(b"go\n").expect("the ends wait for it");
    let seconds: f64 = next().parse().expect("a number");
    let cpu = me.cpu_s() - cpu;
    ends.wait().expect("it ends");
    // The relay may not have heard yet that the receiver has the last ones.
    let (stranded, _) = application(settle(0, &mut [client]));
    let peak_mb = me.peak_mb();
    drop(carol);
    let _ = std::fs::remove_dir_all(folder);
    let rate = count as f64 / seconds;
    json!({
        "bundles_per_s": rate,
        "mbit_per_s": rate * length as f64 * 8e-6,
        "cpu_us": cpu * 1e6 / count as f64,
        "peak_mb": peak_mb,
        "seconds": seconds,
        "stranded": stranded,
    })
}

/// Sender and receiver, which begin with the first line of the input and print the seconds that they took.
pub(crate) fn ends(relay: SocketAddr, count: usize, length: usize) {
    let folder = crate::folder().join(format!("longwire-ends-{}", std::process::id()));
    let link = format!("link = [{{ name = 'carol', address = '{relay}', peer = 'dtn://carol/' }}]");
    let alice = node(
        &folder,
        "alice",
        "memory",
        &format!("{link}\nroute = [{{ to = 'dtn://bob/*', via = 'carol' }}]"),
    );
    let bob = node(&folder, "bob", "memory", &link);
    // The relay knows its neighbours once bundles have passed.
    let pass = |count| {
        let (sender, receiver) = (alice.client(), bob.client());
        let sending = std::thread::spawn(move || application(send(sender, "dtn://bob/sink", count, length)));
        application(receive(receiver, count, length));
        sending.join().expect("the sender is content");
    };
    pass(1);
    println!("up");
    std::io::stdin().read_line(&mut String::new()).expect("the input is text");
    let began = Instant::now();
    pass(count);
    println!("{}", began.elapsed().as_secs_f64());
    // One that is dropped ends like one that crashes, and the relay would keep what it has not heard of.
    alice.stop();
    bob.stop();
    let _ = std::fs::remove_dir_all(folder);
}
