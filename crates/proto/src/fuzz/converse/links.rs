//! Links of a bundle agent: convergence layers to peers that send bundles, valid ones and others.

use super::app::ENDPOINTS;
use super::{LINKS, Script};
use crate::bp::generate::Generator;
use crate::bp::{AdminRecord, Bundle, BundleFlags, Eid, ReasonCode, StatusItem, StatusReport, v6};
use crate::fuzz::damage;
use crate::service::{
    BundlesIndication, BundlesRequest, DownReason, LinkId, RefuseReason, TransferFailure, TransferId,
};
use bytes::Bytes;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
struct Outgoing {
    sent: u64,
    acked: u64,
    last: bool,
    cancelled: bool,
}

#[derive(Debug, Default)]
struct Incoming {
    rest: Bytes,
    risen: u64,
    accepted: u64,
    /// The length was announced: the transfer ends there or not at all.
    announced: bool,
    last: bool,
}

/// One link.
#[derive(Debug, Default)]
struct Link {
    wanted: bool,
    up: bool,
    closing: bool,
    /// The link goes down: every transfer ends first.
    breaking: bool,
    room: u64,
    next: u64,
    outgoing: BTreeMap<TransferId, Outgoing>,
    incoming: BTreeMap<TransferId, Incoming>,
}

/// Provider of all links.
#[derive(Debug, Default)]
pub(super) struct Provider {
    links: BTreeMap<LinkId, Link>,
    /// Last bundle from the agent, for reports about it.
    heard: Option<Bytes>,
}

impl Provider {
    pub(super) fn hear(&mut self, (id, request): (LinkId, BundlesRequest)) {
        let link = self.links.entry(id).or_default();
        match request {
            BundlesRequest::Connect => {
                link.wanted = true;
                link.closing = false;
            }
            BundlesRequest::Close => {
                link.wanted = false;
                link.closing = link.up;
            }
            BundlesRequest::Open { transfer, .. } => {
                link.outgoing.insert(transfer, Outgoing::default());
            }
            BundlesRequest::Piece { transfer, data, last } => {
                link.room -= data.len() as u64;
                let outgoing = link.outgoing.get_mut(&transfer).expect("pieces follow an Open");
                outgoing.sent += data.len() as u64;
                outgoing.last = last;
                self.heard = Some(data);
            }
            BundlesRequest::Cancel { transfer } => {
                if let Some(outgoing) = link.outgoing.get_mut(&transfer) {
                    outgoing.cancelled = true;
                }
            }
            BundlesRequest::Accept { transfer, up_to } => {
                if let Some(incoming) = link.incoming.get_mut(&transfer) {
                    incoming.accepted = up_to;
                    if incoming.last && incoming.accepted == incoming.risen {
                        link.incoming.remove(&transfer);
                    }
                }
            }
            BundlesRequest::Refuse { transfer, .. } => drop(link.incoming.remove(&transfer)),
        }
    }

    pub(super) fn say(&mut self, script: &mut Script<'_>) -> Option<(LinkId, BundlesIndication)> {
        let id = script.pick(&LINKS)?;
        let heard = self.heard.clone();
        let link = self.links.entry(id).or_default();
        Some((id, link.say(id, heard, script)?))
    }
}

impl Link {
    fn say(
        &mut self,
        id: LinkId,
        heard: Option<Bytes>,
        script: &mut Script<'_>,
    ) -> Option<BundlesIndication> {
        if !self.up {
            self.up = self.wanted || id.is_incoming();
            self.next = 0;
            return self.up.then(|| BundlesIndication::Up {
                peer: script.pick(&ENDPOINTS).filter(|_| script.chance()).map(str::to_owned),
                interleave: script.chance(),
                transfer_bytes_max: if script.chance() { u64::MAX } else { 1 << script.below(12) },
            });
        }
        if self.breaking {
            return Some(self.come_down());
        }
        match script.below(16) {
            0 => {
                self.breaking = true;
                Some(self.come_down())
            }
            1..=3 => {
                self.room = (1 << script.below(14)) - 1;
                Some(BundlesIndication::Room(self.room))
            }
            4 | 5 => self.begin(heard, script),
            6..=9 => self.piece(script),
            10 => {
                let arriving: Vec<_> = self.incoming.keys().copied().collect();
                let transfer = script.pick(&arriving)?;
                self.incoming.remove(&transfer);
                Some(BundlesIndication::Lost { transfer })
            }
            _ => self.progress(script),
        }
    }

