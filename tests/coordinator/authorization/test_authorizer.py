"""The authorizer's decisions, against the real StandardAuthorizer: ``tests/golden/make_decisions.py`` asked it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from access_requests import GROUP_REQUESTS, REQUESTS
from cluster_walk import MemoryKeeper
from hypothesis import given
from hypothesis import strategies as st

from loadwise.coordinator import Acl, Authorization, BadSecurityError, Security
from loadwise.coordinator.authorization.acls import AclFilter, PatternType, Permission
from loadwise.coordinator.authorization.authorizer import Authorizer
from loadwise.coordinator.authorization.feature import ClusterAcls
from loadwise.coordinator.calls.rights import Client, Operation, ResourceType
from loadwise.coordinator.routing.router import Router
from loadwise.coordinator.routing.services import services

CASES = (Path(__file__).parents[2] / "golden" / "standard-authorizer-4.3.1.txt").read_text().splitlines()


def acl_of(text: str) -> Acl:
    kind, name, pattern_type, principal, host, operation, permission = text.split(",")
    return Acl.of(principal, operation, kind, name, pattern_type=pattern_type, host=host, permission=permission)


def decided(authorizer: Authorizer, text: str) -> bool:
    user, host, operation, kind, name = text.split(",")
    who = Client(f"User:{user}", host)
    if name:
        return authorizer.allows(who, Operation[operation], ResourceType[kind], name)
    return authorizer.allows_some(who, Operation[operation], ResourceType[kind])


def test_every_decision_is_the_one_of_apache_kafka() -> None:
    wrong = []
    for case in CASES:
        allows_without_acl, acls, asked, answers = case.split(";")
        options = Authorization(
            acls=[acl_of(each) for each in acls.split("|") if each],
            super_users=["User:super"],
            allow_everyone_if_no_acl_found=allows_without_acl == "true",
        )
        authorizer = options.authorizer()
        for each, answer in zip(asked.split("|"), answers, strict=True):
            if decided(authorizer, each) != (answer == "1"):
                wrong.append((case, each))
    assert wrong == []
    assert {answer for case in CASES for answer in case.split(";")[3]} == {"0", "1"}


ACLS = st.builds(
    Acl,
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    st.sampled_from(["a", "ab", "*"]),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(["User:x", "User:y"]),
    st.sampled_from(["*", "10.0.0.1"]),
    st.sampled_from([Operation.READ, Operation.ALL]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)


@given(st.lists(ACLS, max_size=8), st.lists(ACLS, max_size=8))
def test_acls_that_come_and_go_leave_no_trace(first: list[Acl], others: list[Acl]) -> None:
    whole = Authorizer(first)
    for acl in others:
        whole.add(acl)
    for acl in dict.fromkeys(others):
        if acl not in first:
            whole.remove(acl)
    assert whole.matching(AclFilter()) == list(dict.fromkeys(first))
    fresh = Authorizer(first)
    for who in (Client("User:x", "10.0.0.1"), Client("User:y", "10.0.0.2")):
        for name in ("a", "ab", "abc"):
            asked = (who, Operation.READ, ResourceType.TOPIC, name)
            assert whole.allows(*asked) == fresh.allows(*asked)


@given(st.lists(ACLS, max_size=4), st.lists(st.tuples(st.booleans(), ACLS), max_size=12))
def test_what_a_keeper_was_told_rebuilds_the_acls(first: list[Acl], changes: list[tuple[bool, Acl]]) -> None:
    keeper = MemoryKeeper()
    authorizer = Authorizer(first, keeper)
    for is_added, acl in changes:
        if is_added:
            authorizer.add(acl)
        elif acl in authorizer.matching(AclFilter()):
            authorizer.remove(acl)
    rebuilt = Authorizer(first)
    rebuilt.load(authorizer.records())
    assert set(rebuilt.matching(AclFilter())) == set(authorizer.matching(AclFilter()))
    assert list(keeper.values.values()) == list(authorizer.records())


class CountingName(str):
    """A name that counts how many parts of it are looked at."""

    __slots__ = ("parts",)

    def __getitem__(self, key: Any) -> str:
        self.parts = getattr(self, "parts", 0) + 1
        return super().__getitem__(key)


def test_of_a_long_name_only_those_beginnings_are_looked_for_that_acls_have() -> None:
    authorizer = Authorizer([acl_of(f"GROUP,{name},PREFIXED,User:x,*,READ,ALLOW") for name in ("a", "b", "aaa")])
    gone = acl_of("GROUP,aaaa,PREFIXED,User:x,*,READ,DENY")
    authorizer.add(gone)
    authorizer.remove(gone)
    name = CountingName("a" * 32_767)  # the longest that there is on the wire
    assert authorizer.allows(Client("User:x", "10.0.0.1"), Operation.READ, ResourceType.GROUP, name)
    assert name.parts == len({1, 3})


def test_a_snapshot_has_the_acls() -> None:
    begun, made = Acl.of("User:x", "READ", "TOPIC", "t"), Acl.of("User:x", "WRITE", "TOPIC", "t")
    security = Security(protocol="PLAINTEXT", authorization=Authorization(acls=[begun]))
    cluster = Router(security=security).cluster
    assert ClusterAcls.of(cluster).authorizer is not None
    ClusterAcls.of(cluster).authorizer.add(made)
    ClusterAcls.of(cluster).authorizer.remove(begun)
    snapshot = cluster.snapshot()
    ClusterAcls.of(cluster).authorizer.add(begun)
    ClusterAcls.of(cluster).authorizer.remove(made)
    cluster.restore(snapshot, 1000)
    assert ClusterAcls.of(cluster).authorizer.matching(AclFilter()) == [made]


@given(ACLS)
def test_a_filter_of_an_acls_own_values_finds_it(acl: Acl) -> None:
    authorizer = Authorizer([acl])
    assert authorizer.matching(AclFilter(*acl)) == [acl]
    by_resource = AclFilter(acl.resource_type, acl.name, PatternType.MATCH)
    assert authorizer.matching(by_resource) == [acl]


def test_every_api_is_asked_for_in_the_comparison_with_kafka() -> None:
    asked = {each.api for each in REQUESTS + GROUP_REQUESTS}
    left_out = {"ApiVersions", "SaslAuthenticate", "SaslHandshake"}  # which everybody may use
    assert asked == {service.api.name for service in services().values()} - left_out


def test_words_and_names_that_cannot_be_are_named() -> None:
    for given_, told in (
        (("User:x", "REED", "TOPIC", "t"), "'REED' as its Operation; it takes ALL, READ"),
        (("User:x", "READ", "TOPICS", "t"), "'TOPICS' as its ResourceType; it takes TOPIC, GROUP"),
        (("x", "READ", "TOPIC", "t"), "no colon is present"),
        (("User:x", "READ", "TOPIC", ""), "empty resource name"),
        (("User:x", "ALTER", "CLUSTER", "other"), "kafka-cluster"),
        (("User:x", "ANY", "TOPIC", "t"), "Invalid operation ANY"),
    ):
        with pytest.raises(BadSecurityError, match=told):
            Acl.of(*given_)
    with pytest.raises(BadSecurityError, match="write 'User:admin'"):
        Authorization(super_users=["admin"])
