"""Make the golden decisions: ACLs at random, and whom the real StandardAuthorizer allows what.

    python tests/golden/make_decisions.py --libs FOLDER_OF_KAFKAS_JARS > tests/golden/standard-authorizer-4.3.1.txt

Needs a JDK 17; CONTRIBUTING.md says where the jars are. A line has, with semicolons between them: whether everybody is
allowed what no ACL is about, the ACLs, what is asked (without a name: for any resource of the type), and the answers.
"""

from __future__ import annotations

import random

import java_answers

_CASES = 400
_ASKED = 12
_OPERATIONS = (
    "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS",
)  # fmt: skip
_NAMES = ("a", "ab", "abc", "abd", "b", "*")
_TYPES = ("TOPIC", "TOPIC", "GROUP")
_HOSTS = ("10.0.0.1", "10.0.0.2")


def _case(draw: random.Random) -> str:
    acls = [
        ",".join((
            draw.choice(_TYPES), draw.choice(_NAMES), draw.choice(("LITERAL", "LITERAL", "PREFIXED")),
            draw.choice(("User:x", "User:x", "User:y", "User:*")), draw.choice(("*", "*", *_HOSTS)),
            draw.choice(_OPERATIONS), draw.choice(("ALLOW", "ALLOW", "DENY")),
        ))
        for _ in range(draw.randrange(7))
    ]  # fmt: skip
    asked = [
        ",".join((
            draw.choice(("x", "x", "y", "super")), draw.choice(_HOSTS), draw.choice(_OPERATIONS[1:]),
            draw.choice(_TYPES), draw.choice((*_NAMES[:-1], "hardcode", "")),
        ))
        for _ in range(_ASKED)
    ]  # fmt: skip
    return ";".join((draw.choice(("true", "false", "false")), "|".join(dict.fromkeys(acls)), "|".join(asked)))


if __name__ == "__main__":
    java_answers.write(__doc__, "Decisions.java", _case, _CASES, seed=431)
