//! Resources of a process, as the system reports them.

use std::path::PathBuf;

/// A process by its number, or this one.
pub(crate) fn of(id: Option<u32>) -> Process {
    let name = id.map_or("self".to_owned(), |id| id.to_string());
    Process(PathBuf::from("/proc").join(name))
}

pub(crate) struct Process(PathBuf);

impl Process {
    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).unwrap_or_default()
    }

    fn number(&self, file: &str, field: &str) -> u64 {
        let text = self.read(file);
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    /// Processor time so far, seconds.
    pub(crate) fn cpu_s(&self) -> f64 {
        let stat = self.read("stat");
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        (ticks(11) + ticks(12)) / 100.0
    }

    /// The most memory so far, MB.
    pub(crate) fn peak_mb(&self) -> f64 {
        self.number("status", "VmHWM:") as f64 * 1024e-6
    }

    /// Memory now, MB.
    pub(crate) fn memory_mb(&self) -> f64 {
        self.number("status", "VmRSS:") as f64 * 1024e-6
    }

    /// Memory now without the pages of files, which the system takes back when it needs them, MB.
    pub(crate) fn own_mb(&self) -> f64 {
        (self.number("status", "VmRSS:") - self.number("status", "RssFile:")) as f64 * 1024e-6
    }

    /// Bytes that went to devices.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.number("io", "write_bytes:")
    }
}

/// The load of the machine over the last minute.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}

/// The congestion control of the system's TCP: over loopback, one that paces costs several times as much as one that does not.
pub(crate) fn congestion_control() -> String {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}
