//! Nodes of a group: one that sends to all others, which receive.

use super::{LIFETIME, LinkProvider, NodeSettings, OTHER_PORT, Tower};
use crate::bundle_observer::BundleObserver;
use crate::protocols::air::Stations;
use crate::protocols::node::ONWARD_LINK;
use crate::protocols::udp::UdpHost;
use crate::protocols::{NodePosition, ONWARD};
use crate::workload::FileTask;
use crate::workload::bundles::FilesOverBundles;
use longwire_proto::bp::agent::{self, Agent};
use longwire_proto::joint::{Beside, OnSecond, PassThrough, Stack};
use longwire_proto::service::{AppRequest, ManagementRequest, NextHop, SendOptions, Storage};
use longwire_sim::{Boot, NodeEngine};
use longwire_towers::{ChannelFacts, LinkFacts, Medium as CarrierMedium, Neighbours, Place, Plan, Provides};
use toml::{Table, Value};

/// Endpoint of all receivers, which belongs to no node.
const ENDPOINT: &str = "dtn://all/~files";

impl Tower {
    /// Creates the node at this position: the source at 0, otherwise a receiver.
    pub(super) fn group_node(&self, place: &NodePosition, boot: &Boot) -> NodeEngine<FileTask> {
        let is_source = place.position == 0;
        let neighbours = Stack::new(self.group_links(place, boot), self.group_provider(place));
        let watched = is_source.then_some((ONWARD_LINK, 0));
        let links = BundleObserver::new(neighbours, watched, place.bundles.clone());
        let links = links.recording(place.recorded_arrivals());
        let config = agent::Config { node: place.node_id(place.position), ..self.others.agent.clone() };
        let agent =
            Agent::new(config, boot.rng.fork("agent")).expect("node names are checked with the scenario");
        let ports = Beside { first: PassThrough::<Storage>::new(), second: links };
        let options = SendOptions { lifetime: LIFETIME, ..SendOptions::default() };
        let mut said = vec![ManagementRequest::SetClock { dtn_ms: boot.dtn_ms, steady: None }.into()];
        if is_source {
            let (pattern, via) = ("dtn://all/*".to_owned(), NextHop::Link(ONWARD_LINK));
            said.push(ManagementRequest::SetRoute { pattern, via, cost: 1 }.into());
        } else {
            said.push(AppRequest::Register { endpoint: ENDPOINT.to_owned() }.into());
        }
        // Over UDP, receivers listen.
        if is_source || self.medium == CarrierMedium::Ui {
            said.push(ManagementRequest::OpenLink { link: ONWARD_LINK }.into());
        }
        let files = FilesOverBundles::new(said, ENDPOINT.to_owned(), options);
        Box::new(Stack::new(files, Stack::new(agent, ports)))
    }

    fn group_links(&self, place: &NodePosition, boot: &Boot) -> Neighbours {
        let mut neighbours = Neighbours::new(self.carrier, boot.rng.fork(self.carrier.about().random_label));
        let plan = self.group_plan(place);
        neighbours.set(ONWARD_LINK, plan.clone());
        neighbours.answer(plan);
        neighbours
    }

    /// The plan of the link to the group. Only the source names members.
    fn group_plan(&self, place: &NodePosition) -> Plan {
        let (about, node_id) = (self.carrier.about(), place.node_id(place.position));
        let receivers = (1..place.names.len()).map(|position| Value::String(place.node_id(position)));
        let members: Vec<Value> = receivers.filter(|_| place.position == 0).collect();
        let mut own = Table::from_iter([("members".to_owned(), Value::Array(members))]);
        if about.multicast {
            own.insert("group".to_owned(), Value::Boolean(true));
        }
        let channel = place.radios[0].as_ref().map(|(parameters, _)| ChannelFacts {
            tnc: "",
            parameters: parameters.clone(),
            digipeaters: 0,
        });
        let to_group = channel.is_none();
        let facts = LinkFacts { node_id: &node_id, to_group, channel, own, ..LinkFacts::default() };
        self.carrier.plan(&self.section, &facts, Place::Experiment).expect("the settings are checked")
    }

    fn group_provider(&self, place: &NodePosition) -> LinkProvider {
        let NodeSettings { ax25, .. } = &self.others;
        match self.medium {
            CarrierMedium::Ui => Box::new(Provides(OnSecond(Stations::in_group(place, ax25)))),
            _ => {
                let port = self.carrier.about().port.unwrap_or(OTHER_PORT);
                Box::new(Provides(UdpHost::in_group(place, ONWARD, port)))
            }
        }
    }
}
