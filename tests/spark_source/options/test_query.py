"""The options: named, defaulted, ranked and refused as in Spark's Kafka integration, and stricter about names."""

from __future__ import annotations

import pytest

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.errors import OptionError, UnknownOptionError
from loadwise.spark_source.options.bounds import EARLIEST, LATEST, AtTimestamp, Everywhere, Specific
from loadwise.spark_source.options.membership import GroupMember
from loadwise.spark_source.options.query import parse, parse_either
from loadwise.spark_source.options.topics import Assign, Subscribe, SubscribePattern
from loadwise.spark_source.planning.query import ASSIGNORS, assignor_named, checked

BROKERS = {"kafka.bootstrap.servers": "localhost:9092"}
MINIMAL = {**BROKERS, "subscribe": "flights"}


def test_defaults_are_those_of_spark():
    options = parse(MINIMAL)
    assert options.topics == Subscribe(("flights",))
    assert options.starting == Everywhere("startingOffsets", EARLIEST)
    assert options.ending == Everywhere("endingOffsets", LATEST)
    assert (options.fail_on_data_loss, options.include_headers) == (True, False)
    assert (options.plan.assignor, options.plan.num_tasks, options.plan.split) == ("weighted", None, True)
    assert options.poll_timeout_ms == 120_000


def test_names_come_in_any_case():
    """Spark hands them over in lower case."""
    given = {**MINIMAL, "STARTINGOFFSETS": "Earliest", "failondataloss": "FALSE", "Kafka.Client.Id": "me"}
    options = parse(given)
    assert options.fail_on_data_loss is False
    assert options.client.settings["client.id"] == "me"


def test_ways_to_name_topics():
    assert parse({**BROKERS, "subscribe": " a, b ,a,"}).topics == Subscribe(("a", "b"))
    assert parse({**BROKERS, "subscribepattern": "fl.*"}).topics == SubscribePattern("fl.*")
    assert parse({**BROKERS, "assign": '{"b":[1,0],"a":[2]}'}).topics == Assign(
        (TopicPartition("a", 2), TopicPartition("b", 0), TopicPartition("b", 1))
    )


def test_a_timestamp_goes_before_timestamps_by_partition_and_these_before_offsets():
    offsets = {"startingOffsets": '{"flights":{"0":5,"1":-2}}'}
    by_partition = {"startingOffsetsByTimestamp": '{"flights":{"0":1000}}'}
    everywhere = {"startingTimestamp": "2000"}
    place = TopicPartition("flights", 0)
    assert parse({**MINIMAL, **offsets}).starting == Specific(
        "startingOffsets", {place: 5, TopicPartition("flights", 1): EARLIEST}
    )
    assert parse({**MINIMAL, **offsets, **by_partition}).starting == AtTimestamp(
        "startingOffsetsByTimestamp", {place: 1000}, latest_if_none=False
    )
    found = parse({**MINIMAL, **offsets, **by_partition, **everywhere, "startingOffsetsByTimestampStrategy": "latest"})
    assert found.starting == AtTimestamp("startingTimestamp", 2000, latest_if_none=True)
    assert parse({**MINIMAL, "endingTimestamp": "7"}).ending == AtTimestamp("endingTimestamp", 7, latest_if_none=True)


def test_forms_that_sparks_kafka_source_takes_too():
    places = {TopicPartition("flights", 0): 23}
    assert parse({**MINIMAL, "startingOffsets": '{"flights":{"0":23.0}}'}).starting == Specific(
        "startingOffsets", places
    )
    limits = parse({**MINIMAL, "minOffsetsPerTrigger": "0", "maxTriggerDelay": "2500us"}, streaming=True).stream
    assert (limits.min_offsets, limits.max_delay_ms) == (0, 2)


def test_num_tasks_is_a_number_and_min_partitions_a_lower_bound():
    given = parse({**MINIMAL, "minPartitions": "24"})
    assert (given.plan.num_tasks, given.plan.min_tasks) == (None, 24)
    assert parse({**MINIMAL, "minPartitions": "24", "numTasks": "8"}).plan.num_tasks == 8


