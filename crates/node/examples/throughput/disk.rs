//! Throughput of the disk itself: append and sync, as two stores do.

use crate::folder;
use std::fs::File;
use std::io::Write;
use std::time::Instant;

/// Two threads append so many bytes in all, each to a file of its own, in batches of this length, and sync each batch;
/// MB/s of both.
pub(crate) fn mb_per_s(bytes: u64, batch_bytes: u64) -> f64 {
    let batch = vec![0x5a; batch_bytes.max(1) as usize];
    let each = (bytes / 2 / batch_bytes.max(1)).max(1);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for name in ["a", "b"] {
            let batch = &batch;
            scope.spawn(move || {
                let path = folder().join(format!("longwire-plain-{}-{name}", std::process::id()));
                let mut file = File::create(&path).expect("it is made");
                for _ in 0..each {
                    file.write_all(batch).and_then(|()| file.sync_data()).expect("it is written");
                }
                let _ = std::fs::remove_file(path);
            });
        }
    });
    (2 * each * batch.len() as u64) as f64 / began.elapsed().as_secs_f64() / 1e6
}