    /// Returns the end of one more transfer, or the end of the link.
    fn come_down(&mut self) -> BundlesIndication {
        if let Some((transfer, outgoing)) = self.outgoing.pop_first() {
            let reason = TransferFailure::LinkDown;
            return BundlesIndication::Failed { transfer, reason, acked: outgoing.acked };
        }
        if let Some((transfer, _)) = self.incoming.pop_first() {
            return BundlesIndication::Lost { transfer };
        }
        self.up = false;
        self.breaking = false;
        self.room = 0;
        let reason = if self.closing { DownReason::Closed } else { DownReason::KeepAlive };
        self.closing = false;
        BundlesIndication::Down { reason, retry: self.wanted }
    }

    fn begin(&mut self, heard: Option<Bytes>, script: &mut Script<'_>) -> Option<BundlesIndication> {
        if self.incoming.len() >= 8 {
            return None;
        }
        let transfer = TransferId(self.next);
        self.next += 1;
        let rest = arriving(heard, script);
        let announced = script.chance();
        let length = announced.then_some(rest.len() as u64);
        self.incoming.insert(transfer, Incoming { rest, announced, ..Default::default() });
        Some(BundlesIndication::Begin { transfer, length })
    }

    fn piece(&mut self, script: &mut Script<'_>) -> Option<BundlesIndication> {
        let arriving = self.incoming.iter().filter(|(_, incoming)| !incoming.last);
        let arriving: Vec<_> = arriving.map(|(transfer, _)| *transfer).collect();
        let transfer = script.pick(&arriving)?;
        let incoming = self.incoming.get_mut(&transfer)?;
        let length = incoming.rest.len().min(1 << script.below(11));
        let data = incoming.rest.split_to(length);
        // A transfer without an announced length may end anywhere.
        let early = !incoming.announced && script.below(16) == 0;
        incoming.last = incoming.rest.is_empty() || early;
        incoming.risen += length as u64;
        Some(BundlesIndication::Piece { transfer, data, last: incoming.last })
    }

    fn progress(&mut self, script: &mut Script<'_>) -> Option<BundlesIndication> {
        let open: Vec<_> = self.outgoing.keys().copied().collect();
        let transfer = script.pick(&open)?;
        let outgoing = self.outgoing.get_mut(&transfer)?;
        outgoing.acked += (outgoing.sent - outgoing.acked) >> script.below(4);
        let acked = outgoing.acked;
        let reason = match script.below(16) {
            0 => script.pick(&[
                RefuseReason::NoResources,
                RefuseReason::NotAcceptable,
                RefuseReason::Completed,
            ]),
            _ => None,
        };
        if outgoing.cancelled {
            self.outgoing.remove(&transfer);
            return Some(BundlesIndication::Failed { transfer, reason: TransferFailure::Cancelled, acked });
        }
        if let Some(reason) = reason {
            self.outgoing.remove(&transfer);
            return Some(BundlesIndication::Failed {
                transfer,
                reason: TransferFailure::Refused(reason),
                acked,
            });
        }
        if outgoing.last && script.chance() {
            self.outgoing.remove(&transfer);
            return Some(BundlesIndication::Sent { transfer });
        }
        Some(BundlesIndication::Acked { transfer, up_to: acked })
    }
}

/// Returns a bundle of a peer: legal, for this node or another, a report, damaged, or arbitrary bytes.
fn arriving(heard: Option<Bytes>, script: &mut Script<'_>) -> Bytes {
    let choice = script.below(12);
    if choice >= 8 {
        return arriving_v6(choice, heard, script);
    }
    let mut generator = Generator::new(script.rng());
    if choice == 0 {
        return script.bytes(200);
    }
    let mut bundle = generator.bundle();
    if choice < 6
        && let Ok(destination) = script.pick(&ENDPOINTS).unwrap_or_default().parse()
    {
        bundle.head.primary.destination = destination;
        // Long enough for the bundle to be processed before it expires.
        bundle.head.primary.lifetime_ms |= 1 << 38;
        if bundle.head.primary.fragment.is_some() {
            // Fragments of a few payloads, so that some of them belong together.
            bundle.head.primary.timestamp.sequence %= 2;
            bundle.head.primary.timestamp.time.0 %= 3;
        }
    }
    match choice {
        4 => bundle = report(bundle, heard),
        5 => return damage(&bundle.to_bytes(), &mut generator.rng).into(),
        _ => {}
    }
    bundle.to_bytes()
}

