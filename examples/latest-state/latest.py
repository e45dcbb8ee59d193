"""The last reading of each device, as a compacted topic, and readings with what is known of their device."""

from millbeck.pipeline.topology.serdes import json

PIPELINE = {"name": "latest-state", "bootstrap_servers": "127.0.0.1:9092"}


def build(topology):
    readings = topology.stream("readings", value=json("celsius DOUBLE"))
    devices = topology.global_table("devices", value=json("room STRING"))
    placed = readings.left_join(devices, lambda reading, device: {"celsius": reading.celsius, "room": device.room})
    placed.to_table(store="rooms").publish()
