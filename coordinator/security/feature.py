"""The logins of one cluster: its users, and how clients prove who they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.refusal_shapes import Refused, Rows
from loadwise.coordinator.errors import LoginRefusedError
from loadwise.coordinator.feature import Feature
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.keeper import Place, Snapshot
from loadwise.coordinator.security import config_names
from loadwise.coordinator.security.login import SaslLogin
from loadwise.coordinator.security.options import Security
from loadwise.coordinator.security.principal_rules import principal_name, principal_rules
from loadwise.coordinator.security.tls import subject_name
from loadwise.coordinator.security.users import ScramRecord, Users
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse


def _refused_users(call: Call[AlterUserScramCredentialsRequest], error: ErrorCode) -> Mapping[str, Any]:
    """Return a row for each user, who may be in both lists."""
    names = dict.fromkeys([*(each.name for each in call.body.deletions), *(each.name for each in call.body.upsertions)])
    row = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    return {"results": [row(user=name, error_code=error, error_message=None) for name in names]}


class ClusterLogins(Feature):
    """The users of a cluster, and the logins of its connections."""

    refusals: ClassVar[Mapping[str, Refused]] = {
        "AlterUserScramCredentials": Refused(values=_refused_users),
        "DescribeUserScramCredentials": Refused([Rows("results", "users")]),
    }
    other_settings = config_names.NAMES

    def __init__(self, cluster: Cluster) -> None:
        options = cluster.security
        self._security = options if isinstance(options, Security) else Security(protocol="PLAINTEXT")
        self._rules = principal_rules(self._security.principal_mapping_rules)
        self.users = Users(self._security.users, self._security.mechanisms, cluster.keeper)

    @classmethod
    def kinds(cls) -> Mapping[str, type]:
        """Return the kinds of values that it keeps, by their names in a data directory."""
        return {"scram": ScramRecord}

    def load(self, state: Snapshot) -> None:
        """Load what administrators changed."""
        self.users.load(state.of(ScramRecord))

    def values(self) -> Iterable[tuple[Place, object]]:
        """Return what administrators changed."""
        return ((each.place, each) for each in self.users.records())

    def new_login(self, certificate: Mapping[str, Any] | None) -> SaslLogin | None:
        """Return the login of a new connection, whose client may have a certificate."""
        options = self._security
        if options.asks_for_login:
            return SaslLogin(self.users, options.mechanisms, options.validate_token, options.max_session_ms)
        if certificate is None:
            return None
        subject = subject_name(certificate)
        name = principal_name(self._rules, subject)
        if name is None:
            raise LoginRefusedError(f"no rule of ssl.principal.mapping.rules matches the certificate of {subject}")
        return SaslLogin.by_certificate(name)


def login_of(call: Call) -> SaslLogin | None:
    """Return the login of a call's connection; None if clients need not log in."""
    return call.login if isinstance(call.login, SaslLogin) else None


FEATURE = ClusterLogins
