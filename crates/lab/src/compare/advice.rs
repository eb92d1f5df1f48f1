//! Configuration for the settings of a protocol: keys of a node, and commands of the operating system, whose kernel
//! provides TCP for nodes and for most programs.

use super::Preset;
use crate::link::{LineFrames, LinkPath};
use crate::protocols::Protocol;
use crate::record::{Configuration, Key};
use crate::report::PageBlock;
use crate::toml_text;
use longwire_proto::tcp::config::{CongestionControl, IdleRestart, Profile};
use longwire_proto::time::Duration;
use longwire_settings::duration;
use longwire_towers::path::linux_6_as_installed;
use longwire_towers::{About, Medium};
use std::collections::BTreeSet;
use std::fmt::Write;
use toml::{Table, Value};

/// Default limit of the socket buffers that Linux grants on request (net.core.rmem_max and wmem_max), bytes.
const SOCKET_BYTES_MAX: u32 = 212_992;

/// Configuration that the settings of a protocol need.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Advice {
    /// Keys of the node configuration that differ from its defaults; without a node, the settings of the engines.
    settings: Table,
    /// Commands of the operating system, for both ends.
    commands: Vec<String>,
    /// TCP settings that no command can set, with the values of the simulated kernel.
    beyond: Vec<String>,
}

impl Advice {
    pub(super) fn of(settings: &Table, protocol: &Protocol) -> Advice {
        let mut advice = Advice {
            settings: toml_text::durations_written(&toml_text::difference(settings, protocol.defaults())),
            ..Advice::default()
        };
        for about in protocol.carrier.iter().map(|carrier| carrier.about()) {
            let Some(Value::Table(section)) = advice.settings.get_mut(about.section) else { continue };
            section
                .retain(|key, value| !about.negotiated.contains(&(key, value.as_str().unwrap_or_default())));
            if section.is_empty() {
                advice.settings.remove(about.section);
            }
        }
        advice.settings.remove("tcp");
        if let Some(Value::Table(tcp)) = settings.get("tcp") {
            let profile: Profile =
                toml_text::from_table(tcp.clone(), "[tcp]").expect("an assembly has read its settings");
            advice.tcp(&profile, protocol.carrier.is_some());
        }
        advice
    }

    pub(super) fn configuration(&self, protocol: &Protocol, path: &LinkPath) -> Configuration {
        let sections = self.sections(protocol, path);
        let kind = protocol.link_kind();
        let (node, engine) = match kind {
            Some(_) => (Some(sections), None),
            None => (None, Some(sections)),
        };
        let mut configuration = Configuration {
            kind,
            node,
            engine,
            system: self.commands.clone(),
            fixed_by_kernel: self.beyond.clone(),
            at_default: Vec::new(),
        };
        if let Some(kind) = kind {
            let mut others = keys_of_kind(kind, path);
            for setting in configuration.node_settings() {
                others.remove(&setting.key);
            }
            let defaults = toml_text::durations_written(protocol.defaults());
            let default = |key: Key| {
                let section = key.section.strip_prefix("tnc.").unwrap_or(&key.section);
                // The kernel sizes its buffers by itself.
                let known = defaults.get(section).filter(|_| section != "tcp");
                let value = known.and_then(|section| section.get(&key.name)).cloned();
                (key, value)
            };
            configuration.at_default = others.into_iter().map(default).collect();
        }
        configuration
    }

    /// Returns the settings by section; on a radio channel those of a node with its channel, and AX.25 at its TNC.
    fn sections(&self, protocol: &Protocol, path: &LinkPath) -> Table {
        let mut sections = self.settings.clone();
        if path.last().frames == LineFrames::Ax25Ui
            && let Some(keys) = sections.remove("ax25")
        {
            let tnc = Table::from_iter([("ax25".to_owned(), keys)]);
            sections.insert("tnc".to_owned(), Value::Table(tnc));
        }
        if let (Some(carrier), Some(radio)) = (protocol.carrier, &path.last().radio) {
            let channel = toml_text::parse(&radio.as_configured(path.last()), "[tnc.channel]");
            toml_text::merge(&mut sections, &channel.expect("a channel is written as TOML"));
            if let Some(Value::Table(mut keys)) = sections.remove("ax25") {
                if !carrier.about().media.contains(&Medium::Ax25) {
                    // UI frames have no window.
                    keys.retain(|key, _| key == "information-bytes-max");
                }
                if !keys.is_empty() {
                    let tnc = Table::from_iter([("ax25".to_owned(), Value::Table(keys))]);
                    let at_tnc = Table::from_iter([("tnc".to_owned(), Value::Table(tnc))]);
                    toml_text::merge(&mut sections, &at_tnc);
                }
            }
        }
        sections
    }

