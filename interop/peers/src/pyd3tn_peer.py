"""A node made of the package pyd3tn, which implements the protocols of µD3TN in Python. It exchanges JSON objects with
the test on its standard streams, one per line.

    pyd3tn_peer.py call HOST PORT NODE    connects; bundles are received by TCPCLConnection.recv_bundle
    pyd3tn_peer.py serve HOST PORT NODE   listens; bundles are received by TCPCLServer

    {"send": FILE, "to": EID, "from": EID, "crc": true, "version": 7}     in
    {"up": true}  {"received": FILE}  {"error": TEXT}        out
"""

import asyncio
import json
import sys
import tempfile
import threading

from pyd3tn import bundle6, bundle7, tcpcl
from pyd3tn.sdnv import sdnv_decode


def say(**words):
    print(json.dumps(words), flush=True)


def deliver(data):
    """Writes the payload of a received bundle to a file."""
    payload = bundle7.Bundle.parse(data).payload_block.data
    with tempfile.NamedTemporaryFile(delete=False, dir=FOLDER) as file:
        file.write(payload)
    say(received=file.name)


def read_bundle(command):
    with open(command["send"], "rb") as file:
        payload = file.read()
    if command["version"] == 6:
        return bundle6.serialize_bundle6(command["from"], command["to"], payload)
    # Its CRCs are computed in Python, byte by byte, so large payloads have none.
    crc = bundle7.CRCType.CRC32 if command["crc"] else bundle7.CRCType.NONE
    return bundle7.serialize_bundle7(
        command["from"], command["to"], payload, crc_type_canonical=crc
    )


def call(host, port, node):
    with tcpcl.TCPCLConnection(node, host, port) as connection:

        def receive():
            try:
                while True:
                    deliver(connection.recv_bundle())
            except Exception as error:
                say(error=f"{type(error).__name__}: {error}")

        threading.Thread(target=receive, daemon=True).start()
        say(up=True)
        for line in sys.stdin:
            connection.send_bundle(read_bundle(json.loads(line)))


class Server(tcpcl.TCPCLServer):
    """Reassembles the segments that the server passes on as it reads them."""

    buffer = b""
    writer = None

    async def received_message(self, msg, writer):
        self.buffer += msg
        while len(self.buffer) > 1:
            try:
                length, end = sdnv_decode(self.buffer[1:11])
            except Exception:
                return
            if self.buffer[0] & 0xF0 != 0x10:
                # KEEPALIVE or SHUTDOWN.
                del self.buffer[:1]
                continue
            # Its own decoder supports only bundles in one segment.
            tcpcl.decode_tcpcl_bundle_segment_header(self.buffer[:1 + end])
            if len(self.buffer) < 1 + end + length:
                return
            deliver(bytes(self.buffer[1 + end:1 + end + length]))
            del self.buffer[:1 + end + length]

    async def handle_connection(self, reader, writer):
        say(up=True)
        self.writer = writer
        self.buffer = bytearray()
        await super().handle_connection(reader, writer)


async def serve(host, port, node):
    async with Server(node, host, port) as server:
        say(listening=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            bundle = read_bundle(json.loads(line))
            server.writer.write(tcpcl.serialize_tcpcl_single_bundle_segment(bundle))
            await server.writer.drain()


if __name__ == "__main__":
    ROLE, HOST, PORT, NODE, FOLDER = sys.argv[1:]
    try:
        if ROLE == "call":
            call(HOST, int(PORT), NODE)
        else:
            asyncio.run(serve(HOST, int(PORT), NODE))
    except Exception as error:
        say(error=f"{type(error).__name__}: {error}")
