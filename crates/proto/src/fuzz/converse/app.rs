//! Applications of a bundle agent.

use super::{LINKS, Script, ScriptedSide};
use crate::service::{
    AppIndication, AppRequest, BpaIndication, BpaRequest, BundleVersion, Contact, DeliveryId,
    ManagementRequest, NextHop, Priority, SendId, SendOptions,
};
use crate::time::Duration;
use std::collections::BTreeMap;

/// Endpoints here, elsewhere, of groups, without a node, and invalid ones.
pub(super) const ENDPOINTS: [&str; 8] = [
    "dtn://here/in",
    "dtn://here/out",
    "dtn://there/in",
    "ipn:7.1",
    "dtn://all/~group",
    "dtn:none",
    "ipn:!.3",
    "dtn:",
];

/// Maximum number of reads of a delivery that the agent keeps waiting.
pub(super) const READS_MAX: usize = 2;

#[derive(Debug, Default)]
struct Sending {
    length: u64,
    handed: u64,
    cancelled: bool,
}

#[derive(Debug, Default)]
struct Delivery {
    length: u64,
    taken: bool,
    /// Reads that are not answered in full: their progress, and their end.
    reads: Vec<(u64, u64)>,
}

/// Scripted requests through [`Bpa`](crate::service::Bpa).
#[derive(Debug, Default)]
pub(super) struct User {
    room: u64,
    next: u64,
    dtn_ms: u64,
    sends: BTreeMap<SendId, Sending>,
    deliveries: BTreeMap<DeliveryId, Delivery>,
}

