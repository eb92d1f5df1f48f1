//! A folder whose files are sent.

use super::open_folder::OpenFolder;
use super::watch::{FileSnapshot, FolderWatch};
use super::{AGAIN_AFTER, FolderStatus, NodeConnection, NodeGone};
use crate::clock::WallClock;
use crate::config::DropFolder;
use crate::envelope;
use crate::private_files;
use crate::storage::random_u64;
use crate::surfaces::inbox::{NUMBERS_MAX, numbered};
use crate::surfaces::message::{Message, MessageOptions, PART_BYTES, Reply, Request};
use bytes::{Bytes, BytesMut};
use longwire_proto::service::CreationTimestamp;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Interval between checks of the folder.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Maximum claimed files handled in one round.
const CLAIMS_MAX: usize = 10_000;
/// Folder for claimed files.
const PARTS: &str = ".longwire";
/// Folder for sent files.
const SENT: &str = "sent";
/// Suffix of the folder name of a claimed file that the node has queued and that cannot be archived yet.
const HANDED_OVER: &str = "-sent";

/// A claimed file: it has the creation timestamp of its bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClaimedFile {
    /// Folder that contains only this file, named after the timestamp.
    own: OsString,
    name: OsString,
    created: CreationTimestamp,
}

impl ClaimedFile {
    /// True if the node has queued it in an earlier attempt, possibly before the last start.
    fn is_handed_over(&self) -> bool {
        self.own.to_str().is_some_and(|own| own.ends_with(HANDED_OVER))
    }

    /// Name of its folder once the node has queued it.
    fn handed_over(&self) -> OsString {
        OsString::from(format!("{}{HANDED_OVER}", self.created))
    }
}

/// Claimed files from earlier rounds and starts.
#[derive(Debug, Default)]
struct ClaimedFiles {
    /// Claimed files, the oldest first.
    claims: Vec<ClaimedFile>,
    /// Reasons why other folders are ignored, by name.
    others: Vec<(OsString, io::Error)>,
    /// True if the list is complete.
    is_all: bool,
}

/// Folders of a claimed file, held open from its first step to its last.
#[derive(Debug)]
struct ClaimFolders {
    watched: OpenFolder,
    /// Folder of all claimed files.
    parts: OpenFolder,
    /// Folder that contains the file.
    own: OpenFolder,
}

impl ClaimFolders {
    fn of(folder: &Path, claim: &ClaimedFile) -> io::Result<Self> {
        let watched = OpenFolder::open(folder)?;
        let parts = watched.folder(OsStr::new(PARTS))?;
        let own = parts.folder(&claim.own)?;
        Ok(ClaimFolders { watched, parts, own })
    }

    fn sent(&self) -> io::Result<OpenFolder> {
        let sent = self.watched.some_folder(OsStr::new(SENT))?;
        sent.check_writable().map_err(|error| io::Error::new(error.kind(), format!("{SENT}: {error}")))?;
        Ok(sent)
    }
}

#[derive(Debug)]
struct WaitReason {
    words: String,
    /// True if the reason concerns the node, so that all files wait.
    is_the_nodes: bool,
}

impl WaitReason {
    /// A reason that concerns this file.
    fn of_file(words: String) -> Self {
        WaitReason { words, is_the_nodes: false }
    }

    /// A reason of the node, with its identifier.
    fn of_node(words: String, code: &str) -> Self {
        WaitReason { words, is_the_nodes: matches!(code, "full" | "storage") }
    }
}

enum SendOutcome {
    /// The node has queued the bundle.
    Accepted,
    /// The file waits for this reason.
    Later(WaitReason),
    /// The file changed while it was read.
    Changed,
    /// It is a symbolic link, or otherwise not a regular file.
    NoFile,
}

