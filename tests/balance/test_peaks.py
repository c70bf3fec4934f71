"""Rates of the busiest hour: a plan evens out both, the mean and that hour."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from random_clusters import random_cluster

from loadwise.balance.cluster import Cluster
from loadwise.balance.files import read_cluster, written
from loadwise.balance.plan import plan
from loadwise.cli import main


def with_peaks(cluster: Cluster, random: Random) -> Cluster:
    """In the busiest hour, other topics are busy than on average."""
    busy = {topic: random.lognormvariate(0, 1) for topic in sorted({each.topic for each in cluster.partitions})}
    return replace(
        cluster,
        partitions=tuple(
            replace(
                each,
                peak_bytes_in_per_s=each.bytes_in_per_s * busy[each.topic],
                peak_bytes_out_per_s=each.bytes_out_per_s * busy[each.topic] * random.uniform(0.5, 2),
            )
            for each in cluster.partitions
        ),
    )


@pytest.mark.parametrize("seed", range(5))
def test_no_broker_is_busy_on_average_or_in_the_busiest_hour(seed: int) -> None:
    random = Random(seed)
    even = random_cluster(random, brokers=9, partitions=300, replicas=3, racks=3, empty=seed % 3)
    cluster = with_peaks(even, random)
    planned = plan(cluster)
    assert planned.cluster.resources == ("bytes in", "bytes out", "disk", "peak in", "peak out")
    assert (planned.after / planned.limits.mean).max() <= 1.1 + 1e-6
    without = plan(even).planned  # by the mean alone, that hour is uneven
    hour = replace(cluster, partitions=tuple(
        replace(each, replicas=now.replicas, leader=now.leader)
        for each, now in zip(cluster.partitions, without.partitions, strict=True)
    ))  # fmt: skip
    assert (plan(hour).before / planned.limits.mean)[:, 3:].max() > 1.15


def test_a_partition_without_peaks_is_alike_in_every_hour() -> None:
    cluster = random_cluster(Random(1), brokers=3, partitions=12, replicas=2)
    first, *rest = cluster.partitions
    peak = replace(first, peak_bytes_in_per_s=2 * first.bytes_in_per_s)
    planned = plan(replace(cluster, partitions=(peak, *rest)))
    came, sent = planned.before.sum(axis=0)[3:] - planned.before.sum(axis=0)[:2]
    assert came == pytest.approx(first.bytes_in_per_s * len(first.replicas))
    assert sent == pytest.approx(first.bytes_in_per_s * (len(first.replicas) - 1))


def test_a_cluster_file_keeps_peaks() -> None:
    cluster = with_peaks(random_cluster(Random(2), brokers=3, partitions=9, replicas=2), Random(2))
    assert read_cluster(written(cluster), "cluster.json") == cluster


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0


def test_they_are_shown(tmp_path, capsys) -> None:
    cluster = with_peaks(random_cluster(Random(2), brokers=4, partitions=40, replicas=2), Random(2))
    path = tmp_path / "cluster.json"
    path.write_text(written(cluster))
    run("balance", str(path), "--html", str(tmp_path / "plan.html"))
    assert "peak in" in capsys.readouterr().out
    assert "<b>peak out</b>" in (tmp_path / "plan.html").read_text()
    run("balance", str(path), "--json")
    broker, *_ = json.loads(capsys.readouterr().out)["brokers"]
    assert broker["before"].keys() >= {"peak_bytes_in_per_s", "peak_bytes_out_per_s"}
    assert np.isfinite(list(broker["after"].values())).all()