def test_what_changes_nothing_is_named():
    given = {**MINIMAL, "maxoffsetspertrigger": "10", "groupIdPrefix": "a", "kafka.group.id": "b"}
    assert parse(given).ignored == (
        "maxOffsetsPerTrigger (has no effect in a batch query)",
        "groupIdPrefix (kafka.group.id is given)",
    )
    assert parse(given).client.settings["group.id"] == "b"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"numTasks": "2", "minPartitions": "3"}, "minPartitions (numTasks takes precedence)"),
        (
            {"startingTimestamp": "5", "startingOffsets": "earliest"},
            "startingOffsets (startingTimestamp takes precedence)",
        ),
        ({"maxOffsetsPerTrigger": "1"}, "maxOffsetsPerTrigger (has no effect in a batch query)"),
        (
            {"startingOffsetsByTimestampStrategy": "latest"},
            "startingOffsetsByTimestampStrategy (no timestamp is given to start at)",
        ),
        ({"costPerRecord": '{"flights":2,"flihgts":3}'}, "costPerRecord of flihgts (the query does not read it)"),
        ({"assignment.mode": "follow", "assignment.group": "g", "split": "true"}, "split (the plan is that of the"),
    ],
)
def test_each_option_that_changes_nothing_has_its_reason(given, named):
    [told] = parse({**MINIMAL, **given}).ignored
    assert told.startswith(named)


@pytest.mark.parametrize(
    ("wrong", "option", "problem"),
    [
        ({"startingoffset": "latest"}, "startingoffset", "(did you mean 'startingOffsets'?)"),
        ({"numTask": "2"}, "numTask", "(did you mean 'numTasks'?)"),
        ({"bootstrap.servers": "x"}, "bootstrap.servers", "(did you mean 'kafka.bootstrap.servers'?)"),
        ({"zzz": "x"}, "zzz", "choose from assign, assignment.capacity, assignment.group"),
        ({"path": "/x"}, "path", "subscribe"),
        ({"maxRecordsPerPartition": "5", "split": "false"}, "maxRecordsPerPartition", "split=false"),
        ({"minOffsetsPerTrigger": "6", "maxOffsetsPerTrigger": "5"}, "minOffsetsPerTrigger", "more than"),
        ({"maxTriggerDelay": "5 weeks"}, "maxTriggerDelay", "a time like 15m"),
        ({"commitGroup": "maybe"}, "commitGroup", "'true' or 'false'"),
        ({"assignment.mode": "lead"}, "assignment.mode", "'plan', 'follow' or 'member'"),
        ({"assignment.mode": "follow"}, "assignment.mode", "assignment.group"),
        ({"assignment.group": "g"}, "assignment.group", "assignment.mode=follow"),
        ({"assignment.mode": "member"}, "assignment.mode", "member is for streams"),
        (
            {"assignment.mode": "member", "assignment.group": "g"},
            "assignment.group",
            "a member joins is kafka.group.id",
        ),
        ({"assignment.members": "2"}, "assignment.members", "set assignment.mode=member too"),
        ({"fetchOffset.numRetries": "-1"}, "fetchOffset.numRetries", "whole number"),
        ({"startingOffsets": "latest"}, "startingOffsets", "batch"),
        ({"startingOffsets": '{"flights":{"3":-1}}'}, "startingOffsets", "flights-3"),
        ({"endingOffsets": "earliest"}, "endingOffsets", "batch"),
        ({"endingOffsets": '{"flights":{"3":-2}}'}, "endingOffsets", "flights-3"),
        ({"startingOffsets": "erliest"}, "startingOffsets", "'earliest', 'latest' or JSON"),
        ({"startingOffsets": ""}, "startingOffsets", "empty"),
        ({"startingOffsets": '{"flights":{"x":1}}'}, "startingOffsets", "JSON like"),
        ({"startingOffsets": '{"flights":{"0":-3}}'}, "startingOffsets", "JSON like"),
        ({"startingOffsets": '{"flights":[0]}'}, "startingOffsets", "JSON like"),
        ({"startingOffsets": '{"flights":{"0":1.5}}'}, "startingOffsets", "JSON like"),
        ({"startingTimestamp": "-1"}, "startingTimestamp", "whole number"),
        ({"startingTimestamp": str(1 << 63)}, "startingTimestamp", "at most 9223372036854775807"),
        ({"numTasks": "9" * 5000}, "numTasks", "at most 9223372036854775807"),
        ({"endingOffsetsByTimestamp": '{"t": {"0": 9223372036854775808}}'}, "endingOffsetsByTimestamp", "must be JSON"),
        ({"startingOffsets": "[" * 100_000}, "startingOffsets", "must be 'earliest'"),
        (
            {"startingOffsetsByTimestampStrategy": "nearest"},
            "startingOffsetsByTimestampStrategy",
            "'error' or 'latest'",
        ),
        ({"subscribePattern": "a.*"}, "subscribePattern", "conflicts with subscribe"),
        ({"failOnDataLoss": "yes"}, "failOnDataLoss", "'true' or 'false'"),
        ({"minPartitions": "0"}, "minPartitions", "at least 1"),
        ({"numTasks": "two"}, "numTasks", "whole number"),
        ({"costPerRecord": '{"flights": 0}'}, "costPerRecord", "each from 1e-09"),
        ({"costPerRecord": '{"flights": 1e300}'}, "costPerRecord", "each from 1e-09 to"),
        ({"costPerRecord": "2"}, "costPerRecord", "JSON like"),
        ({"loadBy": "size"}, "loadBy", "must be 'records', 'bytes' or 'cost'"),
        ({"loadBy": "cost"}, "loadBy", "set costPerRecord"),
        ({"loadBy": "bytes", "costPerRecord": '{"flights": 2}'}, "loadBy", "conflicts with costPerRecord"),
        (
            {"startingOffsets": '{"flights":{"0":5}}', "endingOffsets": '{"flights":{"0":4}}'},
            "startingOffsets",
            "flights-0 starts at 5, after 4, its endingOffsets",
        ),
        ({"kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset", "startingOffsets"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_a_wrong_option_is_refused_by_name(wrong, option, problem):
    with pytest.raises(OptionError) as refused:
        parse({**MINIMAL, **wrong})
    assert refused.value.option == option
    assert str(refused.value).startswith(f"option {option}: ")
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "option"),
    [
        (BROKERS, "subscribe"),
        ({**BROKERS, "subscribe": " , "}, "subscribe"),
        ({**BROKERS, "subscribePattern": "a("}, "subscribePattern"),
        ({**BROKERS, "subscribePattern": " "}, "subscribePattern"),
        ({**BROKERS, "assign": "flights"}, "assign"),
        ({**BROKERS, "assign": "{}"}, "assign"),
        ({**BROKERS, "assign": '{"a":[true]}'}, "assign"),
        ({**BROKERS, "assign": '{"a":0}'}, "assign"),
        ({"subscribe": "flights"}, "kafka.bootstrap.servers"),
    ],
)
def test_brokers_and_topics_must_be_given(given, option):
    with pytest.raises(OptionError, match=f"^option {option}: "):
        parse(given)


@pytest.mark.parametrize("name", ASSIGNORS)
def test_our_assignors_by_name(name: str):
    assert assignor_named(name).name == name


class Picky:
    """Not to be made without arguments."""

    def __init__(self, something: int) -> None:
        self.something = something


class Nameless:
    """Assigns, and has no name."""

    def assign(self, group: object) -> None:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("wieghted", "(did you mean 'weighted'?)"),
        ("cooperative-sticky", "(did you mean 'sticky'?)"),
        ("xyz", "choose from range, roundrobin, sticky, weighted"),
        (".Foo", "write the whole name: package.module.Name"),
        ("..mine.Foo", "write the whole name: package.module.Name"),
        ("mine.", "cannot import 'mine'"),
        ("collections.", "module 'collections' has no ''"),
        ("no.such.module.Mine", "cannot import 'no.such.module'"),
        ("collections.Mine", "module 'collections' has no 'Mine'"),
        ("collections.OrderedDict", "not an Assignor"),
        (f"{__name__}.Picky", "must take no arguments"),
        (f"{__name__}.Nameless", "it needs a name (str)"),
    ],
)
def test_an_assignor_that_is_none_is_refused(name: str, problem: str):
    with pytest.raises(OptionError) as refused:
        assignor_named(name)
    assert str(refused.value).startswith("option assignor: ")
    assert problem in str(refused.value)


