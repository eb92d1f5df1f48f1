//! The part of the interface of NRL's library that the peer uses; `normApi.h` of version 1.5.9 has the original.

#![allow(non_snake_case, reason = "names of the library")]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulong, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

// Handles are made by the library alone. Those of instances and sessions stay valid, since nothing is destroyed before the
// process ends; those of objects and nodes are valid until the next event is fetched, or while they are retained.

/// A thread of the library.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Instance(*const c_void);

#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Session(*const c_void);

/// A remote sender.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Node(*const c_void);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Object(*const c_void);

pub type NodeId = u32;

/// All acking nodes together.
pub const NODE_ANY: NodeId = 0xFFFF_FFFF;
const NODE_NONE: NodeId = 0;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawEvent {
    kind: c_int,
    session: Session,
    sender: Node,
    object: Object,
}

/// Events of which the peer takes note, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    QueueVacancy,
    QueueEmpty,
    FlushCompleted,
    WatermarkCompleted,
    ObjectSent,
    ObjectPurged,
    RateChanged,
    SenderNew,
    SenderInactive,
    ObjectNew,
    ObjectInfo,
    ObjectUpdated,
    ObjectCompleted,
    ObjectAborted,
    GrttUpdated,
    CcActive,
    CcInactive,
    SendError,
    Other,
}

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub kind: EventKind,
    pub sender: Node,
    pub object: Object,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    Data,
    File,
    Stream,
}

impl ObjectKind {
    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::Data => "data",
            ObjectKind::File => "file",
            ObjectKind::Stream => "stream",
        }
    }
}

