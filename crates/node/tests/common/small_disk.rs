//! Small file systems that become really full.

#![allow(dead_code, reason = "each test file uses a part of it")]

use crate::common::Place;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Size of the small file system.
pub(crate) const DISK_BYTES: u64 = 24 << 20;

/// Kind of file system.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// ext4 in a file, over a loop device.
    Loop,
    Tmpfs,
}

/// Waits until no process is being started for a disk, and lets none start: until it executes its program, it has copies of all
/// sockets of this process, so that nobody can listen where one of them was closed.
pub(crate) fn without_new_processes() -> MutexGuard<'static, ()> {
    static STARTING: Mutex<()> = Mutex::new(());
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A small file system that no other process sees: it disappears with the process that has mounted it.
pub(crate) struct SmallDisk {
    holder: Child,
    pub(crate) path: PathBuf,
    _place: Place,
}

impl SmallDisk {
    /// `None` if this machine does not permit it; prints the reason.
    pub(crate) fn new(title: &str, kind: Kind) -> Option<SmallDisk> {
        // Without administrator rights, a user namespace provides them within itself: enough for a tmpfs.
        let ways: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
        let mut troubles = Vec::new();
        for way in ways {
            match SmallDisk::in_namespace(title, kind, way) {
                Ok(disk) => return Some(disk),
                Err(trouble) => troubles.push(format!("unshare {}: {trouble}", way.join(" "))),
            }
        }
        eprintln!("skipped: no {kind:?} disk of its own here: {}", troubles.join("; ").replace('\n', " "));
        None
    }

    fn in_namespace(title: &str, kind: Kind, way: &[&str]) -> Result<SmallDisk, String> {
        let place = Place::new(&format!("disk-{title}-{kind:?}"));
        let (image, mounted) = (place.0.join("image"), place.0.join("disk"));
        fs::create_dir(&mounted).map_err(|error| error.to_string())?;
        let mount = match kind {
            Kind::Loop => {
                File::create(&image).and_then(|file| file.set_len(DISK_BYTES)).map_err(|e| e.to_string())?;
                r#"PATH=$PATH:/sbin:/usr/sbin; mkfs.ext4 -q -F -m 0 "$1" && mount -o loop "$1" "$2""#
            }
            Kind::Tmpfs => r#"mount -t tmpfs -o size="$3" longwire "$2""#,
        };
        let alone = without_new_processes();
        let mut holder = Command::new("unshare")
            .args(way)
            .args(["sh", "-c", &format!("{mount} && echo mounted && exec cat"), "sh"])
            .args([&image, &mounted])
            .arg(DISK_BYTES.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        drop(alone);
        let mut line = String::new();
        let read = BufReader::new(holder.stdout.take().expect("it is piped")).read_line(&mut line);
        if read.is_err() || line != "mounted\n" {
            let output = holder.wait_with_output().map_err(|error| error.to_string())?;
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        // The namespace is accessible through the process that lives in it.
        let relative = mounted.strip_prefix("/").map_err(|error| error.to_string())?;
        let path = PathBuf::from(format!("/proc/{}/root", holder.id())).join(relative);
        fs::read_dir(&path).map_err(|error| error.to_string())?;
        Ok(SmallDisk { holder, path, _place: place })
    }

    /// Another program uses all free space.
    pub(crate) fn fill(&self) -> Ballast {
        let path = self.path.join("ballast");
        let mut file = File::create(&path).expect("a file");
        for length in [1 << 20, 4096, 1] {
            let data = vec![1; length];
            let error = loop {
                if let Err(error) = file.write_all(&data).and_then(|()| file.sync_all()) {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::StorageFull);
        }
        Ballast(path)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// A file that uses all free space, until it is dropped.
pub(crate) struct Ballast(PathBuf);

impl Drop for Ballast {
    fn drop(&mut self) {
        fs::remove_file(&self.0).expect("it was there");
    }
}
