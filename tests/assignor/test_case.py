"""Cases in JSON: the command's answers, and errors that say where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from loadwise.assignor.case import Case
from loadwise.assignor.drain import drain_weight
from loadwise.assignor.errors import AssignorError, BadCaseError
from loadwise.cli.app import app


def ask(*lines: Any) -> list[dict[str, Any]]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n"
    result = CliRunner().invoke(app, ["assign"], input=text)
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
    assert "'fair'; there are range, roundrobin" in answers[2]["error"]


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
        ({"strategy": None}, "strategy is missing; expected a string"),
        ({"topics": []}, "topics is []; expected an object"),
        ({"topics": {"t": {}}}, "topics.t.partitions is missing; expected a whole number"),
        ({"topics": {"t": {"partitions": -1}}}, "topics.t.partitions is -1; expected 0 or more"),
        (
            {"topics": {"t": {"partitions": 2**31 - 1}}},
            "topics have 2,147,483,647 partitions together; at most 10,000,000",
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
        ({"options": {"epsilon": 1}}, "options.epsilon is not known to range; it has no options"),
        (
            {"strategy": "weighted", "options": {"eps": 1}},
            "options.eps is not known to weighted; its options are epsilon, trig",
        ),
        ({"strategy": "weighted", "options": {"epsilon": -1}}, "options: epsilon is -1.0"),
        ({"resources": {"a": {"t": [1]}, "b": {"t": []}}}, "resources.b.t has 0 numbers, another resource 1"),
        ({"resources": {}, "resource_weights": {"a": 1}}, "resource_weights.a has no resource of that name"),
    ],
)
def test_an_error_names_the_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(AssignorError) as refused:
        Case.parse(case(**changes))
    assert message in str(refused.value)
    assert ask(case(**changes))[0] == {"error": str(refused.value)}


def test_a_line_may_be_no_object_and_nan_is_no_number() -> None:
    with pytest.raises(BadCaseError, match="the case is 3; expected an object"):
        Case.parse(3)
    assert ask('{"strategy": NaN}')[0] == {"error": "NaN is not a number that JSON has; write null for what is unknown"}


def test_what_old_subscriptions_cannot_say_is_not_heard() -> None:
    def member(**fields: Any) -> Any:
        given = {"id": "a", "topics": ["t"], "rack": "r", "owned": [["t", 0]], "generation": 4, **fields}
        return Case.parse(case(strategy="cooperative-sticky", members=[given])).members[0]

    assert (member().rack, member().generation, member().owned) == ("r", 4, {"t": [0]})
    assert (member(subscription_version=2).rack, member(subscription_version=0).owned) == (None, {})
    assert member(user_data_version=0).generation == -1


def test_lag_and_rate_make_one_weight() -> None:
    # 100 records/s for the group, 40 of them for what comes in: 300 waiting records take 5 s.
    weight = drain_weight({"t": [300, None, 0]}, {"t": [10, 30], "u": [None]}, 100.0)
    assert weight == {"t": [70.0, 30.0, 0.0], "u": [None]}
    assert drain_weight({"t": [300]}, {"t": [200]}, 100.0) == {"t": [200.0]}, "too slow for what comes in: rate alone"
