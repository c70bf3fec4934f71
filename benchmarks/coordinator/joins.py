"""How fast groups form and shrink.

Four processes share the members, so that the clients limit the broker less than one process would. Members trickle in:
the first generations of a group have a part of them. The last column of each line is the broker's processor time.
"""

from __future__ import annotations

import multiprocessing
import selectors
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from multiprocessing.connection import Connection
from typing import Any
from uuid import uuid4

from benchmarks.coordinator.brokers import Served
from benchmarks.coordinator.driver import NOT_STABLE, WAIT_S, DriverError, Member, start, take
from benchmarks.coordinator.figures import Figures

PROCESSES = 4
HEARTBEAT_S = 0.1


class GroupMember(Member):
    """A member of one of several groups."""

    def __init__(self, address: tuple[str, int], group: int, group_id: str, tls: ssl.SSLContext | None) -> None:
        super().__init__(address, group_id, tls)
        self.group = group
        """The place of its group among those of the process."""
        self.beat_at_s = 0.0
        """When its next heartbeat is due."""


@dataclass(frozen=True)
class Clients:
    """What one process of clients is started with, and what it shares with the others."""

    number: int
    address: tuple[str, int]
    tls: ssl.SSLContext | None
    groups: Sequence[tuple[str, int]]
    """The group ids, and how many members of each this process has."""
    stable: Any
    """int[processes, groups]: the generation in which all members of a group in a process are synced."""
    synced: Any
    """float[processes]: when the last one was."""

    def work(self, orders: Connection) -> None:
        """Let all members ``join``, or a tenth of them ``leave``; answer once all the others are stable."""
        selector = selectors.DefaultSelector()
        by_group = [
            [GroupMember(self.address, group, group_id, self.tls) for _ in range(size)]
            for group, (group_id, size) in enumerate(self.groups)
        ]
        for member in _all(by_group):
            selector.register(member.socket, selectors.EVENT_READ, member)
        orders.send("connected")
        while (order := orders.recv()) != "end":
            above = [max((member.generation for member in group), default=0) for group in by_group]
            if order == "leave":
                for group, members in enumerate(by_group):
                    leaving = max(len(members) // 10, 1)
                    for member in members[:leaving]:
                        start(member, lambda each: each.leave())
                    by_group[group] = members[leaving:]
            else:
                for member in _all(by_group):
                    start(member, lambda each: each.join())
            self._wait_until_stable(selector, by_group, above)
            while any(member.script for member in _all(by_group)):  # heartbeats on their way
                for key, _ in selector.select(WAIT_S):
                    take(key.data)
            orders.send("stable")

    def _wait_until_stable(
        self, selector: selectors.BaseSelector, by_group: Sequence[Sequence[GroupMember]], above: Sequence[int]
    ) -> None:
        """Serve the members until each group has a generation that is above its last one."""
        give_up = time.monotonic() + WAIT_S
        members = list(_all(by_group))
        changed = set(range(len(by_group)))
        while True:
            for group in changed:
                generations = {member.generation for member in by_group[group]}
                agreed = generations.pop() if len(generations) == 1 else NOT_STABLE
                at = self.number * len(by_group) + group
                self.stable[at] = agreed if agreed > above[group] else NOT_STABLE
            changed.clear()
            if self._all_agree():
                return
            now = time.monotonic()
            if now > give_up:
                raise DriverError(f"the groups are not stable after {WAIT_S} s")
            for member in members:
                if member.script is None and member.beat_at_s <= now:
                    start(member, lambda each: each.follow())
            for key, _ in selector.select(0.01):
                member = key.data
                if not take(member):
                    self.synced[self.number] = time.monotonic()
                    member.beat_at_s = self.synced[self.number] + HEARTBEAT_S
                changed.add(member.group)

    def _all_agree(self) -> bool:
        seen, groups = self.stable[:], len(self.groups)
        return NOT_STABLE not in seen and all(len(set(seen[group::groups])) == 1 for group in range(groups))


def _all(by_group: Sequence[Sequence[GroupMember]]) -> Iterator[GroupMember]:
    return chain.from_iterable(by_group)


def measure(figures: Figures, served: Served, groups: int, members: int) -> None:
    """Add how long ``groups`` of ``members`` each take until all are stable, and again after a tenth has left."""
    ids = [f"joins-{uuid4()}" for _ in range(groups)]
    context = multiprocessing.get_context("fork")
    stable = context.Array("i", [NOT_STABLE] * (PROCESSES * groups), lock=False)
    synced = context.Array("d", [0.0] * PROCESSES, lock=False)
    pipes, processes = [], []
    for number in range(PROCESSES):
        share = [(group_id, members // PROCESSES + (number < members % PROCESSES)) for group_id in ids]
        clients = Clients(number, served.address, served.tls, share, stable, synced)
        pipe, theirs = context.Pipe()
        pipes.append(pipe)
        processes.append(context.Process(target=clients.work, args=(theirs,), daemon=True))
        processes[-1].start()
    try:
        for pipe in pipes:
            _expect(pipe, "connected")
        for order, what in (("join", "join, to stable"), ("leave", "10 % leave, to stable")):
            for place in range(len(stable)):
                stable[place] = NOT_STABLE
            before, start = served.cpu_s(), time.monotonic()
            for pipe in pipes:
                pipe.send(order)
            for pipe in pipes:
                _expect(pipe, "stable")
            size = f"{members:,} members" if groups == 1 else f"{groups} groups of {members}"
            cpu_s = served.cpu_s() - before
            figures.add(
                served, f"{size} {what}", "{:.2f} s", max(synced) - start, note=f"generation {max(stable)}", cpu_s=cpu_s
            )
        for pipe in pipes:
            pipe.send("end")
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _expect(pipe: Connection, word: str) -> None:
    if not pipe.poll(WAIT_S) or pipe.recv() != word:
        raise DriverError("a process of clients has failed")
