"""Login lines as Java's ``JaasConfig`` reads them: quotes, escapes and spaces; and lines that it refuses."""

from __future__ import annotations

import pytest

from loadwise.protocol.jaas import read_jaas


@pytest.mark.parametrize(
    ("line", "options"),
    [
        (
            'a.b.PlainLoginModule required username="alice" password="a b;c";',
            {"username": "alice", "password": "a b;c"},
        ),
        (
            "PlainLoginModule  required\n username = 'alice'\n password='it\"s' ;",
            {"username": "alice", "password": 'it"s'},
        ),
        (r'PlainLoginModule required password="q\"uo\\te" user_bob=x;', {"password": r'q"uo\te', "user_bob": "x"}),
        ("PlainLoginModule optional;", {}),
        ('PlainLoginModule required password="";', {"password": ""}),
    ],
)
def test_the_options_of_a_login(line: str, options: dict[str, str]) -> None:
    login = read_jaas(line)
    assert (login.module, login.options) == ("PlainLoginModule", options)
    assert "alice" not in repr(login)


@pytest.mark.parametrize(
    "line", ["hunter2", "PlainLoginModule user=hunter2", "A required hunter2;", 'A required a="b"; c="hunter2";', ""]
)
def test_other_lines_are_refused_without_their_secrets(line: str) -> None:
    with pytest.raises(ValueError, match=r"^it") as refused:
        read_jaas(line)
    assert "hunter2" not in str(refused.value)