    /// Returns true if the defaults of nodes and systems are these settings.
    pub(super) fn is_empty(&self) -> bool {
        self.settings.is_empty() && self.commands.is_empty() && self.beyond.is_empty()
    }

    /// Adds the configuration of a current kernel, and of a node on it, for this TCP.
    fn tcp(&mut self, profile: &Profile, in_node: bool) {
        let installed = toml_text::to_table(&linux_6_as_installed());
        let differs = toml_text::difference(&toml_text::to_table(profile), &installed);
        let mut sockets = Table::new();
        let (mut sysctl, mut route) = (Vec::new(), Vec::new());
        for (key, value) in &differs {
            let millis = |time: Duration| time.as_nanos().div_ceil(1_000_000);
            let truth = |value: &Value| u8::from(value.as_bool() == Some(true));
            match key.as_str() {
                "send-buffer-bytes" | "receive-buffer-bytes" if in_node => {
                    sockets.insert(key.clone(), value.clone());
                }
                "send-buffer-bytes" => {
                    sysctl.push(format!("net.ipv4.tcp_wmem=\"4096 16384 {}\"", profile.send_buffer_bytes));
                }
                // Half of the buffer is available as window.
                "receive-buffer-bytes" => sysctl.push(format!(
                    "net.ipv4.tcp_rmem=\"4096 {} {}\"",
                    profile.receive_buffer_bytes.min(131_072),
                    u64::from(profile.receive_buffer_bytes) * 2
                )),
                "initial-window-segments" => {
                    let segments = profile.initial_window_segments;
                    route.push(format!("initcwnd {segments} initrwnd {segments}"));
                }
                "maximum-segment-bytes" => route.push(format!("advmss {value}")),
                "announced-bytes-max" => route.push(format!("window {value}")),
                "rto-minimum" => route.push(format!("rto_min {}ms", millis(profile.rto_minimum))),
                "timestamps" => sysctl.push(format!("net.ipv4.tcp_timestamps={}", truth(value))),
                "sack" => sysctl.push(format!("net.ipv4.tcp_sack={}", truth(value))),
                "duplicate-sack" => sysctl.push(format!("net.ipv4.tcp_dsack={}", truth(value))),
                "forward-rto" => sysctl.push(format!("net.ipv4.tcp_frto={}", 2 * truth(value))),
                "tail-loss-probe" => sysctl.push(format!("net.ipv4.tcp_early_retrans={}", 3 * truth(value))),
                "congestion-control" => {
                    let name = value.as_str().unwrap_or_default();
                    sysctl.push(format!("net.ipv4.tcp_congestion_control={name}"));
                }
                // A part of the kernel's CUBIC.
                "hystart" if profile.congestion_control == CongestionControl::Cubic => {}
                "window-scaling" => sysctl.push(format!("net.ipv4.tcp_window_scaling={}", truth(value))),
                "syn-retries" => sysctl.push(format!("net.ipv4.tcp_syn_retries={value}")),
                "retries" => sysctl.push(format!("net.ipv4.tcp_retries2={value}")),
                "idle-restart" if profile.idle_restart == IdleRestart::Off => {
                    sysctl.push("net.ipv4.tcp_slow_start_after_idle=0".to_owned());
                }
                "rto-maximum" if profile.rto_maximum <= Duration::from_secs(120) => {
                    // Available in Linux 6.15 and later.
                    sysctl.push(format!("net.ipv4.tcp_rto_max_ms={}", millis(profile.rto_maximum)));
                }
                _ => self.beyond.push(said(key, value)),
            }
        }
        for (key, bytes) in
            [("rmem_max", profile.receive_buffer_bytes), ("wmem_max", profile.send_buffer_bytes)]
        {
            let asked = if key == "rmem_max" { "receive-buffer-bytes" } else { "send-buffer-bytes" };
            if sockets.contains_key(asked) && bytes > SOCKET_BYTES_MAX {
                sysctl.push(format!("net.core.{key}={bytes}"));
            }
        }
        self.commands.extend(sysctl.into_iter().map(|setting| format!("sysctl -w {setting}")));
        if !route.is_empty() {
            self.commands.push(format!("ip route replace PEER via GATEWAY dev DEVICE {}", route.join(" ")));
        }
        if !sockets.is_empty() {
            self.settings.insert("tcp".to_owned(), Value::Table(sockets));
        }
    }

