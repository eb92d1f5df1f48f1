//! TCP between two nodes: time-sequence graph and goodput, from the frames at the sender.
//!
//! A conversation consists of all connections that one node made to one port of another, one after the other, as seen
//! by the sender of the data: segments when they left, acknowledgements when they arrived. Positions count from the SYN
//! of the first connection; a later connection continues at the end of the previous one.
//!
//! Goodput is acknowledged bytes divided by time. `with keep-alives` counts from the first segment to the last; `data
//! only` from the first large segment (at least half of the largest) until the last large one is acknowledged, which
//! excludes the small segments before and after.

use super::{CapturedFrame, Moment, moments, tcp};
use crate::report::{Axis, Cell, Column, Plot, PlotSeries, Point, Shape, Table};
use longwire_proto::tcp::wire::{Flags, Ipv4Header, Segment};
use longwire_proto::time::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// TCP traffic of two nodes at one port, in the direction with more data.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Node that sent the data.
    pub from: String,
    /// Node that received the data.
    pub to: String,
    /// Port of the called node.
    pub port: u16,
    /// Number of connections, including failed attempts.
    pub connections: usize,
    /// Segments of the sender, in order of time.
    pub sent: Vec<SegmentSeen>,
    /// Acknowledgements received by the sender, in order of time.
    pub heard: Vec<AckSeen>,
}

/// Segment that left the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentSeen {
    /// Time of departure.
    pub at: Instant,
    /// Position of its first byte, or of the SYN or FIN.
    pub start: u64,
    /// Position after its last byte.
    pub end: u64,
    /// Bytes of data.
    pub data_bytes: u32,
    /// True if any of its bytes had left before.
    pub again: bool,
    /// Control flags: SYN, FIN, RST.
    pub flags: Flags,
}

/// Acknowledgement that reached the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckSeen {
    /// Time of arrival.
    pub at: Instant,
    /// Position up to which everything is acknowledged.
    pub up_to: u64,
    /// Window edge: position up to which the sender may send.
    pub window_end: u64,
    /// True if the receiver advertises a window of zero.
    pub zero_window: bool,
}

/// Returns the conversations of a capture, in the order of their first segments.
pub fn conversations(frames: &[CapturedFrame]) -> Vec<Conversation> {
    let connections = Connections::of(frames).list;
    let mut order: Vec<(String, String, u16)> = Vec::new();
    let mut groups: BTreeMap<(String, String, u16), Vec<TracedConnection>> = BTreeMap::new();
    for connection in connections {
        let key = (connection.nodes[0].clone(), connection.nodes[1].clone(), connection.ends.3);
        if !groups.contains_key(&key) {
            order.push(key.clone());
        }
        groups.entry(key).or_default().push(connection);
    }
    order.iter().map(|key| joined(&groups[key])).collect()
}

/// Address and port of the caller, then of the called node.
type Ends = (Ipv4Addr, u16, Ipv4Addr, u16);

/// One connection in both directions; side 0 is the caller.
struct TracedConnection {
    ends: Ends,
    nodes: [String; 2],
    sides: [TracedSide; 2],
}

/// Segments sent and acknowledgements received by one side of a connection.
#[derive(Default)]
struct TracedSide {
    first: Option<u32>,
    highest: u64,
    window_shift: u8,
    sent: Vec<SegmentSeen>,
    heard: Vec<AckSeen>,
}

impl TracedSide {
    fn data_bytes(&self) -> u64 {
        self.sent.iter().map(|sent| u64::from(sent.data_bytes)).sum()
    }

    /// Converts a sequence number to the position nearest to the data sent so far.
    fn position(&self, sequence: u32) -> u64 {
        let relative = sequence.wrapping_sub(self.first.unwrap_or(sequence));
        let offset = relative.wrapping_sub(self.highest as u32) as i32;
        self.highest.saturating_add_signed(i64::from(offset))
    }

    fn sends(&mut self, at: Instant, segment: &Segment) {
        self.first.get_or_insert(segment.sequence);
        if segment.flags.contains(Flags::SYN) {
            self.window_shift = segment.options.window_scale.unwrap_or(0).min(14);
        }
        let start = self.position(segment.sequence);
        let end = start + u64::from(segment.length());
        let again = end > start && start < self.highest;
        self.highest = self.highest.max(end);
        let data_bytes = segment.payload.len() as u32;
        self.sent.push(SegmentSeen { at, start, end, data_bytes, again, flags: segment.flags });
    }

