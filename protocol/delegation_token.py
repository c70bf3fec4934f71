"""The messages of delegation tokens (KIP-48) and UnregisterBroker, for which kafka-python has no classes.

They are made as it makes its own. Their definitions are those of Apache Kafka 4.3.1, in `loadwise.protocol.schemas`:
CreateDelegationToken (38) v1 to v3, RenewDelegationToken (39) and ExpireDelegationToken (40) v1 and v2,
DescribeDelegationToken (41) v1 to v3, UnregisterBroker (64) v0.
"""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage

_SCHEMAS = "loadwise.protocol.schemas"


class CreateDelegationTokenRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Asks for a token to log in with."""


class CreateDelegationTokenResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """The token, or why there is none."""


class RenewDelegationTokenRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Asks for a later end of a token."""


class RenewDelegationTokenResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """When it ends."""


class ExpireDelegationTokenRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Asks for an earlier end of a token."""


class ExpireDelegationTokenResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """When it ends."""


class DescribeDelegationTokenRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Asks for the tokens of some owners."""


class DescribeDelegationTokenResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """The tokens."""


class UnregisterBrokerRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """A broker is not to be part of the cluster any more."""


class UnregisterBrokerResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Whether it was one."""