#[link(name = "norm")]
unsafe extern "C" {
    pub safe fn NormCreateInstance(priority_boost: bool) -> Instance;
    safe fn NormGetDescriptor(instance: Instance) -> c_int;
    safe fn NormGetNextEvent(instance: Instance, event: &mut RawEvent, wait: bool) -> bool;
    fn NormSetCacheDirectory(instance: Instance, path: *const c_char) -> bool;

    fn NormCreateSession(instance: Instance, address: *const c_char, port: u16, node: NodeId) -> Session;
    fn NormSetTxPort(session: Session, port: u16, reuse: bool, address: *const c_char) -> bool;
    pub safe fn NormSetTxOnly(session: Session, tx_only: bool, connect: bool);
    fn NormSetRxPortReuse(
        session: Session,
        reuse: bool,
        address: *const c_char,
        sender: *const c_char,
        sender_port: u16,
    );
    fn NormSetMulticastInterface(session: Session, name: *const c_char) -> bool;
    pub safe fn NormSetMulticastLoopback(session: Session, loopback: bool) -> bool;
    pub safe fn NormSetTxLoss(session: Session, percent: f64);
    pub safe fn NormSetRxLoss(session: Session, percent: f64);
    pub safe fn NormSetTxSocketBuffer(session: Session, bytes: c_uint) -> bool;
    pub safe fn NormSetRxSocketBuffer(session: Session, bytes: c_uint) -> bool;
    pub safe fn NormSetEcnSupport(session: Session, ecn: bool, ignore_loss: bool, tolerate_loss: bool);
    pub safe fn NormSetCongestionControl(session: Session, enable: bool, adjust_rate: bool);

    pub safe fn NormStartSender(
        session: Session,
        instance_id: u16,
        buffer_bytes: u32,
        segment_bytes: u16,
        block: u16,
        parity: u16,
        fec_id: u8,
    ) -> bool;
    pub safe fn NormSetTxRate(session: Session, bits_per_second: f64);
    pub safe fn NormGetTxRate(session: Session) -> f64;
    pub safe fn NormSetTxRateBounds(session: Session, min: f64, max: f64);
    pub safe fn NormSetTxCacheBounds(session: Session, bytes_max: i64, count_min: u32, count_max: u32);
    pub safe fn NormSetAutoParity(session: Session, parity: u8);
    pub safe fn NormSetGrttEstimate(session: Session, seconds: f64);
    pub safe fn NormGetGrttEstimate(session: Session) -> f64;
    safe fn NormSetGrttProbingMode(session: Session, mode: c_int);
    pub safe fn NormSetBackoffFactor(session: Session, factor: f64);
    pub safe fn NormSetGroupSize(session: Session, size: c_uint);
    pub safe fn NormSetTxRobustFactor(session: Session, factor: c_int);
    fn NormFileEnqueue(
        session: Session,
        path: *const c_char,
        info: *const c_char,
        info_bytes: c_uint,
    ) -> Object;
    fn NormDataEnqueue(
        session: Session,
        data: *const c_char,
        bytes: u32,
        info: *const c_char,
        info_bytes: c_uint,
    ) -> Object;
    fn NormStreamOpen(session: Session, buffer_bytes: u32, info: *const c_char, info_bytes: c_uint)
    -> Object;
    pub safe fn NormStreamMarkEom(stream: Object);
    pub safe fn NormStreamClose(stream: Object, graceful: bool);
    fn NormStreamWrite(stream: Object, data: *const c_char, bytes: c_uint) -> c_uint;
    safe fn NormStreamFlush(stream: Object, end_of_message: bool, mode: c_int);
    pub safe fn NormSetWatermark(session: Session, object: Object, override_flush: bool) -> bool;
    pub safe fn NormAddAckingNode(session: Session, node: NodeId) -> bool;
    safe fn NormGetAckingStatus(session: Session, node: NodeId) -> c_int;

    pub safe fn NormStartReceiver(session: Session, buffer_bytes: u32) -> bool;
    pub safe fn NormSetSilentReceiver(session: Session, silent: bool, delay_max: c_int);
    pub safe fn NormSetDefaultUnicastNack(session: Session, unicast: bool);
    safe fn NormSetDefaultSyncPolicy(session: Session, policy: c_int);
    pub safe fn NormSetDefaultRxRobustFactor(session: Session, factor: c_int);
    fn NormStreamRead(stream: Object, buffer: *mut c_char, bytes: &mut c_uint) -> bool;

    safe fn NormObjectGetType(object: Object) -> c_int;
    safe fn NormObjectGetSize(object: Object) -> i64;
    safe fn NormObjectHasInfo(object: Object) -> bool;
    safe fn NormObjectGetInfoLength(object: Object) -> u16;
    fn NormObjectGetInfo(object: Object, buffer: *mut c_char, bytes: u16) -> u16;
    pub safe fn NormObjectRetain(object: Object);
    fn NormFileGetName(file: Object, name: *mut c_char, bytes: c_uint) -> bool;
    fn NormFileRename(file: Object, name: *const c_char) -> bool;
    safe fn NormDataAccessData(object: Object) -> *const c_char;
    pub safe fn NormNodeGetId(node: Node) -> NodeId;
    pub safe fn NormNodeGetGrtt(sender: Node) -> f64;
}

#[derive(Debug)]
#[repr(C)]
struct PollFd {
    fd: c_int,
    events: i16,
    revents: i16,
}

const POLLIN: i16 = 1;

unsafe extern "C" {
    fn poll(fds: *mut PollFd, count: c_ulong, timeout_ms: c_int) -> c_int;
}

/// # Panics
/// Panics if the text contains a zero, which no address, interface or path does.
fn c_string(bytes: impl Into<Vec<u8>>) -> CString {
    CString::new(bytes).expect("a text without zeros")
}

fn path_string(path: &Path) -> CString {
    c_string(path.as_os_str().as_bytes())
}

/// Pointer and length of an info, absent if it is empty.
fn info_parts(info: &[u8]) -> (*const c_char, c_uint) {
    let pointer = if info.is_empty() { std::ptr::null() } else { info.as_ptr().cast() };
    (pointer, info.len().try_into().expect("a short info"))
}

impl Instance {
    /// Returns false if the library did not start.
    pub fn is_valid(self) -> bool {
        !self.0.is_null()
    }

    pub fn set_cache_directory(self, folder: &Path) -> bool {
        let folder = path_string(folder);
        // SAFETY: the string ends with a zero and is copied.
        unsafe { NormSetCacheDirectory(self, folder.as_ptr()) }
    }