def test_a_query_with_an_unknown_assignor_is_refused_before_kafka_is_asked():
    with pytest.raises(OptionError, match="did you mean 'weighted'"):
        checked({"kafka.bootstrap.servers": "nowhere:1", "subscribe": "t", "assignor": "wieghted"})


def test_no_text_shows_a_secret():
    secrets = {
        "kafka.sasl.jaas.config": 'o.a.k.PlainLoginModule required username="u" password="hunter2";',
        "kafka.ssl.key.password": "hunter2",
        "kafka.ssl.keystore.key": "hunter2",
    }
    options = parse({**MINIMAL, **secrets})
    assert options.client.settings["sasl.password"] == "hunter2"
    assert "hunter2" not in repr(options) + str(options.client) + repr(options.client)
    for wrong in ({"kafka.sasl.jaas.config": "hunter2"}, {"kafka.ssl.truststore.password.": "hunter2"}):
        with pytest.raises(OptionError) as refused:
            parse({**MINIMAL, **secrets, **wrong})
        assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("misspelt", "nearest"),
    [("fetch.max.wait", "fetch.max.wait.ms"), ("max_poll", "max.poll.records"), ("group_id", "group.id")],
)
def test_a_misspelt_kafka_setting_is_refused_with_the_nearest(misspelt, nearest):
    problem = rf"kafka.{misspelt}: .* has no such setting \(did you mean 'kafka.{nearest}'\?\)$"
    with pytest.raises(UnknownOptionError, match=problem):
        parse({**MINIMAL, f"kafka.{misspelt}": "10"})