    fn hears(&mut self, at: Instant, segment: &Segment, shift: u8) {
        if self.first.is_none() || !segment.flags.contains(Flags::ACK) {
            return;
        }
        let up_to = self.position(segment.acknowledgement);
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { shift };
        let window_end = up_to + (u64::from(segment.window) << shift);
        let zero_window = segment.window == 0 && !segment.flags.contains(Flags::RST);
        self.heard.push(AckSeen { at, up_to, window_end, zero_window });
    }
}

/// All connections of a capture, in the order of their first segments.
#[derive(Default)]
struct Connections {
    list: Vec<TracedConnection>,
    /// Newest connection between two ends.
    newest: BTreeMap<Ends, usize>,
    /// Node of an address: the first one that sent from it, not those that forwarded.
    home: BTreeMap<Ipv4Addr, String>,
}

impl Connections {
    fn of(frames: &[CapturedFrame]) -> Connections {
        let mut all = Connections::default();
        for (at, moment, frame) in moments(frames) {
            let sent = matches!(moment, Moment::Sent);
            let bytes = frame.damaged.as_ref().filter(|_| !sent).unwrap_or(&frame.bytes);
            match (moment, tcp(bytes)) {
                (Moment::Sent, Some((ip, segment))) => all.leaves(at, &ip, &segment, frame),
                (Moment::Heard, Some((ip, segment))) => all.arrives(at, &ip, &segment, frame),
                _ => {}
            }
        }
        all
    }

    fn leaves(&mut self, at: Instant, ip: &Ipv4Header, segment: &Segment, frame: &CapturedFrame) {
        let home = self.home.entry(ip.source).or_insert_with(|| frame.from.node.clone());
        if *home != frame.from.node {
            return;
        }
        let (index, side) = self.place(ip, segment, frame);
        self.list[index].sides[side].sends(at, segment);
    }

    fn arrives(&mut self, at: Instant, ip: &Ipv4Header, segment: &Segment, frame: &CapturedFrame) {
        if self.home.get(&ip.destination) != Some(&frame.to.node) {
            return;
        }
        let (index, side) = self.place(ip, segment, frame);
        let shift = self.list[index].sides[side].window_shift;
        self.list[index].sides[1 - side].hears(at, segment, shift);
    }

    /// Returns the connection of a segment and the side that sent it. A SYN with a different sequence number starts a
    /// new connection.
    fn place(&mut self, ip: &Ipv4Header, segment: &Segment, frame: &CapturedFrame) -> (usize, usize) {
        let called = (ip.source, segment.source_port, ip.destination, segment.destination_port);
        let calling = (ip.destination, segment.destination_port, ip.source, segment.source_port);
        if let Some(&index) = self.newest.get(&calling) {
            return (index, 1);
        }
        if let Some(&index) = self.newest.get(&called) {
            let same = self.list[index].sides[0].first == Some(segment.sequence);
            if same || !segment.flags.contains(Flags::SYN) {
                return (index, 0);
            }
        }
        let nodes = [frame.from.node.clone(), frame.to.node.clone()];
        self.newest.insert(called, self.list.len());
        self.list.push(TracedConnection { ends: called, nodes, sides: Default::default() });
        (self.list.len() - 1, 0)
    }
}

/// Joins connections one after the other, in the direction with more data.
fn joined(connections: &[TracedConnection]) -> Conversation {
    let bytes = |side: usize| connections.iter().map(|c| c.sides[side].data_bytes()).sum::<u64>();
    let way = usize::from(bytes(1) > bytes(0));
    let mut out = Conversation {
        from: connections[0].nodes[way].clone(),
        to: connections[0].nodes[1 - way].clone(),
        port: connections[0].ends.3,
        connections: connections.len(),
        ..Conversation::default()
    };
    let mut base = 0;
    for connection in connections {
        let side = &connection.sides[way];
        out.sent.extend(side.sent.iter().map(|s| SegmentSeen {
            start: base + s.start,
            end: base + s.end,
            ..*s
        }));
        let moved = |h: &AckSeen| AckSeen { up_to: base + h.up_to, window_end: base + h.window_end, ..*h };
        out.heard.extend(side.heard.iter().map(moved));
        base += side.highest;
    }
    out.sent.sort_by_key(|sent| sent.at);
    out.heard.sort_by_key(|heard| heard.at);
    out
}

impl Conversation {
    /// Name such as `MX to RX, port 4556`.
    pub fn name(&self) -> String {
        format!("{} to {}, port {}", self.from, self.to, self.port)
    }

    /// Number of segments with data that had left before.
    pub fn segments_again(&self) -> usize {
        self.sent.iter().filter(|sent| sent.again && sent.data_bytes > 0).count()
    }