    /// Returns the commands of the operating system; `None` if there are none.
    fn system(&self) -> Option<String> {
        if self.commands.is_empty() && self.beyond.is_empty() {
            return None;
        }
        let mut text = String::new();
        if !self.commands.is_empty() {
            text += "# Run on both computers as root; `ip route get PEER` shows GATEWAY and DEVICE.\n";
            for command in &self.commands {
                let _ = writeln!(text, "{command}");
            }
        }
        if !self.beyond.is_empty() {
            let _ = writeln!(
                text,
                "# These cannot be set by a command; the kernel uses its own values: {}.",
                self.beyond.join(", ")
            );
        }
        Some(text)
    }
}

/// Formats a setting such as `rto-initial = "3900 ms"`, in whole milliseconds.
fn said(key: &str, value: &Value) -> String {
    let part =
        |name: &str| value.get(name).and_then(Value::as_integer).and_then(|part| u64::try_from(part).ok());
    match (part("secs"), part("nanos"), value) {
        (Some(secs), Some(nanos), _) => {
            let millis = Duration::from_millis(secs * 1000 + nanos.div_ceil(1_000_000));
            format!("{key} = \"{}\"", duration::exact(millis).unwrap_or_default())
        }
        (_, _, Value::Table(_)) => key.to_owned(),
        _ => format!("{key} = {value}"),
    }
}

/// Returns the keys that any settings for links of this kind change for this link.
fn keys_of_kind(kind: &str, path: &LinkPath) -> BTreeSet<Key> {
    let of_kind = Preset::fitting(path).filter(|preset| preset.protocol.link_kind() == Some(kind));
    let settings = of_kind.flat_map(|Preset { protocol, variant }| {
        let settings = (variant.settings)(&path.hops);
        let node = Some(Advice::of(&settings, protocol).sections(protocol, path));
        Configuration { node, ..Configuration::default() }.node_settings()
    });
    settings.map(|setting| setting.key).collect()
}

/// Blocks of the report with the settings of a node or another program, and the commands of the operating system.
pub(super) fn blocks(
    preset: Preset,
    advice: &Advice,
    caption: String,
    link: &str,
    path: &LinkPath,
) -> Vec<PageBlock> {
    let configured = PageBlock::Code { caption, text: text(preset, advice, link, path) };
    let system = advice.system().map(|text| PageBlock::Code {
        caption: format!("operating system settings for {} (TCP of the kernel)", preset.name()),
        text,
    });
    [configured].into_iter().chain(system).collect()
}

/// Settings that differ from the defaults.
fn text(preset: Preset, advice: &Advice, link: &str, path: &LinkPath) -> String {
    let Preset { protocol, variant } = preset;
    let mut said = advice.sections(protocol, path);
    let mut text = format!("# {}: {}.\n# For the link \"{link}\".\n", preset.name(), variant.about);
    if let (Some(carrier), Some(radio)) = (protocol.carrier, &path.last().radio) {
        let About { name: kind, section, is_group, .. } = carrier.about();
        let group = match is_group {
            true => format!(
                ", the callsign of the group, such as \"QST\", and {section}.members = [..], the nodes that must confirm \
                 each bundle"
            ),
            false => String::new(),
        };
        let _ = writeln!(text, "# In the [[link]], set kind = \"{kind}\"{group}.");
        text += "# Replace these sections of the [[tnc]].\n";
        text += &radio.as_configured(path.last());
        let tnc = said.remove("tnc");
        if let Some(Value::Table(keys)) = tnc.as_ref().and_then(|tnc| tnc.get("ax25")) {
            let _ = write!(text, "\n[tnc.ax25]\n{}", written(keys));
        }
        if !said.is_empty() {
            text.push('\n');
        }
    } else if advice.is_empty() {
        text += "# The defaults are best; no settings are needed.\n";
    } else if said.is_empty() {
        text += "# Set these in the operating system, see below.\n";
    }
    text + &written(&said)
}

