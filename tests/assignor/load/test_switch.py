"""When the switch of a group is read, and how its note outlives the retention of commits."""

from loadwise.assignor.load.switch import SwitchReader
from loadwise.protocol.live_switch import LiveSwitch

DAY_MS = 24 * 3_600_000
WEEK_MS = 7 * DAY_MS
AT = ("t", 3)


class Broker:
    """It keeps a commit for a week."""

    def __init__(self):
        self.kept = {}

    def commit(self, at, offset, switch, now_ms):
        self.kept[at] = (offset, switch.encode(), now_ms)

    def fetch(self, now_ms):
        self.kept = {at: each for at, each in self.kept.items() if now_ms - each[2] < WEEK_MS}
        return {at: (offset, note) for at, (offset, note, _) in self.kept.items()}


def reader():
    seen = []
    return SwitchReader("g", seen.append), seen


def test_it_is_read_at_once_and_then_every_half_minute():
    switch, _ = reader()
    assert [second for second in range(0, 100, 5) if switch.due(1000.0 + second)] == [0, 30, 60, 90]


def test_a_group_without_a_note_is_on():
    switch, seen = reader()
    assert switch.read({AT: (0, "something of the user")}, 0) is None
    assert switch.read({}, 0) is None
    assert seen == [False, False]


def test_the_newest_note_counts_wherever_it_is():
    switch, seen = reader()
    on, off = LiveSwitch(5, False, 5).encode(), LiveSwitch(6, True, 6).encode()
    switch.read({("t", 0): (0, off), ("u", 0): (0, on)}, 10)
    switch.read({("t", 0): (0, LiveSwitch(4, True, 9).encode()), ("u", 0): (0, on)}, 10)
    assert seen == [True, False]


def test_a_group_stays_off_for_eight_days_of_leaders_that_come_and_go():
    broker = Broker()
    broker.commit(AT, 7, LiveSwitch(1, True, 0), 0)
    for now_ms in range(0, 60 * DAY_MS, 3_600_000):
        switch, seen = reader()  # another leader each time
        renewed = switch.read(broker.fetch(now_ms), now_ms)
        if renewed is not None:
            broker.commit(*renewed, now_ms)
            assert renewed[:2] == (AT, 7)
        assert seen == [True]
    assert LiveSwitch.decode(broker.kept[AT][1]).since_ms == 1


def test_a_missing_right_is_one_warning_until_it_is_there(caplog):
    switch, seen = reader()
    for _ in range(3):
        switch.failed(PermissionError("Group authorization failed"))
    assert caplog.text.count("The switch of group g cannot be read") == 1
    assert "g.loadwise" in caplog.text
    switch.read({}, 0)
    switch.failed(PermissionError("Group authorization failed"))
    assert caplog.text.count("The switch of group g cannot be read") == 2
    assert seen == [False]
