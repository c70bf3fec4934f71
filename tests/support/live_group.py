"""A group of real members under steady arrivals, each a process of its own, and the books about it."""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from offsets import Offsets
from topics import WAIT_S, make_topic
from traffic import exact_producer

MEMBER = Path(__file__).with_name("live_member.py")
COSTLY = "{}-costly"
"""The topic whose records cost ten times as much as those of another, as long as `Arrivals.costly` does not change."""
_TICK_S = 0.05
_BURST = 2.0
"""The rate of a tick varies by the square root of the inverse, so by 0.7 of the mean."""
HANGS_S = 300.0
"""How long a group is waited for: what has not come by then does not come, however busy the machine is."""
_UNCOMMITTED = re.compile(
    "offset ?commit failed|commit was refused|were not committed|records may be read again|has evicted this member",
    re.IGNORECASE,
)
"""What clients and loadwise log when another member may get records again."""
_REST_S = 3.0
"""A cooperative rebalance has another round within a heartbeat or two, half a second each."""


class Arrivals:
    """Records that arrive in partitions, of one topic or two, at rates that may change; a thread of its own.

    They come every ``tick_s``: where groups run side by side, fewer and larger arrivals leave the machine time. Two
    topics have bursts of their own (negative binomial): what a record of each costs cannot be told where they are
    always mixed alike, nor within a minute where a busy machine delays polls by more than the mixture varies.
    """

    def __init__(self, servers, topic, rates, costly_rates=(), tick_s=_TICK_S):
        self._tick_s = tick_s
        self.rates = [*rates, *costly_rates]
        self.costly = [False] * len(rates) + [True] * len(costly_rates)
        """Of which partitions each record costs ten times as much."""
        self._places = [(topic, number) for number in range(len(rates))]
        self._places += [(COSTLY.format(topic), number) for number in range(len(costly_rates))]
        self.sent = [0] * len(self.rates)
        self._due = [0.0] * len(self.rates)
        self._producer = exact_producer(servers)
        self._topic = topic
        self._chance = np.random.default_rng(1) if costly_rates else None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def grow(self, rates):
        """Records arrive in more partitions, which the topic has already."""
        self._producer.list_topics(self._topic, timeout=WAIT_S)  # it would learn of them within five minutes
        self.sent += [0] * len(rates)
        self._due += [0.0] * len(rates)
        self._places += [(self._topic, len(self._places) + number) for number in range(len(rates))]
        self.costly += [False] * len(rates)
        self.rates += rates

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        assert self._producer.flush(HANGS_S) == 0, "the broker does not take the records"

    def _run(self):
        due, last = self._due, time.monotonic()
        while not self._ended.wait(self._tick_s):
            now = time.monotonic()
            bursts = self._bursts()
            for partition, rate in enumerate(list(self.rates)):
                mean = rate * (now - last)
                topic, number = self._places[partition]
                due[partition] += self._chance.poisson(mean * bursts[topic]) if bursts else mean
                for _ in range(int(due[partition])):
                    self._producer.produce(topic, (b"c" if self.costly[partition] else b"x") * 20, partition=number)
                self.sent[partition] += int(due[partition])
                due[partition] -= int(due[partition])
            last = now
            self._producer.poll(0)

    def _bursts(self):
        """How many times its rate each of two topics has in this tick; nothing for one topic."""
        topics = {topic for topic, _ in self._places} if self._chance else ()
        return {topic: self._chance.gamma(_BURST, 1 / _BURST) for topic in sorted(topics)}


class Member:
    """One member's process, and what it has written."""

    def __init__(self, group, name, client, *, speed, instance, unreadable, clock, more):
        self.name = name
        self.owned, self.generation, self.done, self.leads, self.fallbacks = [], -1, {}, False, 0
        self.was_killed = False
        self.log = []
        """The lines of its log."""
        command = [sys.executable, str(MEMBER), f"--client={client}", f"--topic={group.topic}", f"--group={group.id}"]
        command += [f"--servers={group.servers}", f"--name={name}", f"--assignor={group.assignor}", f"--speed={speed}"]
        command += [f"--instance={instance}", f"--unreadable={unreadable}", f"--clock={clock}"]
        command += [f"--shape={group.shape}"]
        command += [f"--more={json.dumps(more)}", f"--costly-after={group.costly_after}"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._listen, self._read_log)]
        for thread in self._threads:
            thread.start()

    def _listen(self):
        for line in self.process.stdout:
            now = json.loads(line)
            self.owned, self.generation, self.leads = now["owned"], now["generation"], now["leads"]
            self.done = {int(partition): Offsets(*done) for partition, done in now["done"].items()}
            self.fallbacks = now["fallbacks"]

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line.rstrip())

    @property
    def processed(self):
        """How many records it has processed."""
        return sum(len(done) + done.repeated for done in self.done.values())

    def toggle_readings(self):
        """Its readings of offsets fail from now on, or do not any more."""
        self.process.send_signal(signal.SIGUSR1)

    def toggle_hanging(self):
        """Its program hangs from now on between two polls, or does not any more; of a kafka-python member only."""
        self.process.send_signal(signal.SIGUSR2)

    def kill(self):
        """As ``kill -9`` does; others may process again what it had not committed."""
        self.was_killed = True
        self.process.kill()
        self._ended()

    def stop(self):
        """Ask it to leave, and make it leave where it does not."""
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._ended()

    def _ended(self):
        self.process.wait()
        for thread in self._threads:
            thread.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        self.owned, self.leads = [], False


