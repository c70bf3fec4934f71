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
    for guest in guests.all:
        assert guest.answered(answer())
    return guests


def test_a_guest_joins_with_all_fields_and_then_sends_what_changes():
    guests = Guests("process")
    guests.grow(1)
    (guest,) = guests.all
    first = guest.heartbeat()
    assert (first["member_epoch"], first["server_assignor"], first["subscribed_topic_names"]) == (
        0,
        "loadwise",
        [TOPICS[0]],
    )
    assert guest.answered(answer())
    assert guest.heartbeat() == {"member_id": "process-0", "member_epoch": 7}
    assert process_of(guest.member_id) == "process"
    assert guest.member_id in guests


def test_parts_are_written_without_a_change_of_topics_and_the_last_heartbeat_asks():
    guests = joined()
    sent = list(guests.carry(["part 0", "part 1"]))
    assert [fields["rack_id"] for _, fields in sent] == ["part 0", "part 1"]
    assert [fields["member_epoch"] for _, fields in sent] == [7, 0]
    assert "subscribed_topic_names" not in sent[0][1]
    assert guests.all[0].asking()["subscribed_topic_names"] == [TOPICS[1]]
    assert guests.all[0].asking()["subscribed_topic_names"] == [TOPICS[0]]


def test_a_shorter_plan_takes_the_parts_of_an_older_one_away():
    guests = joined(2)
    list(guests.carry(["old 0", "old 1"]))
    assert [fields["rack_id"] for _, fields in guests.carry(["new 0"])] == ["new 0", "loadwise-steer"]
    assert list(guests.carry(["new 0"])) == []


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_guest_that_the_broker_has_dropped_joins_again_with_its_part(error):
    guests = joined()
    list(guests.carry(["part 0"]))
    (guest,) = guests.all
    assert not guest.answered(answer(error))
    assert (guest.heartbeat()["member_epoch"], guest.heartbeat()["rack_id"]) == (0, "part 0")


def test_a_broker_without_the_assignor_is_named_with_the_remedy():
    with pytest.raises(UnreadableGroupError, match=r"put loadwise's jar .* into group\.consumer\.assignors"):
        joined().all[0].answered(answer(ErrorCode.UNSUPPORTED_ASSIGNOR))
    with pytest.raises(UnreadableGroupError, match="the group is full"):
        joined().all[0].answered(answer(ErrorCode.GROUP_MAX_SIZE_REACHED, message="the group is full"))