def test_a_member_without_a_group_is_refused_as_the_stream_that_it_can_only_be():
    with pytest.raises(OptionError, match=r"member needs the group to join: set kafka[.]group[.]id"):
        parse_either({**MINIMAL, "assignment.mode": " Member "})


def test_the_reader():
    """Batches, unless a setting is given that only the other reader's client honours."""
    store = {
        "kafka.ssl.keystore.location": "c.p12",
        "kafka.ssl.keystore.type": "PKCS12",
        "kafka.security.protocol": "SSL",
    }
    login = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "GSSAPI"}
    assert parse(MINIMAL).reader == "batches"
    assert parse(MINIMAL | {"reader": "Messages"}).reader == "messages"
    assert parse(MINIMAL | store).reader == "messages"
    assert parse(MINIMAL | login).reader == "messages"
    assert parse(MINIMAL | {"kafka.client.rack": "a"}).reader == "messages"
    with pytest.raises(OptionError, match=r"^option reader: .* without kafka.ssl.keystore.location; use "):
        parse(MINIMAL | {"reader": "batches"} | store)
    with pytest.raises(OptionError, match=r"^option reader: must be 'batches' or 'messages', not 'fast'$"):
        parse(MINIMAL | {"reader": "fast"})


MEMBER = {**MINIMAL, "assignment.mode": "Member", "kafka.group.id": "payments"}


def test_a_member_is_told_what_to_join_with():
    options = parse(
        {
            **MEMBER,
            "assignment.members": "3",
            "assignment.strategy": "weighted, range",
            "assignment.capacity": "2.5",
            "kafka.max.poll.interval.ms": "60000",
            "kafka.group.instance.id": "spark",
        },
        streaming=True,
    )
    assert options.plan.follow_group is None
    assert options.stream.member == GroupMember(
        group="payments",
        members=3,
        strategies=("weighted", "range"),
        capacity=2.5,
        settings={"max.poll.interval.ms": "60000", "group.instance.id": "spark"},
    )
    assert parse(MEMBER, streaming=True).stream.member == GroupMember(group="payments")


@pytest.mark.parametrize(
    ("wrong", "option", "problem"),
    [
        ({"kafka.group.id": " "}, "assignment.mode", "set kafka.group.id"),
        ({"subscribe": None, "assign": '{"flights": [0]}'}, "assign", "use subscribe"),
        ({"commitGroup": "true"}, "commitGroup", "leave it out"),
        ({"minOffsetsPerTrigger": "5"}, "minOffsetsPerTrigger", "longer trigger interval"),
        ({"maxTriggerDelay": "5m"}, "maxTriggerDelay", "leave it out"),
        ({"assignment.members": "65"}, "assignment.members", "at most 64"),
        ({"assignment.strategy": " , "}, "assignment.strategy", "is empty"),
        (
            {"assignment.strategy": "wieghted, range"},
            "assignment.strategy",
            "there is no 'wieghted' (did you mean 'weighted'?)",
        ),
        (
            {"assignment.strategy": "even"},
            "assignment.strategy",
            "there is no 'even'; choose from range, roundrobin, sticky",
        ),
        ({"assignment.capacity": "-1"}, "assignment.capacity", "a number from 1e-09"),
        ({"assignment.capacity": "much"}, "assignment.capacity", "a number from 1e-09"),
        ({"kafka.session.timeout.ms": "1s"}, "kafka.session.timeout.ms", "a whole number of at least 1"),
        (
            {
                "kafka.security.protocol": "SASL_SSL",
                "kafka.sasl.mechanism": "OAUTHBEARER",
                "kafka.sasl.jaas.config": 'OAuthBearerLoginModule required clientId="a" clientSecret="b";',
                "kafka.sasl.oauthbearer.token.endpoint.url": "https://login",
            },
            "kafka.sasl.mechanism",
            "cannot log in with OAUTHBEARER",
        ),
        (
            {"kafka.ssl.keystore.location": "c.p12", "kafka.ssl.keystore.type": "PKCS12"},
            "kafka.ssl.keystore.type",
            "cannot read PKCS12",
        ),
    ],
)
def test_what_a_member_cannot_be_given_is_refused_by_name(wrong, option, problem):
    given = {name: value for name, value in {**MEMBER, **wrong}.items() if value is not None}
    with pytest.raises(OptionError) as refused:
        parse(given, streaming=True)
    assert refused.value.option == option
    assert problem in str(refused.value)
