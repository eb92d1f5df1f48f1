#!/usr/bin/env python3
"""The TCP of ns-3 on the path of the AeroTP paper: 10 Gbit/s, 5 Mbit/s with bit errors both ways and 10 ms, 10 Gbit/s.

    python3 -m venv venv && venv/bin/pip install ns3==3.44.post0
    venv/bin/python aerotp.py > ../../vectors/ns3/aerotp-tcp.csv

An application offers 680 packets of 1472 bytes at 4.416 Mbit/s. TCP is NewReno with the defaults of 2010: segments of 536 bytes, an
initial window of one segment, neither SACK nor timestamps nor window scaling, a minimum timeout of 0.2 s, and no traffic control
above the queue of 100 packets. Limited transmit is on: without it, version 3.44 ends some runs with a failed assertion. Errors are
those of RateErrorModel with ERROR_UNIT_BIT on the receiving device of both directions of the middle line.

One row for each run: bit-error rate, run, time of the last data that arrived, their bytes, bytes and number of the packets that the
source has sent.
"""
import argparse

from ns import ns

DEFAULTS = {
    "TcpL4Protocol::SocketType": "ns3::TcpNewReno",
    "TcpL4Protocol::RecoveryType": "ns3::TcpClassicRecovery",
    "TcpSocket::SegmentSize": "536",
    "TcpSocket::InitialCwnd": "1",
    "TcpSocketBase::Sack": "false",
    "TcpSocketBase::Timestamp": "false",
    "TcpSocketBase::WindowScaling": "false",
    "TcpSocketBase::LimitedTransmit": "true",
    "TcpSocketBase::MinRto": "200ms",
}
# Runs for each bit-error rate. From 1e-6 to 5e-6 a run either meets the case in which every segment times out, or not: a mean needs more.
RUNS = {0: 100, 1e-6: 1000, 2.5e-6: 1000, 5e-6: 1000, 1e-5: 100, 2.5e-5: 100, 5e-5: 100, 7.5e-5: 100, 1e-4: 100}

ns.cppyy.cppdef("""
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
using namespace ns3;
namespace aerotp {
double last_s;
uint64_t delivered, sent_bytes, sent_packets;
void Received(Ptr<const Packet> packet, const Address&) {
  delivered += packet->GetSize();
  last_s = Simulator::Now().GetSeconds();
}
void Sent(Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t) { sent_bytes += packet->GetSize(); sent_packets += 1; }

std::string Run(double ber, uint32_t run) {
  RngSeedManager::SetSeed(1);
  RngSeedManager::SetRun(run);
  last_s = 0; delivered = sent_bytes = sent_packets = 0;
  NodeContainer nodes;
  nodes.Create(4);
  PointToPointHelper lan, air;
  lan.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
  lan.SetChannelAttribute("Delay", StringValue("0s"));
  air.SetDeviceAttribute("DataRate", StringValue("5Mbps"));
  air.SetChannelAttribute("Delay", StringValue("10ms"));
  NetDeviceContainer lines[] = {lan.Install(nodes.Get(0), nodes.Get(1)), air.Install(nodes.Get(1), nodes.Get(2)),
                                lan.Install(nodes.Get(2), nodes.Get(3))};
  for (uint32_t end = 0; end < 2; ++end) {
    Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
    errors->SetUnit(RateErrorModel::ERROR_UNIT_BIT);
    errors->SetRate(ber);
    errors->AssignStreams(10 + end);
    lines[1].Get(end)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
  }
  InternetStackHelper().Install(nodes);
  Ipv4AddressHelper addresses("10.0.1.0", "255.255.255.0");
  Ipv4Address sink;
  for (auto& line : lines) {
    sink = addresses.Assign(line).GetAddress(1);
    addresses.NewNetwork();
    TrafficControlHelper().Uninstall(line);
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  OnOffHelper source("ns3::TcpSocketFactory", InetSocketAddress(sink, 9));
  source.SetConstantRate(DataRate("4.416Mbps"), 1472);
  source.SetAttribute("MaxBytes", UintegerValue(680 * 1472));
  source.Install(nodes.Get(0));
  PacketSinkHelper listener("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
  listener.Install(nodes.Get(3)).Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Received));
  nodes.Get(0)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("Tx", MakeCallback(&Sent));
  Simulator::Stop(Seconds(20000));
  Simulator::Run();
  Simulator::Destroy();
  char row[160];
  snprintf(row, sizeof row, "%g,%u,%.6f,%lu,%lu,%lu", ber, run, last_s, delivered, sent_bytes, sent_packets);
  return row;
}
}
""")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ber", nargs="+", type=float, default=list(RUNS), help="bit-error rates")
    parser.add_argument("--runs", type=int, help="runs, numbered from 1 (default: 100 or 1000)")
    options = parser.parse_args()
    for name, value in DEFAULTS.items():
        ns.Config.SetDefault("ns3::" + name, ns.StringValue(value))
    print("# ns-3 3.44 (PyPI ns3 3.44.post0), interop/ns3/aerotp.py, seed 1, the run as its run number")
    print("ber,run,last_s,delivered_bytes,sent_bytes,sent_packets")
    for ber in options.ber:
        for run in range(1, (options.runs or RUNS.get(ber, 100)) + 1):
            print(str(ns.cppyy.gbl.aerotp.Run(ber, run)), flush=True)


main()
