"""The demo's own coordinator, and a Kafka that is there already."""

import asyncio
from pathlib import Path

import pytest
from command_line import invoke
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from loadwise.coordinator import Coordinator
from loadwise.demo.cluster import existing_kafka, own_coordinator
from loadwise.demo.errors import RefusedError


async def test_it_keeps_records_however_old_they_are() -> None:
    """The flights left in 2013: a topic that keeps a week would lose them five minutes after they were published."""
    async with own_coordinator("flights", 3) as cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        try:
            told = admin.describe_configs([ConfigResource("TOPIC", "flights", {"retention.ms": None})])
        finally:
            admin.close()
    assert told["topic"]["flights"]["retention.ms"]["value"] == "-1"


def test_what_a_kafka_refuses_is_told_in_a_sentence() -> None:
    """As where this user may not make topics, or all of them must have three replicas."""

    async def run(bootstrap_servers: str) -> None:
        async with existing_kafka(bootstrap_servers, "flights", 3):
            pass

    with Coordinator({}).in_thread() as alone:
        alone.faults.answer("CreateTopics", error="POLICY_VIOLATION")
        where = f"the broker at {alone.bootstrap_servers}"
        with pytest.raises(RefusedError, match=rf"^{where} refuses the request: POLICY_VIOLATION: .*policy"):
            asyncio.run(run(alone.bootstrap_servers))


def test_a_page_that_cannot_be_written_is_told_before_anything_runs(tmp_path: Path) -> None:
    page = tmp_path / "none" / "page.html"
    result = invoke(["demo", f"--html={page}", "--bootstrap-servers=127.0.0.1:1"])
    assert result.exit_code == 2
    assert result.stdout == f"loadwise demo: --html {page} cannot be written: No such file or directory\n"
