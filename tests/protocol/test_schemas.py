"""The schemas: what their file says, and that it is what a release of Kafka says."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from kafka_process import jars

from loadwise.protocol import kafka_messages, make_stubs
from loadwise.protocol.make_schemas import FILE, text
from loadwise.protocol.schemas import names, schema


def test_a_message_has_its_fields_in_order_and_their_facts() -> None:
    join = schema("JoinGroupRequest")
    assert (join.key, join.versions, join.flexible[0]) == (11, range(10), 6)
    assert list(join.fields)[:3] == ["group_id", "session_timeout_ms", "rebalance_timeout_ms"]
    instance_id = join.fields["group_instance_id"]
    assert (instance_id.versions[0], instance_id.nullable[0], instance_id.default) == (5, 5, None)
    assert join.fields["rebalance_timeout_ms"].default == -1
    protocols = join.fields["protocols"]
    assert protocols.is_array
    assert protocols.struct is not None
    assert [(field.name, field.kind) for field in protocols.struct.fields.values()] == [
        ("name", "string"), ("metadata", "bytes"),
    ]  # fmt: skip


def test_a_struct_that_several_fields_share_is_one() -> None:
    fields = schema("StreamsGroupHeartbeatRequest").fields
    assert fields["active_tasks"].struct is fields["standby_tasks"].struct is not None


def test_a_tagged_field_has_its_tag() -> None:
    cluster_id = schema("FetchRequest").fields["cluster_id"]
    assert (cluster_id.tag, cluster_id.tagged[0], cluster_id.default) == (0, 12, None)


def test_operations_are_a_set_and_asking_for_them_is_not() -> None:
    assert schema("DescribeClusterResponse").fields["cluster_authorized_operations"].kind == "bitfield"
    assert schema("DescribeClusterRequest").fields["include_cluster_authorized_operations"].kind == "bool"


def test_an_unstable_version_is_left_out() -> None:
    assert schema("InitProducerIdRequest").versions == range(6)


def test_an_unknown_message_is_named() -> None:
    with pytest.raises(LookupError, match="NoSuchRequest"):
        schema("NoSuchRequest")
    with pytest.raises(ImportError, match="NoSuchRequest"):
        from loadwise.protocol.kafka_messages import NoSuchRequest  # noqa: F401
    assert not hasattr(kafka_messages, "NoSuchRequest")


@pytest.mark.kafka
def test_the_file_is_what_the_release_says() -> None:
    (jar,) = Path(jars()).glob("kafka-clients-*.jar")
    assert text(jar, names()) == FILE.read_text("utf-8")


def test_the_types_of_the_fields_are_current() -> None:
    assert make_stubs.text() == make_stubs.FILE.read_text("utf-8")


def test_the_types_are_of_the_fields_that_messages_have() -> None:
    def check(node: ast.ClassDef, made: Any) -> None:
        found = [each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and each.value is not None]
        assert set(found) == set(made.__slots__), node.name
        for each in node.body:
            if isinstance(each, ast.ClassDef):
                check(each, getattr(made, each.name))

    classes = [each for each in ast.parse(make_stubs.FILE.read_text("utf-8")).body if isinstance(each, ast.ClassDef)]
    public = [each for each in classes if not each.name.startswith("_")]
    assert [each.name for each in public] == names()
    for each in public:
        check(each, getattr(kafka_messages, each.name))
