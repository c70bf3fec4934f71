"""The note that switches a group's rebalances for the load off."""

from hypothesis import given
from hypothesis import strategies as st

from loadwise.protocol.live_switch import LiveSwitch, newest, switch_group

switches = st.builds(LiveSwitch, st.integers(0, 2**50), st.booleans(), st.integers(0, 2**50))


@given(switches, st.text(alphabet=" x1", max_size=5))
def test_a_note_comes_back_whatever_a_newer_version_appends(switch, more):
    assert LiveSwitch.decode(switch.encode()) == switch
    assert LiveSwitch.decode(switch.encode()[:-1] + more) == switch


@given(st.text(max_size=40) | st.from_regex(r"loadwise-live:1 (off|on|x) -?[0-9]{0,3} [0-9a]{0,3}", fullmatch=True))
def test_other_metadata_is_none_or_a_switch(text):
    found = LiveSwitch.decode(text)
    assert found is None or text.startswith("loadwise-live:1 o")


@given(st.lists(switches, max_size=5), st.lists(st.sampled_from(["", "loadwise:1 0 0 0", "mine"]), max_size=3))
def test_the_newest_use_of_the_switch_counts(several, others):
    found = newest([*(each.encode() for each in several), *others])
    assert (found is None) == (not several)
    assert found is None or found.since_ms == max(each.since_ms for each in several)


def test_the_note_is_in_a_group_beside_the_group():
    assert switch_group("billing") == "billing.loadwise"
