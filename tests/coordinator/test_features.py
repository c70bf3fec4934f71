"""The kernel works without the folder of a feature."""

from __future__ import annotations

import subprocess
import sys

import pytest

from loadwise.coordinator.features import FEATURES
from loadwise.coordinator.services import services

WITHOUT = """
import sys

folder = "loadwise.coordinator." + sys.argv[1]


class Refused:
    def find_spec(self, name, path=None, target=None):
        if name == folder or name.startswith(folder + "."):
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Refused())

from loadwise.coordinator import features

features.FEATURES = tuple(each for each in features.FEATURES if each != sys.argv[1])

from kafka import KafkaConsumer, KafkaProducer

from loadwise.coordinator import Coordinator

with Coordinator({"t": 1}).in_thread() as coordinator:
    address = coordinator.bootstrap_servers
    with KafkaProducer(bootstrap_servers=address) as producer:
        producer.send("t", b"value").get(10)
    consumer = KafkaConsumer("t", bootstrap_servers=address, group_id="g", auto_offset_reset="earliest")
    print(next(consumer).value.decode())
    consumer.commit()
    consumer.close()
    print(*sorted(api.key for api in coordinator._embedded.cluster.apis))
"""


@pytest.mark.parametrize(
    "feature", ["authorization", "http", "quotas", "security", "share", "storage", "streams", "transactions"]
)
def test_a_group_consumes_without_the_folder_of(feature: str) -> None:
    ran = subprocess.run([sys.executable, "-c", WITHOUT, feature], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    value, keys = ran.stdout.splitlines()
    assert value == "value"
    its_own = set(services([f"loadwise.coordinator.{feature}"])) - set(services(["loadwise.coordinator.apis"]))
    assert bool(its_own) == (feature in FEATURES)
    assert set(map(int, keys.split())) == set(services()) - its_own


def test_each_feature_is_a_line() -> None:
    assert len(set(FEATURES)) == len(FEATURES)