/// As [`arriving`], in version 6: legal, damaged, or a custody signal.
fn arriving_v6(choice: u64, heard: Option<Bytes>, script: &mut Script<'_>) -> Bytes {
    let mut generator = v6::generate::Generator::new(script.rng());
    let mut bundle = generator.bundle();
    let text = script.pick(&ENDPOINTS).unwrap_or_default();
    let old = bundle.head.primary.clone();
    let destination = Eid::from_uri(text).unwrap_or_else(|_| old.destination().clone());
    let mut primary = v6::PrimaryBlock::new(destination, old.source().clone(), old.report_to().clone(), true);
    (primary.flags, primary.fragment) = (old.flags, old.fragment);
    primary.lifetime_s = old.lifetime_s | 1 << 28;
    if primary.fragment.is_some() {
        primary.sequence %= 2;
    }
    // The references of the blocks were into the old dictionary.
    bundle.head.blocks.iter_mut().chain(&mut bundle.head.after).for_each(|block| block.references = None);
    bundle.head.primary = primary;
    if script.chance() {
        bundle.head.set_custodian(generator.endpoint());
    }
    match choice {
        8 => damage(&bundle.to_bytes(), &mut generator.rng).into(),
        9 => signal(heard, &mut generator),
        _ => bundle.to_bytes(),
    }
}

/// Returns a custody signal about a bundle of the agent, or about an unknown one.
fn signal(heard: Option<Bytes>, generator: &mut v6::generate::Generator) -> Bytes {
    let mut record = generator.admin_record();
    let subject = heard.and_then(|bytes| v6::decode_head(&bytes, &crate::bp::DecodePolicy::STORED).ok());
    if let (v6::AdminRecord::CustodySignal(signal), Some((head, _))) = (&mut record, subject) {
        let primary = &head.primary;
        signal.subject.source = primary.source().clone();
        signal.subject.created_s = primary.created_s;
        signal.subject.sequence = primary.sequence;
        signal.subject.fragment = primary.fragment.map(|fragment| (fragment.offset, head.payload.length));
    }
    let here = "dtn://here/".parse().expect("a node id");
    let mut primary = v6::PrimaryBlock::new(here, generator.endpoint(), Eid::Null, true);
    primary.flags = v6::BundleFlags::ADMINISTRATIVE_RECORD | v6::BundleFlags::MUST_NOT_FRAGMENT;
    primary.sequence = generator.number();
    primary.lifetime_s = 1 << 40;
    v6::Bundle::new(v6::Head::new(primary, 0), record.to_bytes()).to_bytes()
}

/// Returns a status report about a bundle of the agent, or about an unknown one.
fn report(mut bundle: Bundle, heard: Option<Bytes>) -> Bundle {
    let subject =
        heard.and_then(|bytes| crate::bp::decode_head(&bytes, &crate::bp::DecodePolicy::STORED).ok());
    let (source, timestamp) = match &subject {
        Some((head, _)) => (head.primary.source.clone(), head.primary.timestamp),
        None => (bundle.head.primary.source.clone(), bundle.head.primary.timestamp),
    };
    let record = AdminRecord::StatusReport(StatusReport {
        received: StatusItem::NotAsserted,
        forwarded: StatusItem::NotAsserted,
        delivered: StatusItem::Asserted,
        deleted: StatusItem::NotAsserted,
        further: Vec::new(),
        reason: ReasonCode::NoAdditionalInformation,
        source,
        timestamp,
        fragment: None,
    });
    let must_not_fragment = bundle.head.primary.flags.contains(BundleFlags::MUST_NOT_FRAGMENT);
    bundle.head.primary.flags = BundleFlags::ADMINISTRATIVE_RECORD;
    if must_not_fragment {
        bundle.head.primary.flags |= BundleFlags::MUST_NOT_FRAGMENT;
    }
    bundle.head.primary.fragment = None;
    bundle.head.payload.flags = crate::bp::BlockFlags::NONE;
    bundle.head.blocks.iter_mut().for_each(|block| block.flags = crate::bp::BlockFlags::NONE);
    bundle.head.primary.destination = "dtn://here/".parse().expect("a node id");
    Bundle::new(bundle.head, record.to_bytes())
}
