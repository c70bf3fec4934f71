"""The kernel works without the folders of features."""

from __future__ import annotations

import subprocess
import sys

import pytest

from loadwise.coordinator.features import FEATURES
from loadwise.coordinator.routing.services import services

FOLDERS = [*FEATURES, "embedding.http", "storage"]
WITHOUT = """
import sys

without = sys.argv[1:]
folders = tuple(f"loadwise.coordinator.{each}" for each in without)


class Refused:
    def find_spec(self, name, path=None, target=None):
        if name in folders or name.startswith(tuple(f"{each}." for each in folders)):
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Refused())

from loadwise.coordinator import features

features.FEATURES = tuple(each for each in features.FEATURES if each not in without)

from loadwise.coordinator import Coordinator

with Coordinator({"t": 1}).in_thread() as coordinator:
    print(*sorted(api.key for api in coordinator._embedded.cluster.apis))
"""
CONSUMES = """
    from kafka import KafkaConsumer, KafkaProducer

    address = coordinator.bootstrap_servers
    with KafkaProducer(bootstrap_servers=address) as producer:
        producer.send("t", b"value").get(10)
    consumer = KafkaConsumer("t", bootstrap_servers=address, group_id="g", auto_offset_reset="earliest")
    print(next(consumer).value.decode())
    consumer.commit()
    consumer.close()
"""


def run(program: str, *without: str) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", program, *without], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def its_own(feature: str) -> set[int]:
    """The keys of the APIs that only a feature answers."""
    return set(services([f"loadwise.coordinator.{feature}"])) - set(services(["loadwise.coordinator.apis"]))


@pytest.mark.parametrize("feature", FOLDERS)
def test_its_apis_are_not_served_without_the_folder_of(feature: str) -> None:
    (keys,) = run(WITHOUT, feature)
    assert set(map(int, keys.split())) == set(services()) - its_own(feature)
    assert bool(its_own(feature)) == (feature in FEATURES)


def test_a_group_consumes_without_any_feature() -> None:
    keys, value = run(WITHOUT + CONSUMES, *FOLDERS)
    assert value == "value"
    assert set(map(int, keys.split())) == set(services(["loadwise.coordinator.apis"]))