    /// Number of retransmission episodes: consecutive retransmitted segments count once.
    pub fn episodes(&self) -> usize {
        let data = self.sent.iter().filter(|sent| sent.data_bytes > 0);
        let mut before = false;
        data.filter(|sent| !std::mem::replace(&mut before, sent.again) && sent.again).count()
    }

    /// Acknowledged bytes per second from the first segment to the last acknowledgement, including keep-alives.
    pub fn goodput_with_keep_alives(&self) -> Option<f64> {
        let (first, last) = (self.sent.first()?.at, self.heard.last()?.at);
        rate(self.acknowledged(first, last), first, last)
    }

    /// Acknowledged bytes per second during the large segments.
    pub fn goodput_of_data(&self) -> Option<f64> {
        let (first, last) = self.data_period()?;
        rate(self.acknowledged(first, last), first, last)
    }

    /// Period from the first large segment until all large ones are acknowledged, or the last acknowledgement.
    pub fn data_period(&self) -> Option<(Instant, Instant)> {
        let largest = self.sent.iter().map(|sent| sent.data_bytes).max().filter(|&bytes| bytes > 0)?;
        let mut large = self.sent.iter().filter(|sent| sent.data_bytes * 2 >= largest);
        let first = large.next()?;
        let end = large.map(|sent| sent.end).fold(first.end, u64::max);
        let done = self.heard.iter().find(|heard| heard.up_to >= end).or(self.heard.last())?;
        Some((first.at, done.at.max(first.at)))
    }

    /// Growth of the acknowledged position between two times, excluding the first.
    fn acknowledged(&self, first: Instant, last: Instant) -> u64 {
        let upto = |moment: Instant| {
            let heard = self.heard.iter().take_while(|heard| heard.at <= moment);
            heard.map(|heard| heard.up_to).fold(0, u64::max)
        };
        upto(last).saturating_sub(upto(first))
    }

    /// Table of counters for the page.
    pub fn facts(&self) -> Table {
        let columns = [Column::text("what"), Column::number("value", ""), Column::text("unit")];
        let mut table = Table::new("In numbers", columns);
        let data = self.sent.iter().filter(|sent| sent.data_bytes > 0);
        let bytes = |again: bool| {
            let sent = self.sent.iter().filter(|sent| sent.again == again);
            sent.map(|sent| u64::from(sent.data_bytes)).sum::<u64>() as f64
        };
        let mut count = |what: &str, value: f64, unit: &str| {
            table.row([Cell::text(what), Cell::number(value), Cell::text(unit)]);
        };
        count("connections, including failed attempts", self.connections as f64, "");
        count("segments with data", data.count() as f64, "");
        count("data bytes, first transmissions", bytes(false), "byte");
        count("retransmitted data segments", self.segments_again() as f64, "");
        count("retransmitted data bytes", bytes(true), "byte");
        count("retransmission episodes", self.episodes() as f64, "");
        count("acknowledgements received", self.heard.len() as f64, "");
        let rates = [
            ("goodput with keep-alives", self.goodput_with_keep_alives()),
            ("goodput without keep-alives", self.goodput_of_data()),
        ];
        for (what, value) in rates {
            if let Some(value) = value {
                count(what, value, "byte/s");
            }
        }
        table
    }

    /// Time-sequence graph: departures and acknowledgements.
    pub fn time_sequence(&self) -> Plot {
        let time = |at: Instant| at.as_secs_f64();
        let span = |sent: &SegmentSeen| Point::span(time(sent.at), sent.start as f64, sent.end as f64);
        let data = |again: bool| {
            let sent = self.sent.iter().filter(move |sent| sent.data_bytes > 0 && sent.again == again);
            sent.map(span).collect::<Vec<Point>>()
        };
        let control = |flag: Flags| {
            let sent = self.sent.iter().filter(move |sent| sent.flags.contains(flag));
            sent.map(|sent| Point::new(time(sent.at), sent.start as f64)).collect::<Vec<Point>>()
        };
        let heard = |value: fn(&AckSeen) -> u64| {
            self.heard
                .iter()
                .map(|heard| Point::new(time(heard.at), value(heard) as f64))
                .collect::<Vec<Point>>()
        };
        let again = data(true);
        let marks = again.iter().map(|p| Point::new(p.x, p.until.unwrap_or(p.y))).collect();
        let zero = self.heard.iter().filter(|heard| heard.zero_window);
        let zero = zero.map(|heard| Point::new(time(heard.at), heard.up_to as f64)).collect();
        let series = [
            self.window(),
            PlotSeries::new("acknowledged", heard(|h| h.up_to)).shaped(Shape::Steps).styled(2),
            PlotSeries::new("data", data(false)).shaped(Shape::Spans).styled(0),
            PlotSeries::new("retransmitted", again).shaped(Shape::Spans).styled(1),
            PlotSeries::new("retransmitted", marks).shaped(Shape::Letter('R')).styled(1),
            PlotSeries::new("SYN", control(Flags::SYN)).shaped(Shape::Letter('S')).styled(6),
            PlotSeries::new("FIN", control(Flags::FIN)).shaped(Shape::Letter('F')).styled(6),
            PlotSeries::new("RST", control(Flags::RST)).shaped(Shape::Letter('X')).styled(6),
            PlotSeries::new("window closed", zero).shaped(Shape::Letter('Z')).styled(3),
        ];
        let plot = Plot::new(
            format!("Time and sequence: {}", self.name()),
            Axis::new("time", "s"),
            Axis::new("sequence number", "byte"),
        );
        let plot = plot.captioned(
            "Each vertical line is a segment, from its first to its last byte, at the time it was sent. The steps \
             are the acknowledged bytes and the edge of the send window, as known to the sender.",
        );
        series.into_iter().filter(|series| !series.points.is_empty()).fold(plot, Plot::with)
    }