impl ScriptedSide<BpaIndication, BpaRequest> for User {
    fn hear(&mut self, indication: BpaIndication) {
        let BpaIndication::App(indication) = indication else { return };
        match indication {
            AppIndication::Room(room) => self.room = room,
            AppIndication::Sent { send } | AppIndication::Failed { send, .. } => {
                self.sends.remove(&send);
            }
            AppIndication::Delivered { delivery, length, .. } => {
                self.deliveries.entry(delivery).or_default().length = length;
            }
            AppIndication::Data { delivery, offset, data } => {
                let delivery = self.deliveries.get_mut(&delivery).expect("data belong to a delivery");
                let read = delivery.reads.iter_mut().find(|(at, _)| *at == offset);
                read.expect("data were asked for").0 += data.len() as u64;
                delivery.reads.retain(|(at, end)| at < end);
            }
            AppIndication::Gone { delivery, .. } => drop(self.deliveries.remove(&delivery)),
            _ => {}
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<BpaRequest> {
        let endpoint = |script: &mut Script<'_>| script.pick(&ENDPOINTS).map(str::to_owned);
        Some(match script.below(16) {
            0 => AppRequest::Register { endpoint: endpoint(script)? }.into(),
            1 => AppRequest::Unregister { endpoint: endpoint(script)? }.into(),
            2 => {
                // The clock of a node may be set to any value, or removed.
                self.dtn_ms = self.dtn_ms.max(1 << 39) + script.number() % 100_000;
                ManagementRequest::SetClock { dtn_ms: script.chance().then_some(self.dtn_ms), steady: None }
                    .into()
            }
            3 => {
                let pattern =
                    script.pick(&["*", "dtn://there/*", "ipn:7.*", "dtn://here/in", ""])?.to_owned();
                let via = match script.below(3) {
                    0 => NextHop::Node(endpoint(script)?),
                    _ => NextHop::Link(script.pick(&LINKS)?),
                };
                ManagementRequest::SetRoute { pattern, via, cost: script.below(4) as u32 }.into()
            }
            4 => ManagementRequest::OpenLink { link: script.pick(&LINKS)? }.into(),
            5 if script.chance() => ManagementRequest::Watch { on: script.chance() }.into(),
            5 if script.chance() => ManagementRequest::CloseLink { link: script.pick(&LINKS)? }.into(),
            5 => {
                ManagementRequest::SetContacts { link: script.pick(&LINKS)?, contacts: self.contacts(script) }
                    .into()
            }
            6..=8 => {
                let send = SendId(self.next);
                self.next += 1;
                let length = (1 << script.below(12)) - 1;
                self.sends.insert(send, Sending { length, ..Default::default() });
                let (destination, options) = (endpoint(script)?, options(script));
                AppRequest::Send { send, destination, length, options }.into()
            }
            9..=11 => self.piece(script)?.into(),
            12 => {
                let open: Vec<_> = self.sends.iter().filter(|(_, sending)| !sending.cancelled).collect();
                let send = script.pick(&open).map(|(send, _)| *send)?;
                self.sends.get_mut(&send)?.cancelled = true;
                AppRequest::Cancel { send }.into()
            }
            choice => {
                let waiting: Vec<_> =
                    self.deliveries.iter().filter(|(_, delivery)| !delivery.taken).collect();
                let id = script.pick(&waiting).map(|(id, _)| *id)?;
                let delivery = self.deliveries.get_mut(&id)?;
                if choice == 15 {
                    delivery.taken = true;
                    return Some(AppRequest::Taken { delivery: id }.into());
                }
                // The agent keeps no further reads waiting.
                if delivery.reads.len() >= READS_MAX {
                    return None;
                }
                let (offset, length) = (delivery.length >> script.below(4), 1 << script.below(12));
                let end = delivery.length.min(offset + u64::from(length));
                delivery.reads.extend((offset < end).then_some((offset, end)));
                AppRequest::Read { delivery: id, offset, length }.into()
            }
        })
    }
}

impl User {
    fn piece(&mut self, script: &mut Script<'_>) -> Option<AppRequest> {
        let open =
            self.sends.iter().filter(|(_, sending)| !sending.cancelled && sending.handed < sending.length);
        let open: Vec<_> = open.map(|(send, _)| *send).collect();
        let send = script.pick(&open)?;
        let sending = self.sends.get_mut(&send)?;
        let bytes = self.room.min(sending.length - sending.handed).min(1 << script.below(12));
        if bytes == 0 {
            return None;
        }
        self.room -= bytes;
        sending.handed += bytes;
        Some(AppRequest::Piece { send, data: vec![0x5a; bytes as usize].into() })
    }

    fn contacts(&self, script: &mut Script<'_>) -> Vec<Contact> {
        let mut end = self.dtn_ms;
        let mut contact = |_| {
            let start_dtn_ms = end + script.below(200) * 100;
            end = start_dtn_ms + 1 + script.below(200) * 100;
            Contact { start_dtn_ms, end_dtn_ms: end, ..Contact::default() }
        };
        (0..2).map(&mut contact).collect()
    }
}

fn options(script: &mut Script<'_>) -> SendOptions {
    let flags = script.byte();
    SendOptions {
        priority: script.pick(&[Priority::Bulk, Priority::Normal, Priority::Expedited]).unwrap_or_default(),
        lifetime: Duration::from_millis(1 << script.below(30)),
        report_delivery: flags & 1 != 0,
        report_reception: flags & 2 != 0,
        report_forwarding: flags & 4 != 0,
        report_deletion: flags & 8 != 0,
        must_not_fragment: flags & 16 != 0,
        hop_limit: (flags & 32 != 0).then_some(script.byte()),
        report_to: (flags & 64 != 0).then(|| "dtn://here/out".to_owned()),
        source: (flags & 128 != 0).then(|| script.pick(&ENDPOINTS).unwrap_or_default().to_owned()),
        created: (flags & 6 == 6).then(|| (1 + script.below(3), script.below(3)).into()),
        version: script.pick(&[None, Some(BundleVersion::V6), Some(BundleVersion::V7)]).flatten(),
        custody: flags & 3 == 3,
        report_custody: flags & 5 == 5,
    }
}
