"""A group of stock Java, librdkafka and franz-go members is steered: what drowns one of them is dealt out."""

import subprocess
import sys
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from programs import JavaMember, MemberProgram, built_go, compiled_java
from topics import WAIT_S, fill, make_topic, until
from traffic import write_hot

from loadwise.running_group.admin import connected
from loadwise.running_group.reading import read_group
from loadwise.steer.steering import Steering

pytestmark = pytest.mark.kafka

TESTS = Path(__file__).parents[1]
PARTITIONS, SPEED, STEERED_S = 12, "600", 300.0


class Java(JavaMember):
    """A member of kafka-clients."""

    def __init__(self, command):
        self.owned, self.done = set(), 0
        super().__init__(command)

    def take(self, what, rest):
        if what == "owns":
            self.owned = {int(each.rpartition("-")[2]) for each in rest}
        elif what == "read":
            self.done = int(rest[0])

    def update(self):
        """It says all at once."""


class Go(MemberProgram):
    """A member of franz-go."""

    done = 0

    def take(self, message):
        if message["event"] in ("assigned", "revoked", "lost"):
            self.owned = frozenset(message["partitions"])
        elif message["event"] == "records":
            self.done += message["to"] - message["from"]


class Librdkafka:
    """A member of confluent-kafka, in a thread."""

    def __init__(self, broker, group_id, topic):
        self.owned, self.done, self._left = set(), 0, threading.Event()
        config = {"bootstrap.servers": broker, "group.id": group_id, "group.protocol": "consumer", "log_level": 0}
        self._consumer = Consumer(config | {"auto.offset.reset": "earliest", "auto.commit.interval.ms": 500})
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._left.is_set():
            records = [each for each in self._consumer.consume(50, 0.1) if each.error() is None]
            self._left.wait(len(records) / float(SPEED))  # its work
            self.done += len(records)
            self.owned = {each.partition for each in self._consumer.assignment()}
        self._consumer.close()

    def update(self):
        """It says all at once."""

    def end(self):
        self._left.set()
        self._thread.join()


@pytest.mark.parametrize("languages", [("java", "java", "librdkafka"), ("java", "librdkafka", "go")])
def test_hot_partitions_of_one_member_are_dealt_out(languages, broker, topic_name, group_id, tmp_path):
    make_topic(broker, topic_name, PARTITIONS)
    stop, over, hot, sent = threading.Event(), threading.Event(), set(), Counter()
    java = [*compiled_java(TESTS / "interop" / "ConsumerProtocolMember.java"), "ConsumerProtocolMember"]
    with ExitStack() as stack:
        admin = stack.enter_context(connected(broker, client_id="loadwise-steer"))
        members = []
        for number, language in enumerate(languages):
            if language == "java":
                member = Java([*java, broker, group_id, "names", topic_name, "", SPEED])
            elif language == "go":
                go = built_go(TESTS / "clients" / "franz-go", "franz-go")
                command = [*go, "member", broker, group_id, topic_name, "consumer", "45000", "", SPEED]
                member = Go("franz-go", command, tmp_path / f"{number}.log")
            else:
                member = Librdkafka(broker, group_id, topic_name)
            members.append(member)
            stack.callback(member.end)

        def owned():
            for member in members:
                member.update()
            return [set(member.owned) for member in members]

        until(lambda: [len(each) for each in owned()] == [4] * 3, owned)
        hot.update(owned()[0])
        counted = {"hot": hot, "sent": sent, "over": over}
        producer = threading.Thread(target=write_hot, args=(broker, topic_name, PARTITIONS), kwargs=counted)
        producer.start()
        votes = 1 + languages.count("go")  # franz-go names "uniform"
        steering = threading.Thread(target=Steering(admin, group_id, votes=votes).run, args=(stop,))
        steering.start()
        stack.callback(lambda: (over.set(), stop.set(), producer.join(), steering.join()))
        until(
            lambda: max(len(hot & each) for each in owned()) == 2 and sum(map(len, owned())) == PARTITIONS,
            owned,
            limit_s=STEERED_S,
        )
        assert read_group(admin, group_id).protocol == "loadwise"
        over.set()
        producer.join()

        def done():
            owned()
            return sum(member.done for member in members)

        until(lambda: done() >= sum(sent.values()), lambda: (done(), sum(sent.values())))
        assert done() == sum(sent.values()), "each record is processed once"


def test_the_examples_share_a_group(broker, topic_name, group_id):
    make_topic(broker, topic_name, 4)
    examples = TESTS.parent / "examples" / "steered_group"
    commands = [
        [*compiled_java(examples / "Consumer.java"), "Consumer", broker, group_id, topic_name],
        [sys.executable, str(examples / "consumer.py"), topic_name, "--bootstrap-servers", broker, "--group", group_id],
    ]
    with ExitStack() as stack:
        admin = stack.enter_context(connected(broker, client_id="loadwise-steer"))
        programs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
        for program in programs:
            stack.callback(program.stdout.close)
            stack.callback(program.wait)
            stack.callback(program.kill)

        def shares():
            described = admin.describe_consumer_group(group_id)
            return [sum(len(each.partitions) for each in one.assignment.topic_partitions) for one in described.members]

        until(lambda: shares() == [2, 2], shares)
        fill(broker, topic_name, [5] * 4)
        until(lambda: sum(each.offset for each in admin.list_group_offsets(group_id)[group_id].values()) == 20)
        for program in programs:
            program.terminate()
        texts = [program.communicate(timeout=WAIT_S)[0] for program in programs]
        assert all("assigned [" in text for text in texts), texts
        assert sum(int(text.splitlines()[-1].split()[0]) for text in texts) == 20, texts