class LiveGroup:
    """A topic with arrivals and a group that reads it; with ``costly_rates`` there is another, costly topic as well.

    Its partitions are numbered after those of the first.
    """

    def __init__(
        self,
        servers,
        topic,
        group_id,
        *,
        assignor="weighted",
        rates,
        costly_rates=(),
        tick_s=_TICK_S,
        shape="in-line",
        **more,
    ):
        make_topic(servers, topic, len(rates))
        self.costly_after = 0
        if costly_rates:
            make_topic(servers, COSTLY.format(topic), len(costly_rates))
            self.costly_after = len(rates)
        self.servers, self.topic, self.id, self.assignor = servers, topic, group_id, assignor
        self.shape = shape
        self.arrivals = Arrivals(servers, topic, rates, costly_rates, tick_s)
        self.members = []
        self._more = more

    def __enter__(self):
        self.arrivals.__enter__()
        return self

    def __exit__(self, _, error, __):
        try:
            self.arrivals.__exit__()
            if error is None:
                self.check_books()
        except Exception as late:
            error = error or late
            raise
        finally:
            here = [member for member in self.members if not member.process.stdin.closed]
            for member in here:
                member.process.stdin.close()  # asked together, they leave while one of them is waited for
            for member in here:
                member.stop()
            if error is not None:
                error.add_note("\n".join(line for member in self.members for line in member.log))

    def check_books(self):
        """Every record was processed, and none twice unless it had to be."""
        self.wait_until(lambda: self.lag == 0, why="processing of the last records")
        done = self.done
        whole = {number: [(0, sent)] if sent else [] for number, sent in enumerate(self.arrivals.sent)}
        assert {number: its.ranges for number, its in done.items()} == whole
        repeated = {number: its.repeated for number, its in done.items() if its.repeated}
        assert not repeated or self.may_repeat, f"records processed twice, by partition: {repeated}"

    @property
    def may_repeat(self):
        """Whether a member was killed, failed to commit, or commits less than it has polled, as a pool does."""
        uncommitted = any(_UNCOMMITTED.search(line) for member in self.members for line in member.log)
        return uncommitted or self.shape == "pool" or any(member.was_killed for member in self.members)

    def join(self, client="kafka-python", *, speed=900.0, instance="", unreadable="", clock="right"):
        """Another member, the error that its reading of offsets ends with, and whether its wall clock is right."""
        about = {"speed": speed, "instance": instance, "unreadable": unreadable, "clock": clock}
        member = Member(self, f"m{len(self.members)}", client, more=self._more, **about)
        self.members.append(member)
        return member

    @property
    def alive(self):
        return [member for member in self.members if member.process.poll() is None]

    @property
    def generation(self):
        return max(member.generation for member in self.alive)

    @property
    def lag(self):
        """Records that arrived and that no member has processed."""
        done = self.done
        return sum(max(sent - len(done[partition]), 0) for partition, sent in enumerate(self.arrivals.sent))

    @property
    def done(self):
        """What members have processed, by partition."""
        done = {partition: Offsets() for partition in range(len(self.arrivals.rates))}
        for member in self.members:
            for partition, its in member.done.items():
                done[partition].include(its)
        return done

    @property
    def processed(self):
        """How many records members have processed."""
        return sum(map(len, self.done.values()))

    def settled(self, members):
        """Whether so many members own all partitions, each once, in one generation."""
        alive = self.alive
        owned = sorted(partition for member in alive for partition in member.owned)
        one = len({member.generation for member in alive}) == 1
        return one and len(alive) == members and owned == list(range(len(self.arrivals.rates)))

    def wait_until_at_rest(self, members, *, why):
        """Wait until so many members own all partitions, and no other round follows; return since when.

        Between two rounds of a cooperative rebalance all partitions may have owners, and a member that joined none.
        """
        since = generation = None

        def at_rest():
            nonlocal since, generation
            if not self.settled(members):
                generation = None
            elif self.generation != generation:
                since, generation = time.monotonic(), self.generation
            return generation is not None and time.monotonic() - since >= _REST_S

        self.wait_until(at_rest, why=why)
        return since

    def seconds_until(self, what, limit_s=HANGS_S):
        """Wait for a condition, and return how many seconds it took; infinity if it has not come by then."""
        began = time.monotonic()
        while not what():
            for member in self.members:
                assert member.process.poll() in (None, 0, -9), f"{member.name} died: {member.log[-20:]}"
            if time.monotonic() - began > limit_s:
                return math.inf
            time.sleep(_TICK_S)  # between two looks
        return time.monotonic() - began

    def wait_until(self, what, *, why="it", longer_s=0.0):
        """Wait for a condition that must come, which may take so much longer than others."""
        limit_s = HANGS_S + longer_s
        came = self.seconds_until(what, limit_s) < math.inf
        assert came, f"{why} did not happen in {limit_s:g} s: lag {self.lag}, {self}"

    def overload(self, member, rate):
        """Let all records arrive in the partitions of one member from now on, so many a second; return these."""
        hot = set(member.owned)
        self.arrivals.rates = [rate / len(hot) if number in hot else 0.0 for number in range(len(self.arrivals.rates))]
        return hot

    def load_rebalances(self):
        """How many rebalances were requested because of the load."""
        return sum("asking for a rebalance" in line for member in self.members for line in member.log)

    def __str__(self):
        return "; ".join(f"{member.name} generation {member.generation} {member.owned}" for member in self.alive)
