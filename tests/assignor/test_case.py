"""Cases in JSON: the command's answers, and errors that say where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from command_line import invoke

from loadwise.assignor.case import Case
from loadwise.assignor.errors import AssignorError, BadCaseError
from loadwise.assignor.model import LARGEST
from loadwise.protocol.user_data import CooperativeStickyUserData, MemberTerms, StickyUserData


def ask(*lines: Any) -> list[dict[str, Any]]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n"
    result = invoke(["assign"], input=text)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.output.splitlines()]


def case(**changes: Any) -> dict[str, Any]:
    members = [{"id": "a", "topics": ["t", "gone"]}, {"id": "b", "topics": ["t"]}]
    return {
        "strategy": "range",
        "topics": {"t": {"partitions": 3}, "x": {"partitions": 1}},
        "members": members,
    } | changes


def test_lines_are_answered_in_order_and_a_bad_one_harms_no_other() -> None:
    answers = ask(case(id=1), "{nonsense", case(id=2, strategy="fair"), "", case(id=[3]))
    assert [answer.get("id") for answer in answers] == [1, None, 2, [3]]
    assert answers[0]["members"] == {"a": [["t", 0], ["t", 1]], "b": [["t", 2]]} == answers[3]["members"]
    assert answers[0]["elapsed_ms"] >= 0
    assert answers[1]["error"].startswith("not JSON")
    assert "'fair'; choose from range, roundrobin" in answers[2]["error"]


def test_a_cooperative_answer_is_staged_and_an_eager_one_is_the_target() -> None:
    members = [
        {"id": "a", "topics": ["t"], "owned": [["t", 0], ["t", 1]], "generation": 1},
        {"id": "b", "topics": ["t"]},
    ]
    topics = {"t": {"partitions": 2}}
    cooperative, eager = ask(
        case(strategy="cooperative-sticky", topics=topics, members=members),
        case(strategy="sticky", topics=topics, members=members),
    )
    assert cooperative["members"] == {"a": [["t", 0]], "b": []}
    assert eager["members"] == {"a": [["t", 0]], "b": [["t", 1]]}


def test_the_load_counts_however_it_is_given() -> None:
    heavy_first = {"t": [9, 1, 1]}
    answers = ask(
        case(strategy="weighted", weights=heavy_first),
        case(strategy="weighted", lag=heavy_first, rate={"t": [0, 0, 0]}),
        case(
            strategy="weighted",
            resources={"cpu": heavy_first, "records": {"t": [5, 5, 5]}},
            resource_weights={"records": 0},
        ),
    )
    for answer in answers:
        assert sorted(answer["members"].values()) == [[["t", 0]], [["t", 1], ["t", 2]]]


def test_capacity_and_options_are_heeded() -> None:
    fast = [{"id": "a", "topics": ["t"], "capacity": 3}, {"id": "b", "topics": ["t"]}]
    answer = ask(case(strategy="weighted", topics={"t": {"partitions": 8}}, weights={"t": [1] * 8}, members=fast))[0]
    assert [len(owned) for owned in answer["members"].values()] == [6, 2]
    assert Case.parse(case(strategy="weighted", options={"epsilon": 0.2, "trigger": 0.4})).assignor.epsilon == 0.2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strategy": None}, "strategy is null; expected a string"),
        ({"members": None}, "members is null; expected a list"),
        ({"topics": None}, "topics is null; expected an object"),
        ({"wieghts": {"t": [1, 2, 3]}}, "wieghts is not a field (did you mean 'weights'?)"),
        ({"x" * 99: 1}, "x... is not a field; choose from id, strategy, topics, members, options, "),
        ({"topics": {"t": {"partitions": 1, "rack": []}}}, "topics.t.rack is not a field (did you mean 'racks'?)"),
        ({"members": [{"id": "a", "topic": ["t"]}]}, "members[0].topic is not a field (did you mean 'topics'?)"),
        (
            {"members": [{"id": "a", "topics": [], "instance_id": "i"}]},
            "members[0].instance_id is not a field (did you mean 'group_instance_id'?)",
        ),
        ({"members": [{"id": "a"}]}, "members[0].topics is missing; expected a list"),
        ({"prefer_rack_aware": True}, "prefer_rack_aware is only for Kafka's own tests"),
        ({"weights": {"t": [1, 2]}}, "weights.t has 2 numbers, but topic t has 3 partitions; give one for each, null"),
        ({"lag": {"t": [1, 2, 3, 4]}}, "lag.t has 4 numbers, but topic t has 3 partitions"),
        ({"lag": {"t": [1, 2, 3]}, "rate": {"t": []}}, "rate.t has 0 numbers, but topic t has 3 partitions"),
        ({"weights": {"t": [1e308, 1e308, 0]}}, "weights.t[0] is 1e+308; the largest number allowed is 1e+60"),
        ({"lag": {"t": [0, 10**400, 0]}}, "lag.t[1] is 1000000"),
        (
            {"strategy": "weighted", "members": [{"id": "a", "topics": ["t"], "capacity": 1e-308}]},
            "member 'a' has capacity 1e-308; it must be a finite number above 0 (1e-60 to 1e+60)",
        ),
        (
            {"members": [{"id": "a", "topics": [], "user_data_hex": "0g"}]},
            "members[0].user_data_hex is '0g'; expected bytes as pairs of hexadecimal digits",
        ),
        (
            {"strategy": "sticky", "members": [{"id": "a", "topics": [], "user_data_hex": "00ff"}]},
            "members[0].user_data_hex is not user data of sticky: 2 bytes of user data are no StickyAssignor's",
        ),
        (
            {"strategy": "cooperative-weighted", "members": [{"id": "a", "topics": [], "user_data_hex": "00"}]},
            "members[0].user_data_hex is not user data of cooperative-weighted: ",
        ),
        ({"topics": []}, "topics is []; expected an object"),
        ({"topics": {"t": {}}}, "topics.t.partitions is missing; expected a whole number"),
        ({"topics": {"t": {"partitions": -1}}}, "topics.t.partitions is -1; expected 0 or more"),
        (
            {"topics": {"t": {"partitions": 2**31 - 1}}},
            "topics have 2,147,483,647 partitions in total; at most 10,000,000",
        ),
        ({"members": [{"id": 7}]}, "members[0].id is 7; expected a string"),
        ({"members": [{"id": "a", "topics": "t"}]}, "members[0].topics is 't'; expected a list"),
        (
            {"members": [{"id": "a", "topics": [], "owned": [["t"]]}]},
            "members[0].owned[0] is ['t']; expected [topic, part",
        ),
        (
            {"members": [{"id": "a", "topics": [], "owned": [["t", 0.5]]}]},
            "members[0].owned[0][1] is 0.5; expected a whole",
        ),
        ({"members": [{"id": "a", "topics": [], "capacity": "2"}]}, "members[0].capacity is '2'; expected a number"),
        ({"weights": {"t": [True]}}, "weights.t[0] is True; expected a number"),
        ({"weights": {}, "lag": {}}, "weights and lag are given"),
        ({"weights": {}, "rate": {}}, "weights and rate are given"),
        ({"lag": {}, "rate": {}, "resources": {}}, "lag and rate and resources are given"),
        ({"options": {"epsilon": 1}}, "options.epsilon is not an option of range; it has no options"),
        (
            {"strategy": "weighted", "options": {"eps": 1}},
            "options.eps is not an option of weighted; its options are epsilon, trig",
        ),
        ({"strategy": "weighted", "options": {"epsilon": -1}}, "options: epsilon is -1.0"),
        ({"resources": {"a": {"t": [1, 1, 1]}, "b": {"t": []}}}, "resources.b.t has 0 numbers, but topic t has 3"),
        ({"resources": {}, "resource_weights": {"a": 1}}, "there is a weight for 'a', but no such resource"),
        ({"resources": {"a": {"t": [-1, 0, 0]}}}, "the resource 'a' of t-0 is -1.0"),
        ({"weights": {"t": [1, 2]}, "horizon_s": 5}, "horizon_s is given without lag; it has no effect on its own"),
        ({"rate": {"t": [1, 2]}, "horizon_s": 5}, "horizon_s is given without lag; it has no effect on its own"),
        ({"resource_weights": {"cpu": 1}}, "resource_weights is given without resources; it has no effect on its own"),
        ({"lag": {}, "horizon_s": 0}, "horizon_s is 0.0; the time to drain the lag must be above 0 seconds"),
    ],
)
def test_an_error_names_the_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(AssignorError) as refused:
        Case.parse(case(**changes)).answer()
    assert message in str(refused.value)
    assert ask(case(**changes))[0] == {"error": str(refused.value)}


def test_a_line_may_be_no_object_and_nan_is_no_number() -> None:
    with pytest.raises(BadCaseError, match="the case is 3; expected an object"):
        Case.parse(3)
    assert ask('{"strategy": NaN}')[0] == {"error": "NaN is not a JSON number; write null for an unknown value"}


def test_a_defect_of_ours_is_told_and_the_next_line_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(asked: Case) -> Any:
        return _answer(asked) if asked.id == "fine" else [][len(asked.members)]

    _answer = Case.answer
    monkeypatch.setattr(Case, "answer", answer)
    result = invoke(["assign"], input=json.dumps(case(id=1)) + "\n" + json.dumps(case(id="fine")))
    bad, good = map(json.loads, result.stdout.splitlines())
    assert bad["id"] == 1
    assert "a defect in loadwise; the traceback is on standard error: IndexError(" in bad["error"]
    assert "IndexError: list index out of range" in result.stderr
    assert good["members"]["b"] == [["t", 2]]


def test_a_field_that_is_left_out_is_missing_and_not_null() -> None:
    given = case()
    del given["members"]
    assert ask(given)[0] == {"error": "members is missing; expected a list"}


def test_a_line_that_is_no_utf_8_says_so_and_the_next_is_answered() -> None:
    lines = b'{"id": "\xff"}\n\xef\xbb\xbf' + json.dumps(case()).encode() + b"\n"
    result = invoke(["assign"], input=lines)
    bad, good = map(json.loads, result.output.splitlines())
    assert bad == {"error": "not UTF-8: byte 0xff at position 8 of the line"}
    assert good["members"]["b"] == [["t", 2]], "a byte order mark is none of the case"


@pytest.mark.parametrize("strategy", ["weighted", "cooperative-weighted"])
def test_the_largest_loads_and_the_smallest_capacities_have_a_finite_answer(strategy: str) -> None:
    members = [{"id": name, "topics": ["t"], "capacity": capacity} for name, capacity in (("a", 1e-60), ("b", 1e60))]
    extremes = {"t": [LARGEST, 5e-324, None]}
    for load in ({"weights": extremes}, {"lag": extremes}, {"lag": extremes, "rate": extremes}):
        answer = ask(case(strategy=strategy, members=members, **load))[0]
        assert sum(map(len, answer["members"].values())) == 3


def test_the_user_data_itself_says_what_a_member_owns() -> None:
    def member(strategy: str, data: bytes, **fields: Any) -> Any:
        given = {"id": "a", "topics": ["t"], "user_data_hex": data.hex(), **fields}
        return Case.parse(case(strategy=strategy, members=[given])).members[0]

    sticky = StickyUserData(owned={"t": [2], "x": [0]}, generation=7, terms=MemberTerms(capacity=2.5)).encode()
    heard = member("weighted", sticky, owned=[["t", 0]], generation=3)
    assert (heard.owned, heard.generation, heard.capacity) == ({"t": [2]}, 7, 2.5)
    cooperative = CooperativeStickyUserData(generation=7).encode()
    heard = member("cooperative-sticky", cooperative, owned=[["t", 0]])
    assert (heard.owned, heard.generation) == ({"t": [0]}, 7)
    assert member("cooperative-sticky", cooperative, subscription_generation=8).generation == 8
    assert member("cooperative-sticky", cooperative, subscription_generation=8, subscription_version=1).generation == 7
    assert member("range", b"anything").owned == {}


def test_what_old_subscriptions_cannot_say_is_not_heard() -> None:
    def member(**fields: Any) -> Any:
        given = {"id": "a", "topics": ["t"], "rack": "r", "owned": [["t", 0]], "generation": 4, **fields}
        return Case.parse(case(strategy="cooperative-sticky", members=[given])).members[0]

    assert (member().rack, member().generation, member().owned) == ("r", 4, {"t": [0]})
    assert (member(subscription_version=2).rack, member(subscription_version=0).owned) == (None, {})
    assert member(user_data_version=0).generation == -1
