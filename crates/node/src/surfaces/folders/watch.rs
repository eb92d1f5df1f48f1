//! Detection of files at rest in a folder.
//!
//! Where the system reports that a file was moved in or closed after writing (inotify), that decides, and a file that is being
//! written waits however long its writer pauses. Files without such an event (they existed before, or come over a network file
//! system) must keep their length and modification time for a while.

use futures_core::Stream;
use inotify::{EventMask, EventOwned, EventStream, Inotify, WatchMask};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

/// Maximum files examined in one round; the others follow in the next ones.
const FILES_MAX: usize = 10_000;
/// Maximum events taken in one round.
const EVENTS_MAX: usize = 1024;
/// Extensions of files that programs are still writing.
const UNFINISHED: [&str; 5] = ["part", "tmp", "crdownload", "filepart", "swp"];

/// Properties of a file at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileSnapshot {
    pub(super) length: u64,
    pub(super) changed: Option<SystemTime>,
}

impl FileSnapshot {
    pub(super) fn of(about: &fs::Metadata) -> FileSnapshot {
        FileSnapshot { length: about.len(), changed: about.modified().ok() }
    }
}

#[derive(Default)]
pub(super) struct FolderWatch {
    folder: PathBuf,
    settle: Duration,
    events: Option<EventStream<[u8; 4096]>>,
    /// Files moved in or closed after writing.
    finished: BTreeSet<OsString>,
    /// Files written to and not closed since.
    unfinished: BTreeSet<OsString>,
    /// Properties of other files, and since when they are unchanged.
    looks: BTreeMap<OsString, (FileSnapshot, Instant)>,
}

impl FolderWatch {
    pub(super) fn new(folder: &Path, settle: Duration) -> FolderWatch {
        let mut watch = FolderWatch { folder: folder.to_owned(), settle, ..FolderWatch::default() };
        // Without events, the periodic checks are enough.
        watch.events = watch.listen().ok();
        watch
    }

    /// Changes the time without changes after which a file without events is at rest.
    pub(super) fn set_settle(&mut self, settle: Duration) {
        self.settle = settle;
    }

    fn listen(&self) -> io::Result<EventStream<[u8; 4096]>> {
        let inotify = Inotify::init()?;
        let mask = WatchMask::CLOSE_WRITE | WatchMask::MOVED_TO | WatchMask::MODIFY | WatchMask::ONLYDIR;
        inotify.watches().add(&self.folder, mask)?;
        inotify.into_event_stream([0; 4096])
    }

    /// Waits for events in the folder and takes all that are there, up to a limit, so that a writer of many small pieces costs
    /// few rounds; for ever where the system reports none.
    pub(super) async fn events(&mut self) {
        poll_fn(|context| self.poll_events(context)).await;
    }

    fn poll_events(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut heard = Poll::Pending;
        for _ in 0..EVENTS_MAX {
            let Some(events) = &mut self.events else { break };
            let Poll::Ready(event) = Stream::poll_next(Pin::new(events), context) else { break };
            self.hear(event);
            heard = Poll::Ready(());
        }
        heard
    }

    fn hear(&mut self, event: Option<io::Result<EventOwned>>) {
        match event {
            // Events were not read for long, and the system has dropped some.
            Some(Ok(event)) if event.mask.contains(EventMask::Q_OVERFLOW) => self.forget_events(),
            Some(Ok(event)) => {
                let Some(name) = event.name else { return };
                if event.mask.contains(EventMask::MODIFY) {
                    self.finished.remove(&name);
                    self.unfinished.insert(name);
                } else {
                    self.unfinished.remove(&name);
                    self.finished.insert(name);
                }
            }
            Some(Err(_)) | None => {
                self.forget_events();
                self.events = self.listen().ok();
            }
        }
    }

    /// Events were missed: any file may have been closed or written to, and must come to rest.
    fn forget_events(&mut self) {
        self.unfinished.clear();
        self.finished.clear();
    }

    /// Names of files at rest, and the number of other files.
    pub(super) fn at_rest(&mut self, now: Instant) -> io::Result<(Vec<OsString>, u64)> {
        let mut looks = BTreeMap::new();
        let (mut ready, mut others) = (Vec::new(), 0);
        for entry in fs::read_dir(&self.folder)?.take(FILES_MAX) {
            let entry = entry?;
            let name = entry.file_name();
            // Symbolic links are not followed.
            let Ok(about) = entry.metadata() else { continue };
            if !about.is_file() || is_unfinished(&name) {
                continue;
            }
            let look = FileSnapshot::of(&about);
            let since = self.looks.get(&name).filter(|(before, _)| *before == look);
            let since = since.map_or(now, |(_, since)| *since);
            let rests = !self.unfinished.contains(&name) && now.duration_since(since) >= self.settle;
            if rests || self.finished.contains(&name) {
                ready.push(name.clone());
            } else {
                others += 1;
            }
            looks.insert(name, (look, since));
        }
        self.finished.retain(|name| looks.contains_key(name));
        self.unfinished.retain(|name| looks.contains_key(name));
        self.looks = looks;
        ready.sort();
        Ok((ready, others))
    }
}