    /// Edge of the send window, clipped where it would compress everything else.
    fn window(&self) -> PlotSeries {
        let highest = self.sent.iter().map(|sent| sent.end).fold(0, u64::max);
        let top = highest + highest / 4;
        let cut = self.heard.iter().any(|heard| heard.window_end > top);
        let name = if cut { "window edge (clipped)" } else { "window edge" };
        let point = |h: &AckSeen| Point::new(h.at.as_secs_f64(), h.window_end.min(top) as f64);
        PlotSeries::new(name, self.heard.iter().map(point).collect()).shaped(Shape::FaintSteps)
    }

    /// Plot of acknowledged bytes per second: for each second, and the average so far.
    pub fn goodput(&self) -> Plot {
        let plot = Plot::new(
            format!("Goodput: {}", self.name()),
            Axis::new("time", "s"),
            Axis::new("goodput", "byte/s").from_zero(),
        );
        let Some((first, last)) = self.sent.first().map(|s| s.at).zip(self.heard.last().map(|h| h.at)) else {
            return plot;
        };
        let mut plot = plot
            .captioned(
                "Bytes acknowledged, as seen by the sender. Averages start at the first segment and at the first \
                 large segment.",
            )
            .with(PlotSeries::new("each second", self.each_second(first, last)).shaped(Shape::Bars).styled(5));
        let whole = self.average(first, last);
        plot = plot.with(PlotSeries::new("average, with keep-alives", whole).shaped(Shape::Trace).styled(1));
        if let Some((first, last)) = self.data_period() {
            let data = self.average(first, last);
            plot = plot.with(PlotSeries::new("average, data only", data).shaped(Shape::Trace).styled(0));
        }
        plot
    }

    /// Growth of the acknowledged position per second (or in longer steps if a thousand seconds are not enough),
    /// without seconds that have none.
    fn each_second(&self, first: Instant, last: Instant) -> Vec<Point> {
        const STEPS_MAX: f64 = 1000.0;
        let step = ((last - first).as_secs_f64() / STEPS_MAX).ceil().max(1.0);
        let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
        for (at, growth) in self.growth() {
            *bins.entry((at.as_secs_f64() / step) as u64).or_default() += growth;
        }
        bins.iter().map(|(bin, bytes)| Point::new((*bin as f64 + 0.5) * step, *bytes as f64 / step)).collect()
    }

    fn average(&self, first: Instant, last: Instant) -> Vec<Point> {
        let mut sum = 0;
        let mut out = vec![Point::new(first.as_secs_f64(), 0.0)];
        for (at, growth) in self.growth().filter(|(at, _)| first < *at && *at <= last) {
            sum += growth;
            out.push(Point::new(at.as_secs_f64(), sum as f64 / (at - first).as_secs_f64()));
        }
        let sum = sum as f64;
        out.extend(rate(sum as u64, first, last).map(|rate| Point::new(last.as_secs_f64(), rate)));
        out
    }

    /// Times and amounts of the growth of the acknowledged position.
    fn growth(&self) -> impl Iterator<Item = (Instant, u64)> {
        let mut highest = 0;
        self.heard.iter().filter_map(move |heard| {
            let growth = heard.up_to.saturating_sub(highest);
            highest = highest.max(heard.up_to);
            (growth > 0).then_some((heard.at, growth))
        })
    }
}

fn rate(bytes: u64, first: Instant, last: Instant) -> Option<f64> {
    let seconds = last.saturating_since(first).as_secs_f64();
    (seconds > 0.0).then(|| bytes as f64 / seconds)
}
