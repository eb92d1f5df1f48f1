//! A folder from which files are sent.

use super::watch::{Look, Watch};
use super::{Gone, Line, Talk};
use crate::config::DropFolder;
use crate::envelope;
use crate::message::{Message, Options, Reply, Request};
use crate::private;
use crate::setup::WallClock;
use crate::storage::random_u64;
use bytes::{Bytes, BytesMut};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, openat, renameat_with};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often the folder is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The wait before something that did not work is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// Bytes of a file that are handed over at once.
const PIECE_BYTES: usize = 256 * 1024;
/// Files of one name in `sent` that get a number.
const NUMBERS_MAX: u32 = 100_000;

/// A file that has its bundle's name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Claim {
    /// The folder that it is alone in, which has that name.
    place: PathBuf,
    name: OsString,
    created: (u64, u64),
}

/// Why a file waits.
#[derive(Debug)]
struct Reason {
    words: String,
    /// It is the node's, and all files wait.
    is_the_nodes: bool,
}

impl Reason {
    /// Something that has to do with this file.
    fn of_file(words: String) -> Self {
        Reason { words, is_the_nodes: false }
    }

    /// Why the node did not take it, by the code that it says.
    fn of_node(words: String, code: &str) -> Self {
        Reason { words, is_the_nodes: matches!(code, "full" | "storage") }
    }
}

/// How a try to send ended.
enum Outcome {
    /// The node has it.
    Accepted,
    /// Not now, for this reason.
    Later(Reason),
    /// It changed while it was read.
    Changed,
    /// It is a link, or something else that is no file.
    NoFile,
}

/// Sends until the node ends.
pub(super) async fn serve(drop: DropFolder, clock: WallClock, mut talk: Talk, line: Line) {
    let _: Result<(), Gone> = serve_on(&drop, &clock, &mut talk, &line).await;
}