    pub fn create_session(self, address: &str, port: u16, node: NodeId) -> Session {
        let address = c_string(address);
        // SAFETY: the string ends with a zero and is not kept.
        unsafe { NormCreateSession(self, address.as_ptr(), port, node) }
    }

    /// Returns the next event, waiting for at most this time.
    pub fn next_event(self, wait: Duration) -> Option<Event> {
        let mut ready = PollFd { fd: NormGetDescriptor(self), events: POLLIN, revents: 0 };
        let milliseconds = c_int::try_from(wait.as_millis()).unwrap_or(c_int::MAX);
        // SAFETY: there is one descriptor, which the call changes and does not keep.
        if unsafe { poll(&raw mut ready, 1, milliseconds) } <= 0 {
            return None;
        }
        let nothing = std::ptr::null();
        let mut event =
            RawEvent { kind: 0, session: Session(nothing), sender: Node(nothing), object: Object(nothing) };
        if !NormGetNextEvent(self, &mut event, false) {
            return None;
        }
        Some(Event { kind: EventKind::from_number(event.kind), sender: event.sender, object: event.object })
    }
}

impl EventKind {
    fn from_number(number: c_int) -> EventKind {
        match number {
            1 => EventKind::QueueVacancy,
            2 => EventKind::QueueEmpty,
            3 => EventKind::FlushCompleted,
            4 => EventKind::WatermarkCompleted,
            6 => EventKind::ObjectSent,
            7 => EventKind::ObjectPurged,
            8 => EventKind::RateChanged,
            10 => EventKind::SenderNew,
            14 => EventKind::SenderInactive,
            17 => EventKind::ObjectNew,
            18 => EventKind::ObjectInfo,
            19 => EventKind::ObjectUpdated,
            20 => EventKind::ObjectCompleted,
            21 => EventKind::ObjectAborted,
            23 => EventKind::GrttUpdated,
            24 => EventKind::CcActive,
            25 => EventKind::CcInactive,
            27 => EventKind::SendError,
            _ => EventKind::Other,
        }
    }
}

/// Objects that a receiver wants of a sender that has begun before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    Current = 0,
    Stream = 1,
    All = 2,
}

/// How a sender measures the round-trip time to its receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probing {
    Off = 0,
    Passive = 1,
    Active = 2,
}

/// The state of a watermark at an acking node, or at all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckingStatus {
    Invalid,
    Failure,
    Pending,
    Success,
}

impl AckingStatus {
    pub fn name(self) -> &'static str {
        match self {
            AckingStatus::Invalid => "invalid",
            AckingStatus::Failure => "failure",
            AckingStatus::Pending => "pending",
            AckingStatus::Success => "success",
        }
    }
}

impl Session {
    /// Returns false if the library refused the address.
    pub fn is_valid(self) -> bool {
        !self.0.is_null()
    }

    pub fn set_tx_port(self, port: u16) -> bool {
        // SAFETY: without an address, all are meant.
        unsafe { NormSetTxPort(self, port, false, std::ptr::null()) }
    }

    /// Lets other processes receive at the same port.
    pub fn share_rx_port(self) {
        // SAFETY: without addresses, all are meant.
        unsafe { NormSetRxPortReuse(self, true, std::ptr::null(), std::ptr::null(), 0) }
    }

    pub fn set_multicast_interface(self, name: &str) -> bool {
        let name = c_string(name);
        // SAFETY: the string ends with a zero and is copied.
        unsafe { NormSetMulticastInterface(self, name.as_ptr()) }
    }

    pub fn set_sync_policy(self, policy: SyncPolicy) {
        NormSetDefaultSyncPolicy(self, policy as c_int);
    }

    pub fn enqueue_file(self, path: &Path, info: &[u8]) -> Object {
        let (path, (info, info_bytes)) = (path_string(path), info_parts(info));
        // SAFETY: the string ends with a zero, the info has its length, and both are copied.
        unsafe { NormFileEnqueue(self, path.as_ptr(), info, info_bytes) }
    }