/// Sends until the node stops, or until the sender of `settings` is dropped. A file is sent to its end with the settings with which
/// it was begun, because a bundle that is sent again with others is another payload for its destination.
pub(super) async fn serve(
    mut settings: watch::Receiver<DropFolder>,
    clock: WallClock,
    mut talk: NodeConnection,
    line: FolderStatus,
) -> Result<(), NodeGone> {
    let mut drop = settings.borrow_and_update().clone();
    while let Err(error) = prepare(&drop.folder) {
        line.trouble(format!("cannot use {}: {error}", drop.folder.display()));
        tokio::select! {
            changed = settings.changed() => match changed {
                Ok(()) => drop = settings.borrow().clone(),
                Err(_) => return Ok(()),
            },
            rested = rest(&mut talk, AGAIN_AFTER) => rested?,
        }
    }
    let mut files = FolderWatch::new(&drop.folder, drop.settle);
    let mut number = 0;
    let mut pause = RetryPause::default();
    let mut accepted = AcceptedClaims::new();
    loop {
        // Files claimed before are sent first, as the same bundles.
        if pause.is_over(Instant::now()) {
            pause = RetryPause::default();
            let begun = claims(&drop.folder).unwrap_or_else(|error| {
                line.trouble(format!("cannot read {}: {error}", drop.folder.join(PARTS).display()));
                ClaimedFiles::default()
            });
            forget_gone(&begun, &line, &mut accepted);
            for claim in begun.claims {
                if !follow(&mut settings, &mut drop) {
                    return Ok(());
                }
                number += 1;
                pause.after(send(&drop, &mut talk, &line, &claim, number, &mut accepted).await?);
            }
            begun.others.into_iter().for_each(|(_, error)| line.trouble(error.to_string()));
        }
        files.set_settle(drop.settle);
        match files.at_rest(Instant::now()) {
            Ok((ready, others)) => {
                line.change(|folder| folder.waiting = others + pause.files + ready.len() as u64);
                for name in ready {
                    if !follow(&mut settings, &mut drop) {
                        return Ok(());
                    }
                    if pause.all {
                        break;
                    }
                    match claim(&drop.folder, &name, (clock().unwrap_or(0), own_number()).into()) {
                        Ok(claim) => {
                            number += 1;
                            let waits = send(&drop, &mut talk, &line, &claim, number, &mut accepted).await?;
                            if waits.is_none() {
                                line.change(|folder| folder.waiting = folder.waiting.saturating_sub(1));
                            }
                            pause.after(waits);
                        }
                        // The file was removed.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        Err(error) => {
                            line.trouble(format!("cannot move {}: {error}", name.to_string_lossy()));
                        }
                    }
                }
            }
            Err(error) => line.trouble(format!("cannot read {}: {error}", drop.folder.display())),
        }
        let wait = if pause.all { AGAIN_AFTER } else { LOOK_EVERY };
        tokio::select! {
            changed = settings.changed() => match changed {
                Ok(()) => drop = settings.borrow().clone(),
                Err(_) => return Ok(()),
            },
            gone = talk.hear() => drop_reply(gone?),
            () = files.events() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Takes new settings over. Returns false if the folder is no longer served.
fn follow(settings: &mut watch::Receiver<DropFolder>, drop: &mut DropFolder) -> bool {
    match settings.has_changed() {
        Ok(true) => drop.clone_from(&settings.borrow_and_update()),
        Ok(false) => {}
        Err(_) => return false,
    }
    true
}

/// Pause before waiting files are tried again.
#[derive(Debug, Default)]
struct RetryPause {
    until: Option<Instant>,
    /// Number of waiting files.
    files: u64,
    /// True if all files wait, not only those.
    all: bool,
}

impl RetryPause {
    fn is_over(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    /// A file was tried; `waits` is the reason if it waits.
    fn after(&mut self, waits: Option<WaitReason>) {
        if let Some(reason) = waits {
            self.until = Some(Instant::now() + AGAIN_AFTER);
            self.files += 1;
            self.all |= reason.is_the_nodes;
        }
    }
}

/// Discards a late reply about a file that the node has queued.
fn drop_reply(_: Message<Reply>) {}

/// Waits for a time, or until the node stops.
async fn rest(talk: &mut NodeConnection, time: Duration) -> Result<(), NodeGone> {
    let until = tokio::time::Instant::now() + time;
    loop {
        tokio::select! {
            said = talk.hear() => drop_reply(said?),
            () = tokio::time::sleep_until(until) => return Ok(()),
        }
    }
}

/// Returns a sequence number that no other bundle of this node has: the agent counts from zero.
fn own_number() -> u64 {
    (1 << 52) | (random_u64() >> 12)
}

fn prepare(folder: &Path) -> io::Result<()> {
    private_files::make_folder(folder)?;
    OpenFolder::open(folder)?.some_folder(OsStr::new(PARTS)).map(drop)
}

/// Claims a file with the timestamp of its bundle. From now on it is sent as that bundle only, whatever happens.
fn claim(folder: &Path, name: &OsStr, created: CreationTimestamp) -> io::Result<ClaimedFile> {
    let watched = OpenFolder::open(folder)?;
    let parts = watched.some_folder(OsStr::new(PARTS))?;
    let own = OsString::from(created.to_string());
    let place = parts.new_folder(&own)?;
    if let Err(error) = place.take(&watched, name) {
        let _ = parts.remove_folder(&own);
        return Err(error);
    }
    for changed in [&place, &parts, &watched] {
        changed.sync()?;
    }
    Ok(ClaimedFile { own, name: name.to_owned(), created })
}

fn claims(folder: &Path) -> io::Result<ClaimedFiles> {
    let parts = OpenFolder::open(folder)?.some_folder(OsStr::new(PARTS))?;
    let names = parts.names(CLAIMS_MAX)?;
    let mut begun = ClaimedFiles { is_all: names.len() < CLAIMS_MAX, ..ClaimedFiles::default() };
    for own in names {
        let Some(created) = created(&own) else { continue };
        match found(&parts, &own) {
            Ok(Some(name)) => begun.claims.push(ClaimedFile { own, name, created }),
            Ok(None) => {}
            Err(error) => begun.others.push((own, error)),
        }
    }
    begun.claims.sort_by_key(|claim| claim.created);
    Ok(begun)
}

/// Timestamp in the folder name of a claimed file.
fn created(own: &OsStr) -> Option<CreationTimestamp> {
    let own = own.to_str()?;
    own.strip_suffix(HANDED_OVER).unwrap_or(own).parse().ok()
}

/// Name of the file in a claimed file's folder.
fn found(parts: &OpenFolder, own: &OsStr) -> io::Result<Option<OsString>> {
    let file = parts.folder(own)?.names(1)?.pop();
    if file.is_none() {
        // The process ended between two steps: before the file was moved in, or after it was moved out.
        let _ = parts.remove_folder(own);
    }
    Ok(file)
}

/// Claimed files, by folder name, that the node has queued and that cannot be archived: they are not sent again.
type AcceptedClaims = BTreeSet<OsString>;

/// Removes entries whose folders are gone: those were archived, and only the last step had failed.
fn forget_gone(begun: &ClaimedFiles, line: &FolderStatus, accepted: &mut AcceptedClaims) {
    if !begun.is_all {
        return;
    }
    let others = begun.others.iter().map(|(own, _)| own);
    let there: BTreeSet<&OsString> = begun.claims.iter().map(|claim| &claim.own).chain(others).collect();
    let before = accepted.len();
    accepted.retain(|own| there.contains(own));
    (accepted.len()..before).for_each(|_| line.done());
}

/// Sends a file and archives it. Returns the reason if it waits.
async fn send(
    drop: &DropFolder,
    talk: &mut NodeConnection,
    line: &FolderStatus,
    claim: &ClaimedFile,
    number: u64,
    accepted: &mut AcceptedClaims,
) -> Result<Option<WaitReason>, NodeGone> {
    let waits = match ready(drop, claim) {
        Ok((place, sent)) => {
            let outcome = if claim.is_handed_over() || accepted.contains(&claim.own) {
                SendOutcome::Accepted
            } else if accepted.len() >= CLAIMS_MAX {
                SendOutcome::Later(WaitReason::of_file("too many sent files cannot be archived".to_owned()))
            } else {
                let outcome = hand(drop, talk, claim, &place, number).await?;
                outcome.unwrap_or_else(|error| SendOutcome::Later(unread(drop, claim, &error)))
            };
            match outcome {
                SendOutcome::Accepted => {
                    let is_new = accepted.insert(claim.own.clone());
                    let finished = finish(sent.as_ref(), line, claim, &place);
                    if let Err(reason) = &finished
                        && is_new
                    {
                        let (folder, name) = (drop.folder.display(), claim.name.to_string_lossy());
                        tracing::warn!(target: "folders", "{folder}: {name}: {}", reason.words);
                    }
                    if finished.is_ok() {
                        accepted.remove(&claim.own);
                    } else if !claim.is_handed_over() && note_handed_over(claim, &place).is_ok() {
                        accepted.remove(&claim.own);
                        accepted.insert(claim.handed_over());
                    }
                    finished
                }
                SendOutcome::Changed => put_back(claim, &place),
                SendOutcome::NoFile => put_back(claim, &place)
                    .and_then(|()| Err(WaitReason::of_file("not a regular file; not sent".to_owned()))),
                SendOutcome::Later(reason) => Err(reason),
            }
        }
        Err(reason) => Err(reason),
    };
    Ok(waits.err().inspect(|reason| {
        line.trouble(format!("{} is waiting: {}", claim.name.to_string_lossy(), reason.words));
    }))
}

/// Opens the folders of a claimed file, and the folder for sent files if they are kept: a file that could not be archived is not
/// sent.
fn ready(drop: &DropFolder, claim: &ClaimedFile) -> Result<(ClaimFolders, Option<OpenFolder>), WaitReason> {
    let place = ClaimFolders::of(&drop.folder, claim).map_err(|error| unread(drop, claim, &error))?;
    let sent = drop.keep.then(|| place.sent()).transpose();
    let sent = sent.map_err(|error| WaitReason::of_file(format!("cannot archive sent files: {error}")))?;
    Ok((place, sent))
}

fn unread(drop: &DropFolder, claim: &ClaimedFile, error: &io::Error) -> WaitReason {
    let path = drop.folder.join(PARTS).join(&claim.own).join(&claim.name);
    WaitReason::of_file(format!("cannot read {}: {error}", path.display()))
}

/// Passes a file to the node.
async fn hand(
    drop: &DropFolder,
    talk: &mut NodeConnection,
    claim: &ClaimedFile,
    place: &ClaimFolders,
    send: u64,
) -> Result<io::Result<SendOutcome>, NodeGone> {
    let opened = place.own.file(&claim.name);
    let look = |file: File| Ok((FileSnapshot::of(&file.metadata()?), file));
    let (look, mut file) = match opened.and_then(|file| file.map(look).transpose()) {
        Ok(Some(opened)) => opened,
        Ok(None) => return Ok(Ok(SendOutcome::NoFile)),
        Err(error) => return Ok(Err(error)),
    };
    let head = if drop.raw { Bytes::new() } else { envelope::head(&claim.name.to_string_lossy()) };
    let length = head.len() as u64 + look.length;
    let options = MessageOptions {
        priority: drop.priority,
        lifetime_s: drop.lifetime.as_secs_f64(),
        created: Some(claim.created),
        ..MessageOptions::default()
    };
    let opening = Request::Send { send, to: drop.to.clone(), length, options };
    talk.ask(Message { head: opening, body: head }).await?;
    let mut left = look.length;
    while left > 0 {
        let piece = match next_piece(&mut file, left) {
            Ok(piece) => piece,
            Err(error) => return give_up(talk, send, Err(error)).await,
        };
        left = left.saturating_sub(piece.len() as u64);
        // Before its last bytes the node has no complete bundle, and the send can be cancelled.
        let now = file.metadata().map(|about| FileSnapshot::of(&about));
        if piece.is_empty() || (left == 0 && now.ok() != Some(look)) {
            return give_up(talk, send, Ok(SendOutcome::Changed)).await;
        }
        talk.ask(Message { head: Request::Piece { send }, body: piece }).await?;
        // The rest of a refused file need not be read.
        while let Some(said) = talk.client.try_reply() {
            if let Some(outcome) = outcome_of(&said, send) {
                return Ok(Ok(outcome));
            }
        }
    }
    Ok(Ok(talk.wait(|said| outcome_of(said, send)).await?))
}

/// Result of a send, if this reply ends it.
fn outcome_of(said: &Message<Reply>, send: u64) -> Option<SendOutcome> {
    match &said.head {
        Reply::Accepted { send: of, .. } if *of == send => Some(SendOutcome::Accepted),
        Reply::Failed { send: of, reason, code } if *of == send => {
            Some(SendOutcome::Later(WaitReason::of_node(reason.clone(), code)))
        }
        Reply::Error { what, .. } => Some(SendOutcome::Later(WaitReason::of_file(what.clone()))),
        _ => None,
    }
}

async fn give_up(
    talk: &mut NodeConnection,
    send: u64,
    outcome: io::Result<SendOutcome>,
) -> Result<io::Result<SendOutcome>, NodeGone> {
    talk.ask(Request::Cancel { send }).await?;
    talk.wait(|said| matches!(said.head, Reply::Failed { send: of, .. } if of == send).then_some(())).await?;
    Ok(outcome)
}

fn next_piece(file: &mut File, left: u64) -> io::Result<Bytes> {
    let mut piece = BytesMut::zeroed(left.min(PART_BYTES.into()) as usize);
    let read = file.read(&mut piece)?;
    piece.truncate(read);
    Ok(piece.freeze())
}

/// Moves a queued file to the sent files, or removes it.
fn finish(
    sent: Option<&OpenFolder>,
    line: &FolderStatus,
    claim: &ClaimedFile,
    place: &ClaimFolders,
) -> Result<(), WaitReason> {
    let moved = match sent {
        Some(sent) => put(sent, claim, place),
        None => place.own.remove_file(&claim.name),
    };
    moved
        .and_then(|()| place.parts.remove_folder(&claim.own))
        .map_err(|error| WaitReason::of_file(format!("sent, but cannot be archived: {error}")))?;
    line.done();
    Ok(())
}

/// Renames the folder of a claimed file so that the next start recognizes it as queued.
fn note_handed_over(claim: &ClaimedFile, place: &ClaimFolders) -> io::Result<()> {
    place.parts.take_as(&place.parts, &claim.own, &claim.handed_over())?;
    // The rename is done, even if a power failure may undo it.
    let _ = place.parts.sync();
    Ok(())
}

/// Moves a changed file back: it waits until it is at rest again, and then becomes another bundle.
fn put_back(claim: &ClaimedFile, place: &ClaimFolders) -> Result<(), WaitReason> {
    put(&place.watched, claim, place).and_then(|()| place.parts.remove_folder(&claim.own)).map_err(|error| {
        WaitReason::of_file(format!("changed while it was read, and cannot be moved back: {error}"))
    })
}

/// Moves a file into a folder under its name, with a number if needed: existing files are not replaced.
fn put(to: &OpenFolder, claim: &ClaimedFile, place: &ClaimFolders) -> io::Result<()> {
    for number in 1..NUMBERS_MAX {
        match to.take_as(&place.own, &claim.name, &numbered(&claim.name, number)) {
            Ok(()) => return to.sync(),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "too many files with that name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surfaces::client::{AppClient, ClientEnd, ClientEvent, ClientId};
    use crate::tell::Tell;
    use crate::test_folder::TestFolder;
    use std::collections::VecDeque;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    fn folder(name: &str) -> TestFolder {
        let folder = TestFolder::new(&format!("outbox-{name}"));
        fs::create_dir_all(parts(&folder)).unwrap();
        folder
    }

    fn parts(folder: &TestFolder) -> PathBuf {
        folder.0.join(PARTS)
    }

    /// Claimed files, none of which is ignored.
    fn all_claims(folder: &TestFolder) -> Vec<ClaimedFile> {
        let ClaimedFiles { claims, others, is_all } = claims(&folder.0).unwrap();
        assert!(others.is_empty() && is_all, "{others:?}");
        claims
    }

    fn claim_one(folder: &TestFolder, name: &str, created: (u64, u64)) -> (ClaimedFile, ClaimFolders) {
        let claim = claim(&folder.0, OsStr::new(name), created.into()).unwrap();
        let place = ClaimFolders::of(&folder.0, &claim).unwrap();
        (claim, place)
    }

    fn read(path: impl AsRef<Path>) -> String {
        fs::read_to_string(path).unwrap()
    }

    fn line() -> FolderStatus {
        FolderStatus::new(crate::view::Folder::default())
    }

    #[test]
    fn a_claim_is_found_again_after_any_step() {
        let folder = folder("claims");
        fs::create_dir(parts(&folder).join("5-6")).unwrap();
        assert_eq!(all_claims(&folder), [], "the end came before the file");
        assert!(!parts(&folder).join("5-6").exists());
        fs::write(folder.0.join("b.txt"), "b").unwrap();
        fs::write(folder.0.join("a.txt"), "a").unwrap();
        let second = claim(&folder.0, OsStr::new("a.txt"), (7, own_number()).into()).unwrap();
        let (first, place) = claim_one(&folder, "b.txt", (5, own_number()));
        assert!(!folder.0.join("a.txt").exists());
        assert_eq!(all_claims(&folder), [first.clone(), second]);
        assert!(claim(&folder.0, OsStr::new("none"), (1, 1).into()).is_err());
        assert_eq!(all_claims(&folder).len(), 2);
        put(&place.sent().unwrap(), &first, &place).unwrap();
        assert_eq!(all_claims(&folder).len(), 1, "the end came after the file");
        assert!(!parts(&folder).join(&first.own).exists() && folder.0.join("sent/b.txt").exists());
    }

    /// A symbolic link that replaces a file after it was checked is not followed at any step.
    #[test]
    fn a_link_in_the_place_of_a_claimed_file_is_not_followed() {
        let folder = folder("links");
        let elsewhere = folder.0.join("elsewhere");
        fs::create_dir_all(elsewhere.join("1-2")).unwrap();
        fs::write(elsewhere.join("1-2/a.txt"), "secret").unwrap();
        fs::write(folder.0.join("a.txt"), "a").unwrap();
        let (claim, place) = claim_one(&folder, "a.txt", (1, 2));
        let opens = || place.own.file(&claim.name).unwrap().is_some();
        assert!(opens());
        let own = parts(&folder).join(&claim.own);
        let file = own.join("a.txt");
        fs::remove_file(&file).unwrap();
        symlink(elsewhere.join("1-2/a.txt"), &file).unwrap();
        assert!(!opens(), "the file is a link");
        fs::remove_file(&file).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
        assert!(!opens(), "the file is a pipe");
        let refused = || ClaimFolders::of(&folder.0, &claim).unwrap_err().kind();
        fs::remove_dir_all(&own).unwrap();
        symlink(elsewhere.join("1-2"), &own).unwrap();
        assert_eq!(refused(), io::ErrorKind::NotADirectory, "its folder is a link");
        fs::remove_dir_all(parts(&folder)).unwrap();
        symlink(&elsewhere, parts(&folder)).unwrap();
        assert_eq!(refused(), io::ErrorKind::NotADirectory, "the folder of all is a link");
    }

    /// A symbolic link that existed before: its target is not taken for a claimed file, and stays.
    #[test]
    fn a_link_among_what_was_begun_is_left_alone_and_told() {
        let folder = folder("foreign");
        let elsewhere = TestFolder::new("outbox-foreign-keys");
        fs::create_dir(elsewhere.0.join("3-4")).unwrap();
        fs::write(elsewhere.0.join("node.key"), "secret").unwrap();
        fs::write(elsewhere.0.join("3-4/node.key"), "secret").unwrap();
        symlink(&elsewhere.0, parts(&folder).join("1-2")).unwrap();
        fs::write(parts(&folder).join("1-3"), "no folder").unwrap();
        fs::write(folder.0.join("a.txt"), "a").unwrap();
        let (mine, _) = claim_one(&folder, "a.txt", (7, 8));
        let found = claims(&folder.0).unwrap();
        assert_eq!(found.claims, [mine], "the others are held up by nothing");
        let mut others: Vec<String> = found.others.iter().map(|(_, error)| error.to_string()).collect();
        others.sort();
        let wanted =
            ["1-2", "1-3"].map(|name| format!("{name} is not a folder (or is a symbolic link); ignored"));
        assert_eq!(others, wanted);
        // The folder of all claimed files.
        fs::remove_dir_all(parts(&folder)).unwrap();
        symlink(&elsewhere.0, parts(&folder)).unwrap();
        fs::write(folder.0.join("b.txt"), "b").unwrap();
        assert!(claims(&folder.0).is_err() && prepare(&folder.0).is_err());
        assert!(claim(&folder.0, OsStr::new("b.txt"), (9, 9).into()).is_err());
        assert_eq!(
            (read(folder.0.join("b.txt")), fs::read_dir(&elsewhere.0).unwrap().count()),
            ("b".into(), 2)
        );
        assert_eq!(
            read(elsewhere.0.join("node.key")) + &read(elsewhere.0.join("3-4/node.key")),
            "secretsecret"
        );
    }

    /// A symbolic link replaces the folder of a claimed file while the file is being sent: the link's target is neither removed
    /// nor moved, and the file itself is.
    #[test]
    fn what_a_claim_ends_with_happens_to_its_own_file() {
        type End = fn(&ClaimedFile, &ClaimFolders) -> Result<(), WaitReason>;
        let ends: [(&str, End, Option<&str>); 3] = [
            ("removed", |claim, place| finish(None, &line(), claim, place), None),
            (
                "kept",
                |claim, place| finish(place.sent().ok().as_ref(), &line(), claim, place),
                Some("sent/node.key"),
            ),
            ("put back", put_back, Some("node.key")),
        ];
        for (name, end, goes_to) in ends {
            let (folder, elsewhere) = (folder("swapped"), TestFolder::new("outbox-swapped-keys"));
            fs::write(elsewhere.0.join("node.key"), "secret").unwrap();
            fs::write(folder.0.join("node.key"), "mine").unwrap();
            let (claim, place) = claim_one(&folder, "node.key", (1, 2));
            let own = parts(&folder).join("1-2");
            fs::rename(&own, folder.0.join("away")).unwrap();
            symlink(&elsewhere.0, &own).unwrap();
            assert!(end(&claim, &place).is_err(), "{name}: there is a link in the place of its folder");
            assert_eq!(read(elsewhere.0.join("node.key")), "secret", "{name}");
            assert!(!folder.0.join("away/node.key").exists(), "{name}");
            if let Some(path) = goes_to {
                assert_eq!(read(folder.0.join(path)), "mine", "{name}");
            }
        }
    }

    /// A sent file is not moved through a symbolic link: the target may be a folder that only the node may write to.
    #[test]
    fn what_was_sent_is_kept_in_the_folder_itself() {
        let (folder, elsewhere) = (folder("sent-link"), TestFolder::new("outbox-sent-link-keys"));
        symlink(&elsewhere.0, folder.0.join(SENT)).unwrap();
        fs::write(folder.0.join("ca.pem"), "forged").unwrap();
        let (claim, place) = claim_one(&folder, "ca.pem", (1, 2));
        let error = place.sent().unwrap_err().to_string();
        assert_eq!(error, "sent is not a folder (or is a symbolic link); ignored");
        assert_eq!((fs::read_dir(&elsewhere.0).unwrap().count(), all_claims(&folder)), (0, vec![claim]));
    }

    /// An application of the test, and the node's ends of its requests and replies.
    async fn talking() -> (NodeConnection, UnboundedReceiver<ClientEvent>, ClientEnd) {
        let (events, mut heard) = unbounded_channel::<ClientEvent>();
        let client = AppClient::new(ClientId(1), Tell::to(&events, |said| said));
        let Some(ClientEvent::Arrives(_, end)) = heard.recv().await else { panic!("an application comes") };
        (NodeConnection { client, waiting: VecDeque::new() }, heard, end)
    }

    /// The folder for sent files is removed while the node accepts a file: it is archived later and not sent a second time, even
    /// if the node has restarted in between. That is recorded in the name of its folder, or in memory if that name is taken.
    #[tokio::test]
    async fn what_the_node_has_is_not_sent_again_because_it_cannot_be_put_away() {
        for (ends, is_taken) in [(false, false), (true, false), (false, true)] {
            let folder = folder("again");
            fs::write(folder.0.join("a.txt"), "a").unwrap();
            let (claim, _) = claim_one(&folder, "a.txt", (1, 2));
            if is_taken {
                fs::write(parts(&folder).join("1-2-sent"), "no folder").unwrap();
            }
            let (mut talk, mut heard, end) = talking().await;
            let drop = DropFolder { folder: folder.0.clone(), raw: true, ..DropFolder::default() };
            let (line, mut accepted) = (line(), AcceptedClaims::new());
            let node = async {
                let Some(ClientEvent::Request(_, Message { head: Request::Send { send, .. }, .. })) =
                    heard.recv().await
                else {
                    panic!("it is sent")
                };
                fs::remove_dir(folder.0.join(SENT)).unwrap();
                let (source, created) = ("dtn://moon/".to_owned(), claim.created);
                let reply = Reply::Accepted { send, source, created, name_may_stay: false };
                end.replies.send(reply.into()).expect("it listens");
            };
            let (waits, ()) = tokio::join!(send(&drop, &mut talk, &line, &claim, 1, &mut accepted), node);
            let waits = waits.expect("the node is there").expect("it cannot be put away");
            assert!(waits.words.starts_with("sent, but cannot be archived: "), "{waits:?}");
            // Its bytes were passed on; from now on the node gets no request about it.
            while heard.try_recv().is_ok() {}
            if ends {
                accepted = AcceptedClaims::new();
            }
            let begun = claims(&folder.0).unwrap();
            forget_gone(&begun, &line, &mut accepted);
            let [claim] = &begun.claims[..] else { panic!("it is there: {begun:?}") };
            assert_eq!(claim.own, if is_taken { "1-2" } else { "1-2-sent" });
            let waits = send(&drop, &mut talk, &line, claim, 2, &mut accepted);
            assert!(waits.await.expect("the node is there").is_none());
            assert!(heard.try_recv().is_err(), "it is not sent");
            assert_eq!((read(folder.0.join("sent/a.txt")), accepted.len()), ("a".to_owned(), 0));
            assert_eq!(claims(&folder.0).unwrap().claims, []);
        }
    }

    /// The file was moved, and a later step failed: it is neither remembered for ever nor left out of the count.
    #[test]
    fn what_was_put_away_after_all_is_counted_and_forgotten() {
        let folder = folder("gone");
        let line = line();
        fs::create_dir(parts(&folder).join("1-2-sent")).unwrap();
        fs::create_dir(parts(&folder).join("3-4")).unwrap();
        symlink(&folder.0, parts(&folder).join("5-6")).unwrap();
        fs::write(folder.0.join("a.txt"), "a").unwrap();
        claim_one(&folder, "a.txt", (7, 8));
        let all = || AcceptedClaims::from(["1-2-sent", "3-4", "5-6", "7-8", "9-9"].map(OsString::from));
        let mut accepted = all();
        let begun = claims(&folder.0).unwrap();
        forget_gone(&ClaimedFiles { is_all: false, ..claims(&folder.0).unwrap() }, &line, &mut accepted);
        assert_eq!(accepted, all(), "more may be there than was read");
        forget_gone(&begun, &line, &mut accepted);
        assert_eq!(
            accepted,
            AcceptedClaims::from(["5-6", "7-8"].map(OsString::from)),
            "one is left alone, one waits"
        );
        assert_eq!(line.view().files, 3);
    }

    /// Queued files that cannot be archived are remembered up to a limit; beyond it nothing is sent.
    #[tokio::test]
    async fn nothing_is_sent_while_too_many_that_were_sent_cannot_be_put_away() {
        let folder = folder("too-many");
        fs::write(folder.0.join("a.txt"), "a").unwrap();
        let (claim, _) = claim_one(&folder, "a.txt", (1, 2));
        let (mut talk, mut heard, _end) = talking().await;
        let drop = DropFolder { folder: folder.0.clone(), raw: true, ..DropFolder::default() };
        let (line, mut accepted) = (line(), AcceptedClaims::new());
        accepted.extend((0..CLAIMS_MAX).map(|number| OsString::from(number.to_string())));
        let waits = tokio::select! {
            waits = send(&drop, &mut talk, &line, &claim, 1, &mut accepted) => waits,
            _ = heard.recv() => panic!("it is sent"),
        };
        let waits = waits.expect("the node is there").expect("it waits");
        assert_eq!(waits.words, "too many sent files cannot be archived");
        assert_eq!(all_claims(&folder), [claim]);
    }

    #[test]
    fn what_was_sent_replaces_nothing() {
        let folder = folder("sent");
        for round in 0..3_u64 {
            fs::write(folder.0.join("a.tar.gz"), round.to_string()).unwrap();
            let (claim, place) = claim_one(&folder, "a.tar.gz", (1, round));
            put(&place.sent().unwrap(), &claim, &place).unwrap();
        }
        for (name, content) in [("a.tar.gz", "0"), ("a.tar-2.gz", "1"), ("a.tar-3.gz", "2")] {
            assert_eq!(read(folder.0.join(SENT).join(name)), content);
        }
    }
}