async fn serve_on(drop: &DropFolder, clock: &WallClock, talk: &mut Talk, line: &Line) -> Result<(), Gone> {
    while let Err(error) = private::make_folder(&parts(&drop.folder)) {
        line.trouble(format!("cannot use {}: {error}", drop.folder.display()));
        rest(talk, AGAIN_AFTER).await?;
    }
    let mut watch = Watch::new(&drop.folder, drop.settle);
    let mut number = 0;
    let mut pause = Pause::default();
    loop {
        // What was begun before goes first, as the bundles that it was.
        if pause.is_over(Instant::now()) {
            pause = Pause::default();
            for claim in claims(&drop.folder) {
                number += 1;
                pause.after(send(drop, talk, line, &claim, number).await?);
            }
        }
        match watch.at_rest(Instant::now()) {
            Ok((ready, others)) => {
                line.change(|folder| folder.waiting = others + pause.files + ready.len() as u64);
                for name in ready {
                    if pause.all {
                        break;
                    }
                    match claim(&drop.folder, &name, (clock().unwrap_or(0), own_number())) {
                        Ok(claim) => {
                            number += 1;
                            let waits = send(drop, talk, line, &claim, number).await?;
                            if waits.is_none() {
                                line.change(|folder| folder.waiting = folder.waiting.saturating_sub(1));
                            }
                            pause.after(waits);
                        }
                        // It is gone again.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        Err(error) => {
                            line.trouble(format!("cannot take {}: {error}", name.to_string_lossy()));
                        }
                    }
                }
            }
            Err(error) => line.trouble(format!("cannot read {}: {error}", drop.folder.display())),
        }
        let wait = if pause.all { AGAIN_AFTER } else { LOOK_EVERY };
        tokio::select! {
            gone = talk.hear() => drop_reply(gone?),
            () = watch.event() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Before what has waited is tried again.
#[derive(Debug, Default)]
struct Pause {
    until: Option<Instant>,
    /// How many files wait.
    files: u64,
    /// All wait, not only those.
    all: bool,
}

impl Pause {
    fn is_over(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    /// A file was tried, and waits for this reason.
    fn after(&mut self, waits: Option<Reason>) {
        if let Some(reason) = waits {
            self.until = Some(Instant::now() + AGAIN_AFTER);
            self.files += 1;
            self.all |= reason.is_the_nodes;
        }
    }
}

/// What was said late of a file that the node has belongs to nobody.
fn drop_reply(_: Message<Reply>) {}

/// Lets time pass, unless the node ends.
async fn rest(talk: &mut Talk, time: Duration) -> Result<(), Gone> {
    let until = tokio::time::Instant::now() + time;
    loop {
        tokio::select! {
            said = talk.hear() => drop_reply(said?),
            () = tokio::time::sleep_until(until) => return Ok(()),
        }
    }
}

/// A number that no other bundle of this node has: the agent's own count from zero.
fn own_number() -> u64 {
    (1 << 52) | (random_u64() >> 12)
}

fn parts(folder: &Path) -> PathBuf {
    folder.join(".longwire")
}

/// Gives a file its bundle's name. From here on it is sent as that bundle and no other, whatever happens.
fn claim(folder: &Path, name: &OsStr, created: (u64, u64)) -> io::Result<Claim> {
    let place = parts(folder).join(format!("{}-{}", created.0, created.1));
    private::make_new_folder(&place)?;
    if let Err(error) = fs::rename(folder.join(name), place.join(name)) {
        let _ = fs::remove_dir(&place);
        return Err(error);
    }
    for changed in [&place, &parts(folder), folder] {
        File::open(changed)?.sync_all()?;
    }
    Ok(Claim { place, name: name.to_owned(), created })
}

/// Opens what was claimed; `None`: it is no regular file. Whoever may write to the folder may put a link in the place of a file or
/// of a folder between any two steps, to have something sent that only the node may read: so each step is taken from the folder that
/// the step before has opened, follows no link, and what was opened is looked at, not what has its name.
fn open_claimed(folder: &Path, claim: &Claim) -> io::Result<Option<File>> {
    let step = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let into = step | OFlags::DIRECTORY;
    let own = claim.place.file_name().unwrap_or_default();
    let opened =
        rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .and_then(|folder| openat(folder, ".longwire", into, Mode::empty()))
            .and_then(|parts| openat(parts, own, into, Mode::empty()))
            // A pipe without a writer is not waited for.
            .and_then(|place| openat(place, claim.name.as_os_str(), step | OFlags::NONBLOCK, Mode::empty()));
    match opened {
        Ok(file) => {
            let file = File::from(file);
            Ok(file.metadata()?.is_file().then_some(file))
        }
        Err(Errno::LOOP | Errno::NOTDIR | Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What has its name already, the oldest first.
fn claims(folder: &Path) -> Vec<Claim> {
    let Ok(places) = fs::read_dir(parts(folder)) else { return Vec::new() };
    let mut claims: Vec<Claim> = places.flatten().filter_map(|place| found(&place.path())).collect();
    claims.sort_by_key(|claim| claim.created);
    claims
}

fn found(place: &Path) -> Option<Claim> {
    let (time, number) = place.file_name()?.to_str()?.split_once('-')?;
    let created = (time.parse().ok()?, number.parse().ok()?);
    match fs::read_dir(place).ok()?.flatten().next() {
        Some(file) => Some(Claim { place: place.to_owned(), name: file.file_name(), created }),
        None => {
            // The end came between two steps, before the first file or after the last.
            let _ = fs::remove_dir(place);
            None
        }
    }
}

/// Sends a file and puts it where it belongs then; or why it waits.
async fn send(
    drop: &DropFolder,
    talk: &mut Talk,
    line: &Line,
    claim: &Claim,
    number: u64,
) -> Result<Option<Reason>, Gone> {
    let path = claim.place.join(&claim.name);
    let outcome = match hand(drop, talk, claim, number).await? {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Later(Reason::of_file(format!("cannot read {}: {error}", path.display()))),
    };
    let waits = match outcome {
        Outcome::Accepted => finish(drop, line, claim),
        Outcome::Changed => put_back(drop, claim),
        Outcome::NoFile => put_back(drop, claim).and_then(|()| {
            Err(Reason::of_file("it is a link or no regular file, and is not sent".to_owned()))
        }),
        Outcome::Later(reason) => Err(reason),
    };
    Ok(waits.err().inspect(|reason| {
        line.trouble(format!("{} waits: {}", claim.name.to_string_lossy(), reason.words));
    }))
}

/// Hands a file to the node.
async fn hand(
    drop: &DropFolder,
    talk: &mut Talk,
    claim: &Claim,
    send: u64,
) -> Result<io::Result<Outcome>, Gone> {
    let (mut file, look) = match open_claimed(&drop.folder, claim) {
        Ok(Some(file)) => match file.metadata() {
            Ok(about) => (file, Look::of(&about)),
            Err(error) => return Ok(Err(error)),
        },
        Ok(None) => return Ok(Ok(Outcome::NoFile)),
        Err(error) => return Ok(Err(error)),
    };
    let head = if drop.raw { Bytes::new() } else { envelope::head(&claim.name.to_string_lossy()) };
    let length = head.len() as u64 + look.length;
    let options = Options {
        priority: drop.priority,
        lifetime_s: drop.lifetime.as_secs_f64(),
        created: Some(claim.created),
        ..Options::default()
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
        // Before the last bytes go the node has no bundle, and it can be taken back.
        let now = file.metadata().map(|about| Look::of(&about));
        if piece.is_empty() || (left == 0 && now.ok() != Some(look)) {
            return give_up(talk, send, Ok(Outcome::Changed)).await;
        }
        talk.ask(Message { head: Request::Piece { send }, body: piece }).await?;
        // A file that is refused need not be read to its end.
        while let Some(said) = talk.client.try_reply() {
            if let Some(outcome) = outcome_of(&said, send) {
                return Ok(Ok(outcome));
            }
        }
    }
    Ok(Ok(talk.wait(|said| outcome_of(said, send)).await?))
}

/// What the node says of a send, if that ends it.
fn outcome_of(said: &Message<Reply>, send: u64) -> Option<Outcome> {
    match &said.head {
        Reply::Accepted { send: of, .. } if *of == send => Some(Outcome::Accepted),
        Reply::Failed { send: of, reason, code } if *of == send => {
            Some(Outcome::Later(Reason::of_node(reason.clone(), code)))
        }
        Reply::Error { what, .. } => Some(Outcome::Later(Reason::of_file(what.clone()))),
        _ => None,
    }
}

async fn give_up(
    talk: &mut Talk,
    send: u64,
    outcome: io::Result<Outcome>,
) -> Result<io::Result<Outcome>, Gone> {
    talk.ask(Request::Cancel { send }).await?;
    talk.wait(|said| matches!(said.head, Reply::Failed { send: of, .. } if of == send).then_some(())).await?;
    Ok(outcome)
}

fn next_piece(file: &mut File, left: u64) -> io::Result<Bytes> {
    let mut piece = BytesMut::zeroed(PIECE_BYTES.min(usize::try_from(left).unwrap_or(usize::MAX)));
    let read = file.read(&mut piece)?;
    piece.truncate(read);
    Ok(piece.freeze())
}

/// The node has it: it goes to those sent, or goes.
fn finish(drop: &DropFolder, line: &Line, claim: &Claim) -> Result<(), Reason> {
    let moved =
        if drop.keep { keep(&drop.folder, claim) } else { fs::remove_file(claim.place.join(&claim.name)) };
    moved
        .and_then(|()| fs::remove_dir(&claim.place))
        .map_err(|error| Reason::of_file(format!("the node has it, and it cannot be put away: {error}")))?;
    line.done();
    Ok(())
}

/// It was changed after all: it waits until it is at rest again, and becomes another bundle then.
fn put_back(drop: &DropFolder, claim: &Claim) -> Result<(), Reason> {
    place(&drop.folder, claim)
        .and_then(|()| fs::remove_dir(&claim.place))
        .map_err(|error| Reason::of_file(format!("it has changed, and cannot be put back: {error}")))
}

fn keep(folder: &Path, claim: &Claim) -> io::Result<()> {
    let sent = folder.join("sent");
    private::make_folder(&sent)?;
    place(&sent, claim)
}

/// Moves a file into a folder, under its name or that with a number: nothing that is there is replaced.
fn place(folder: &Path, claim: &Claim) -> io::Result<()> {
    let from = claim.place.join(&claim.name);
    for number in 1..NUMBERS_MAX {
        let to = folder.join(numbered(&claim.name, number));
        let moved = match renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE) {
            // A file system that cannot look and move in one step.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if !to.exists() => fs::rename(&from, &to),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => continue,
            moved => moved.map_err(io::Error::from),
        };
        match moved {
            Ok(()) => return File::open(folder)?.sync_all(),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "there are too many files of that name"))
}

fn numbered(name: &OsStr, number: u32) -> OsString {
    if number == 1 {
        return name.to_owned();
    }
    let path = Path::new(name);
    let mut out = path.file_stem().unwrap_or(name).to_owned();
    out.push(format!("-{number}"));
    if let Some(ending) = path.extension() {
        out.push(".");
        out.push(ending);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Folder;

    fn folder(name: &str) -> Folder {
        let folder = Folder::new(&format!("outbox-{name}"));
        fs::create_dir_all(parts(&folder.0)).unwrap();
        folder
    }

    #[test]
    fn a_claim_is_found_again_after_any_step() {
        let folder = folder("claims");
        fs::create_dir(parts(&folder.0).join("5-6")).unwrap();
        assert_eq!(claims(&folder.0), [], "the end came before the file");
        assert!(!parts(&folder.0).join("5-6").exists());
        fs::write(folder.0.join("b.txt"), "b").unwrap();
        fs::write(folder.0.join("a.txt"), "a").unwrap();
        let second = claim(&folder.0, OsStr::new("a.txt"), (7, own_number())).unwrap();
        let first = claim(&folder.0, OsStr::new("b.txt"), (5, own_number())).unwrap();
        assert!(!folder.0.join("a.txt").exists());
        assert_eq!(claims(&folder.0), [first.clone(), second]);
        assert!(claim(&folder.0, OsStr::new("none"), (1, 1)).is_err());
        assert_eq!(claims(&folder.0).len(), 2);
        keep(&folder.0, &first).unwrap();
        assert_eq!(claims(&folder.0).len(), 1, "the end came after the file");
        assert!(!first.place.exists() && folder.0.join("sent/b.txt").exists());
    }

    /// A link that somebody puts in the place of a file after it was looked at leads nowhere, whichever step it is put at.
    #[test]
    fn a_link_in_the_place_of_a_claimed_file_is_not_followed() {
        use std::os::unix::fs::symlink;
        let folder = folder("links");
        let elsewhere = folder.0.join("elsewhere");
        fs::create_dir_all(elsewhere.join("1-2")).unwrap();
        fs::write(elsewhere.join("1-2/a.txt"), "secret").unwrap();
        fs::write(folder.0.join("a.txt"), "a").unwrap();
        let claim = claim(&folder.0, OsStr::new("a.txt"), (1, 2)).unwrap();
        let opens = || open_claimed(&folder.0, &claim).unwrap().is_some();
        assert!(opens());
        let file = claim.place.join("a.txt");
        fs::remove_file(&file).unwrap();
        symlink(elsewhere.join("1-2/a.txt"), &file).unwrap();
        assert!(!opens(), "the file is a link");
        fs::remove_file(&file).unwrap();
        rustix::fs::mknodat(CWD, &file, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(!opens(), "the file is a pipe");
        fs::remove_dir_all(&claim.place).unwrap();
        symlink(elsewhere.join("1-2"), &claim.place).unwrap();
        assert!(!opens(), "its folder is a link");
        fs::remove_dir_all(parts(&folder.0)).unwrap();
        symlink(&elsewhere, parts(&folder.0)).unwrap();
        assert!(!opens(), "the folder of all is a link");
    }

    #[test]
    fn what_was_sent_replaces_nothing() {
        let folder = folder("sent");
        for round in 0..3_u64 {
            fs::write(folder.0.join("a.tar.gz"), round.to_string()).unwrap();
            let claim = claim(&folder.0, OsStr::new("a.tar.gz"), (1, round)).unwrap();
            keep(&folder.0, &claim).unwrap();
        }
        for (name, content) in [("a.tar.gz", "0"), ("a.tar-2.gz", "1"), ("a.tar-3.gz", "2")] {
            assert_eq!(fs::read_to_string(folder.0.join("sent").join(name)).unwrap(), content);
        }
    }
}
