"""The heartbeats of steering members: which fields they send, and what they do with an answer."""

from types import SimpleNamespace

import pytest

from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.steering_note import TOPICS
from loadwise.running_group.errors import UnreadableGroupError
from loadwise.steer.guests import Guests, process_of


def answer(error=ErrorCode.NONE, epoch=7, message=None):
    return SimpleNamespace(error_code=error, member_epoch=epoch, error_message=message)


def joined(number=1):
    guests = Guests("process")
    guests.grow(number)
    heard(guests)
    return guests


def heard(guests):
    for guest in guests.all:
        guest.answered(answer())
    assert guests.heard


def test_a_guest_joins_with_all_fields_and_then_sends_what_changes():
    guests = Guests("process")
    guests.grow(1)
    (guest,) = guests.all
    first = guest.heartbeat()
    assert (first["member_epoch"], first["server_assignor"]) == (0, "loadwise")
    assert (first["subscribed_topic_names"], first["rack_id"]) == ([TOPICS[0]], "loadwise-steer")
    heard(guests)
    assert guest.heartbeat() == {"member_id": "process-0", "member_epoch": 7}
    assert process_of(guest.member_id) == "process"
    assert guest.member_id in guests


def test_parts_are_written_without_a_change_of_topics_and_the_last_heartbeat_asks():
    guests = joined()
    guests.carry(["part 0", "part 1"])
    first, second = guests.all
    assert first.heartbeat() == {"member_id": "process-0", "member_epoch": 7, "rack_id": "part 0"}
    assert (second.heartbeat()["member_epoch"], second.heartbeat()["rack_id"]) == (0, "part 1")
    assert not guests.heard
    heard(guests)
    for topic in (TOPICS[1], TOPICS[0]):
        first.ask()
        assert first.heartbeat() == {"member_id": "process-0", "member_epoch": 7, "subscribed_topic_names": [topic]}
        heard(guests)


def test_a_shorter_plan_takes_the_parts_of_an_older_one_away():
    guests = joined(2)
    guests.carry(["old 0", "old 1"])
    heard(guests)
    guests.carry(["new 0"])
    assert [guest.heartbeat()["rack_id"] for guest in guests.all] == ["new 0", "loadwise-steer"]


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_guest_that_the_broker_has_dropped_joins_again_with_its_part(error):
    guests = joined()
    guests.carry(["part 0"])
    heard(guests)
    (guest,) = guests.all
    guest.answered(answer(error))
    assert (guest.heartbeat()["member_epoch"], guest.heartbeat()["rack_id"]) == (0, "part 0")


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_what_a_broker_did_not_hear_is_said_again(error):
    guests = joined()
    guests.carry(["part 0"])
    (guest,) = guests.all
    guest.answered(answer(error))
    assert not guests.heard
    assert guest.heartbeat() == {"member_id": "process-0", "member_epoch": 7, "rack_id": "part 0"}


def test_a_broker_without_the_assignor_is_named_with_the_remedy():
    with pytest.raises(UnreadableGroupError, match=r"put loadwise's jar .* into group\.consumer\.assignors"):
        joined().all[0].answered(answer(ErrorCode.UNSUPPORTED_ASSIGNOR))
    with pytest.raises(UnreadableGroupError, match="the group is full"):
        joined().all[0].answered(answer(ErrorCode.GROUP_MAX_SIZE_REACHED, message="the group is full"))