fn written(table: &Table) -> String {
    toml::to_string(table).expect("settings are TOML")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::SHIPPED;
    use crate::protocols;

    fn advice(name: &str, link: &str) -> Advice {
        let path = LinkPath::load(link, std::path::Path::new(".")).expect("it is shipped");
        let (protocol, variant) = protocols::find(name).expect("it is in the table");
        Advice::of(&(variant.settings)(&path.hops), protocol)
    }

    #[test]
    fn what_is_as_installed_needs_nothing() {
        for name in ["tcp/linux-6", "tcpcl4/default"] {
            assert_eq!(advice(name, "cislunar"), Advice::default(), "{name}");
        }
        assert!(advice("ax25cl/tuned", "ax25-9600").is_empty());
    }

    /// The printed text of every protocol, read as TOML, has the sections of the JSON document.
    #[test]
    fn the_text_and_the_values_are_the_same_settings() {
        let mut count = 0;
        for (link, _) in SHIPPED {
            let path = LinkPath::load(link, std::path::Path::new(".")).expect("it is shipped");
            for preset in Preset::fitting(&path) {
                let advice = advice(&preset.name(), link);
                let configuration = advice.configuration(preset.protocol, &path);
                let said = text(preset, &advice, link, &path);
                let read = toml_text::parse(&said, &preset.name()).expect("it is TOML");
                let Configuration { kind, node, engine, .. } = &configuration;
                assert_eq!(node.as_ref().or(engine.as_ref()), Some(&read), "{} over {link}", preset.name());
                assert_eq!((kind.is_some(), engine.is_none()), (node.is_some(), node.is_some()));
                let is_radio = path.is_radio();
                let says_kind = kind.is_some_and(|kind| said.contains(&format!("set kind = \"{kind}\"")));
                assert_eq!(says_kind, is_radio && kind.is_some(), "{said}");
                count += 1;
            }
        }
        assert!(count > 50, "only {count} were looked at");
    }

    /// A key is either set or at its default.
    #[test]
    fn keys_that_only_other_settings_change_are_named() {
        let path = LinkPath::load("cislunar", std::path::Path::new(".")).expect("it is shipped");
        let of = |name: &str| {
            let (protocol, _) = protocols::find(name).expect("it is in the table");
            let configuration = advice(name, "cislunar").configuration(protocol, &path);
            let set = configuration.node_settings().into_iter().map(|setting| setting.key);
            let left = configuration.at_default.into_iter().map(|(key, _)| key);
            (set.collect::<BTreeSet<Key>>(), left.collect::<BTreeSet<Key>>())
        };
        let (set, left) = of("tcpcl4/default");
        assert!(set.is_empty(), "{set:?}");
        let key = |section: &str, name: &str| Key { section: section.into(), name: name.into() };
        for (section, name) in
            [("tcpcl", "versions"), ("tcpcl", "segment-bytes"), ("tcp", "send-buffer-bytes")]
        {
            assert!(left.contains(&key(section, name)), "{section}.{name}: {left:?}");
        }
        let (set, left_of_tuned) = of("tcpcl3/tuned");
        assert!(set.is_disjoint(&left_of_tuned) && set.contains(&key("tcpcl", "versions")));
        assert_eq!(set.union(&left_of_tuned).cloned().collect::<BTreeSet<Key>>(), left);
        let (protocol, _) = protocols::find("tcpcl4").unwrap();
        let default_of = |section: &str, name: &str| {
            let configuration = advice("tcpcl4/default", "cislunar").configuration(protocol, &path);
            let mut found =
                configuration.at_default.into_iter().filter(|(found, _)| *found == key(section, name));
            found.next().expect("another one changes it").1
        };
        assert_eq!(default_of("tcpcl", "segment-bytes"), Some(Value::Integer(65_536)));
        assert_eq!(default_of("tcpcl", "keepalive-timeout"), None, "it follows from `keepalive`");
        assert_eq!(default_of("tcp", "send-buffer-bytes"), None, "the kernel decides");
        let plain = advice("tcp/tuned", "cislunar").configuration(protocols::find("tcp").unwrap().0, &path);
        assert_eq!((plain.kind, plain.node, plain.at_default), (None, None, Vec::new()));
    }

    /// A node on a kernel has two of the engine's settings, and only if they differ from the kernel's own behaviour.
    #[test]
    fn a_node_is_told_its_buffers_and_the_kernel_the_rest() {
        let tuned = advice("tcpcl4/tuned", "cislunar");
        let tcp: Vec<&str> = tuned.settings["tcp"].as_table().unwrap().keys().map(String::as_str).collect();
        assert_eq!(tcp, ["receive-buffer-bytes", "send-buffer-bytes"]);
        assert_eq!(
            tuned.commands,
            [
                "sysctl -w net.core.rmem_max=262144",
                "sysctl -w net.core.wmem_max=524288",
                "ip route replace PEER via GATEWAY dev DEVICE initcwnd 27 initrwnd 27",
            ]
        );
        assert_eq!(tuned.beyond, ["rto-initial = \"4.153 s\""]);
        let plain = advice("tcp/tuned", "cislunar");
        assert!(plain.settings.is_empty(), "a program of its own has no such file");
        assert_eq!(plain.commands[0], "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 524288\"");
        let old = advice("tcpcl3/dtn2", "cislunar");
        assert_eq!(old.settings["tcp"]["receive-buffer-bytes"].as_integer(), Some(65_535));
        assert!(old.beyond.contains(&"recovery = \"fack\"".to_owned()), "{:?}", old.beyond);
    }
}
