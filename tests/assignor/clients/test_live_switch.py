"""`loadwise live off` stops the rebalances for the load of a running group, whoever leads it."""

import asyncio
import io
from contextlib import redirect_stdout

import pytest
from kafka import KafkaAdminClient

from loadwise.assignor.load import switch
from loadwise.cli import main
from loadwise.protocol.live_switch import LiveSwitch, switch_group

CLIENTS = ("kafka-python", "aiokafka")


@pytest.fixture(autouse=True)
def read_often(monkeypatch):
    monkeypatch.setattr(switch, "_EVERY_S", 0.0)


async def live(group, *words):
    """The status of the command and what it printed."""
    shown = io.StringIO()
    servers, name = group.settings["bootstrap_servers"], group.settings["group_id"]

    def run():
        with redirect_stdout(shown), pytest.raises(SystemExit) as ended:
            main(["live", *words, "--bootstrap-servers", servers, "--group", name])
        return ended.value.code

    return await asyncio.to_thread(run), shown.getvalue()


def is_off(member):
    return member.consumer._plan.participant.leader._watch.switched_off


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_group_is_switched_off_and_on(group, topic, client, until):
    member = await group.join(client, topic, auto_offset_reset="earliest", lag_interval_s=0.05)
    await until(lambda: member.consumer.explain() is not None)
    assert await live(group, "status") == (0, f"{group.settings['group_id']}: rebalances for the load are on\n")
    status, shown = await live(group, "off")
    assert (status, "are off since" in shown) == (0, True)
    await until(lambda: is_off(member))
    assert "are off since" in (await live(group, "status"))[1]
    await group.leave(member)

    successor = await group.join(client, topic, auto_offset_reset="earliest", lag_interval_s=0.05)
    await until(lambda: is_off(successor))
    assert (await live(group, "on"))[0] == 0
    await until(lambda: not is_off(successor))


@pytest.mark.parametrize("client", CLIENTS)
async def test_the_leader_renews_the_note(group, topic, client, until, monkeypatch):
    monkeypatch.setattr(switch, "_RENEWED_AFTER_MS", 0)
    member = await group.join(client, topic, auto_offset_reset="earliest", lag_interval_s=0.05)
    await until(lambda: member.consumer.explain() is not None)
    await live(group, "off")
    beside = switch_group(group.settings["group_id"])
    admin = await asyncio.to_thread(KafkaAdminClient, bootstrap_servers=group.settings["bootstrap_servers"])

    def renewed():
        found = [LiveSwitch.decode(each.metadata) for each in admin.list_group_offsets(beside)[beside].values()]
        return len(found) == 1 and found[0].off and found[0].written_ms > found[0].since_ms

    try:
        await until(renewed)
    finally:
        await asyncio.to_thread(admin.close)


@pytest.mark.parametrize("state", ["off", "status"])
async def test_a_group_that_was_never_there_is_an_error(state, group, capsys):
    status, _ = await live(group, state)
    assert status == 1
    assert "has no members" in capsys.readouterr().err


@pytest.mark.parametrize("state", ["off", "status"])
async def test_a_group_without_a_load_aware_assignor_is_named(state, group, topic, until):
    member = await group.join("aiokafka", topic, assignor="range")
    await until(member.consumer.assignment)
    assert "no member reads this: the assignor 'range'" in (await live(group, state))[1]