/// True for names that are not used for finished files.
fn is_unfinished(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    name.starts_with('.') || name.ends_with('~') || UNFINISHED.contains(&ending.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;
    use std::io::Write;

    #[test]
    fn what_nothing_is_told_of_has_to_rest() {
        let folder = TestFolder::new("watch-rest");
        for name in ["letter.txt", ".hidden", "big.part", "draft.txt~", "x.TMP"] {
            fs::write(folder.0.join(name), "content").unwrap();
        }
        fs::create_dir(folder.0.join("sent")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.0.join("passwd")).unwrap();
        let mut watch = FolderWatch { events: None, ..outside(&folder) };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(watch.at_rest(at(0)).unwrap(), (vec![], 1));
        assert_eq!(watch.at_rest(at(1)).unwrap(), (vec![], 1));
        fs::write(folder.0.join("letter.txt"), "longer content").unwrap();
        assert_eq!(watch.at_rest(at(2)).unwrap(), (vec![], 1), "it has changed");
        assert_eq!(watch.at_rest(at(4)).unwrap(), (vec!["letter.txt".into()], 0));
    }

    fn outside(folder: &TestFolder) -> FolderWatch {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        FolderWatch::new(&folder.0, Duration::from_secs(2))
    }

    #[test]
    fn what_is_moved_in_or_closed_goes_at_once_and_what_is_open_waits() {
        let folder = TestFolder::new("watch-told");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut watch = FolderWatch::new(&folder.0, Duration::from_secs(2));
            let now = Instant::now();
            fs::write(folder.0.join(".letter"), "content").unwrap();
            fs::rename(folder.0.join(".letter"), folder.0.join("letter")).unwrap();
            let mut open = fs::File::create(folder.0.join("open")).unwrap();
            open.write_all(b"some").unwrap();
            while watch.unfinished.is_empty() || watch.finished.is_empty() {
                watch.events().await;
            }
            let (ready, others) = watch.at_rest(now).unwrap();
            assert_eq!((ready, others), (vec!["letter".into()], 1));
            let later = now + Duration::from_secs(3600);
            assert_eq!(watch.at_rest(later).unwrap().1, 1, "however long its writer rests");
            drop(open);
            while watch.finished.len() < 2 {
                watch.events().await;
            }
            let (ready, others) = watch.at_rest(later).unwrap();
            assert_eq!((ready, others), (vec!["letter".into(), "open".into()], 0));
        });
    }

    /// More events than one read of the queue returns.
    #[test]
    fn all_events_that_are_there_are_one_round() {
        let folder = TestFolder::new("watch-many");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut watch = FolderWatch::new(&folder.0, Duration::from_secs(2));
            for number in 0..200 {
                fs::write(folder.0.join(number.to_string()), "content").unwrap();
            }
            watch.events().await;
            assert_eq!((watch.finished.len(), watch.unfinished.len()), (200, 0));
        });
    }

    /// More events than the system queues without being read.
    #[test]
    fn a_file_whose_end_was_not_told_of_comes_to_rest() {
        let folder = TestFolder::new("watch-overflow");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let kept = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let kept: usize = kept.trim().parse().unwrap();
        runtime.block_on(async {
            let mut watch = FolderWatch::new(&folder.0, Duration::from_secs(2));
            let now = Instant::now();
            fs::write(folder.0.join("closed"), "content").unwrap();
            let mut files = ["letter", "other"].map(|name| fs::File::create(folder.0.join(name)).unwrap());
            // The same event twice in a row would be merged.
            for number in 0..=kept {
                files[number % 2].write_all(b"x").unwrap();
            }
            drop(files);
            let told = async {
                while watch.unfinished.len() < 2 {
                    watch.events().await;
                }
                while !watch.unfinished.is_empty() {
                    watch.events().await;
                }
            };
            let in_time = tokio::time::timeout(Duration::from_secs(120), told).await;
            in_time.expect("the system says that it has dropped events");
            assert_eq!(watch.at_rest(now).unwrap(), (vec![], 3));
            assert_eq!(watch.at_rest(now + Duration::from_secs(2)).unwrap().0.len(), 3);
        });
    }
}