    /// The data live as long as the process, and the library only reads them.
    pub fn enqueue_data(self, data: &'static [u8], info: &[u8]) -> Object {
        let bytes = data.len().try_into().expect("less than 4 GiB");
        let (info, info_bytes) = info_parts(info);
        // SAFETY: the data have their length and stay; the info has its length and is copied.
        unsafe { NormDataEnqueue(self, data.as_ptr().cast(), bytes, info, info_bytes) }
    }

    pub fn open_stream(self, buffer_bytes: u32, info: &[u8]) -> Object {
        let (info, info_bytes) = info_parts(info);
        // SAFETY: the info has its length and is copied.
        unsafe { NormStreamOpen(self, buffer_bytes, info, info_bytes) }
    }

    pub fn set_probing(self, mode: Probing) {
        NormSetGrttProbingMode(self, mode as c_int);
    }

    pub fn acking_status(self, node: NodeId) -> AckingStatus {
        assert_ne!(node, NODE_NONE, "no node has the number 0");
        match NormGetAckingStatus(self, node) {
            1 => AckingStatus::Failure,
            2 => AckingStatus::Pending,
            3 => AckingStatus::Success,
            _ => AckingStatus::Invalid,
        }
    }
}

impl Object {
    /// Returns false if the library had no room for the object.
    pub fn is_valid(self) -> bool {
        !self.0.is_null()
    }

    pub fn kind(self) -> Option<ObjectKind> {
        match NormObjectGetType(self) {
            1 => Some(ObjectKind::Data),
            2 => Some(ObjectKind::File),
            3 => Some(ObjectKind::Stream),
            _ => None,
        }
    }

    /// The contents of an object whose kind is data.
    pub fn data(self) -> Vec<u8> {
        let bytes = usize::try_from(NormObjectGetSize(self)).expect("a size");
        let data = NormDataAccessData(self);
        if data.is_null() {
            return Vec::new();
        }
        // SAFETY: the object of the event is valid, and its memory has its size.
        unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) }.to_vec()
    }

    pub fn info(self) -> Vec<u8> {
        if !NormObjectHasInfo(self) {
            return Vec::new();
        }
        let bytes = NormObjectGetInfoLength(self);
        let mut info = vec![0; usize::from(bytes)];
        // SAFETY: the buffer has this length.
        let got = unsafe { NormObjectGetInfo(self, info.as_mut_ptr().cast(), bytes) };
        info.truncate(got.into());
        info
    }

    /// The path of an object that is a file.
    pub fn path(self) -> Option<PathBuf> {
        const PATH_MAX: usize = 4096;
        let mut name = vec![0u8; PATH_MAX];
        // SAFETY: the buffer has this length, without the zero at its end.
        let found = unsafe { NormFileGetName(self, name.as_mut_ptr().cast(), PATH_MAX as c_uint - 1) };
        let name = CStr::from_bytes_until_nul(&name).ok().filter(|_| found)?;
        Some(Path::new(std::ffi::OsStr::from_bytes(name.to_bytes())).to_owned())
    }

    pub fn rename(self, path: &Path) -> bool {
        let path = path_string(path);
        // SAFETY: the string ends with a zero and is copied.
        unsafe { NormFileRename(self, path.as_ptr()) }
    }

    /// Writes to a stream, and returns the bytes that it accepted.
    pub fn write(self, data: &[u8]) -> usize {
        let bytes = data.len().try_into().unwrap_or(c_uint::MAX);
        // SAFETY: the data have at least this length and are copied.
        unsafe { NormStreamWrite(self, data.as_ptr().cast(), bytes) as usize }
    }

    /// Sends all that was written, as the end of a message, and asks receivers what they lack.
    pub fn flush(self) {
        const FLUSH_ACTIVE: c_int = 2;
        NormStreamFlush(self, true, FLUSH_ACTIVE);
    }

    /// Reads from a stream: nothing if there is nothing yet, `None` if data are missing for ever.
    pub fn read(self, buffer: &mut [u8]) -> Option<usize> {
        let mut bytes = buffer.len().try_into().unwrap_or(c_uint::MAX);
        // SAFETY: the buffer has at least this length.
        let whole = unsafe { NormStreamRead(self, buffer.as_mut_ptr().cast(), &mut bytes) };
        whole.then_some(bytes as usize)
    }
}
