"""Cases and tables of loads: what they say, and errors that name the place and what belongs there."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.compare.errors import BadInputError
from loadwise.compare.files import from_case, from_loads

CASE: dict[str, Any] = {
    "topics": {"t": {"partitions": 3}},
    "weights": {"t": [9, None, 5]},
    "members": [{"id": "a", "topics": ["t"], "owned": [["t", 0]]}, {"id": "b", "topics": ["t"], "capacity": 2}],
}


def test_a_case_needs_no_strategy_and_its_options_are_heeded() -> None:
    situation = from_case(json.dumps(CASE | {"options": {"epsilon": 0.2, "trigger": 0.3}}), "group.json")
    assert situation.tuned == Weighted(epsilon=0.2, trigger=0.3)
    assert [(member.id, member.capacity, member.owned) for member in situation.members] == [
        ("a", 1.0, {"t": [0]}),
        ("b", 2.0, {}),
    ]
    np.testing.assert_equal(situation.load, {"t": [9, np.nan, 5]})
    assert from_case(json.dumps(CASE | {"strategy": "range"}), "group.json").partitions == {"t": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"topics": {},\n "members": [1 2]}', "group.json, line 2, column 16: not JSON"),
        ("topic,partition,load\nt,0,1\n", "group.json, line 1, column 1: not JSON"),
        ("topic,partition,load\nt,0,1\n", "give a CSV of loads with --loads"),
        (json.dumps(CASE) + "\n" + json.dumps(CASE), "line 2, column 1: not JSON (Extra data); write one case as one"),
        ("[" * 100_000, "group.json: not JSON that can be read"),
        ("[]", "group.json: the case is []; expected an object"),
        (json.dumps(CASE).replace("9", "NaN"), "group.json: NaN is not a JSON number; write null"),
        (json.dumps(CASE | {"members": [{"id": 3}]}), "group.json: members[0].id is 3; expected a string"),
        (json.dumps(CASE | {"strategy": "fair"}), "group.json: no assignor is called 'fair'; choose from range"),
        (json.dumps(CASE | {"members": []}), "group.json: the group has no members"),
        (json.dumps(CASE | {"weights": {"t": [-1, 0, 0]}}), "group.json: the load of t-0 is -1.0; it must be"),
    ],
)
def test_a_bad_case(text: str, message: str) -> None:
    with pytest.raises(BadInputError) as refused:
        from_case(text, "group.json")
    assert message in str(refused.value)


def test_loads_in_any_order_of_rows_and_columns() -> None:
    situation = from_loads("\ufeffload, Topic ,partition\r\n2.5,t,1\r\n\r\n,u,0\r\n1e3,t,3\r\n", "loads.csv", 10)
    assert situation.partitions == {"t": 4, "u": 1}
    assert situation.load == {"t": [None, 2.5, None, 1000.0], "u": [None]}
    assert [member.id for member in situation.members][:2] == ["member-01", "member-02"]
    assert len(situation.members) == 10
    assert situation.snapshot().subscribed.all()


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=5)


@given(st.dictionaries(NAMES, st.lists(st.floats(0, 1e60), min_size=1, max_size=5), min_size=1, max_size=4))
def test_what_python_writes_is_read_back(loads: dict[str, list[float]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["topic", "partition", "load"])
    for topic, row in loads.items():
        writer.writerows((topic, partition, load) for partition, load in enumerate(row))
    assert from_loads(text.getvalue(), "loads.csv", 2).load == loads


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "loads.csv: the file is empty; expected the header topic,partition,load"),
        ("t,0,1\n", "loads.csv, line 1: the header is 't,0,1'; expected topic,partition,load"),
        ("topic,partition,lag\n", "line 1: the header is 'topic,partition,lag'; expected topic,partition,load"),
        ("topic,partition,load\n", "loads.csv: there is nothing to assign"),
        ("topic,partition,load\nt,0\n", "loads.csv, line 2: 2 fields; expected 3: topic,partition,load"),
        ("topic,partition,load\n\nt,0,many\n", "loads.csv, line 3, column load: 'many'; expected a finite number"),
        ("topic,partition,load\nt,0,-1\n", "line 2, column load: '-1'; expected a finite number of 0 or more"),
        ("topic,partition,load\nt,0,inf\n", "line 2, column load: 'inf'"),
        ("topic,partition,load\nt,0,nan\n", "line 2, column load: 'nan'"),
        ("topic,partition,load\nt,0.5,1\n", "line 2, column partition: '0.5'; expected a whole number from 0"),
        ("topic,partition,load\nt,1000000,1\n", "line 2, column partition: '1000000'; expected a whole number from 0"),
        ("topic,partition,load\n,0,1\n", "line 2, column topic: ''; expected a topic's name"),
        ("topic,partition,load\nt,0,1\nt,0,2\n", "line 3: t-0 is on line 2 already; keep one of the two"),
        ('topic,partition,load\n"t,0,1\n', "loads.csv, line 2: not CSV (unexpected end of data)"),
    ],
)
def test_bad_loads(text: str, message: str) -> None:
    with pytest.raises(BadInputError) as refused:
        from_loads(text, "loads.csv", 2)
    assert message in str(refused.value)
