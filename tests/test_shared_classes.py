"""Programs of Kafka's jars begin with the classes that an earlier JVM has loaded: most of what a start costs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from kafka_process import java_program, short_lived_jvm
from missing import skipped_where_missing
from programs import compiled_java

pytestmark = pytest.mark.kafka

SHOWN = ("-Xshare:on", "-Xlog:class+load")


def shared(command: list[str], name: str) -> bool:
    """Whether a JVM takes this class from those that are shared."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{name} source: shared objects file (top)" in ran.stdout


def test_kafkas_tools_take_them():
    with skipped_where_missing():
        tool = java_program("kafka.tools.StorageTool", *short_lived_jvm(), *SHOWN)
    assert shared([*tool, "random-uuid"], "org.apache.kafka.common.Uuid")


def test_our_own_java_programs_take_them():
    java, *options = compiled_java(Path(__file__).parent / "interop" / "GroupMember.java")
    command = [java, *SHOWN, *options, "GroupMember", "127.0.0.1:1", "group", "topic", "no assignor", "6000"]
    assert shared(command, "org.apache.kafka.common.config.ConfigDef")
