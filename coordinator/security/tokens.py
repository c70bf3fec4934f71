"""OAuth tokens of OAUTHBEARER clients, and the validator for tests.

Mirrors Kafka's ``OAuthBearerUnsecuredJws`` and ``OAuthBearerUnsecuredValidatorCallbackHandler``, which accept an
unsigned JSON Web Token. Anyone can log in as any user, so it is for tests only.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from loadwise.coordinator.errors import UnansweredLoginError

_LATEST_MS = 2**63 - 1
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


class OAuthToken(NamedTuple):
    """The user and the expiry of a valid token."""

    user: str
    """The user, without ``User:``."""
    expires_ms: int
    """When the token expires, in milliseconds since 1970. The client must log in again before."""


TokenValidator: TypeAlias = Callable[[str], OAuthToken | None]
"""Parses a token; None if it is not valid. Called on the coordinator's event loop, so it must not block."""


def unsecured(token: str, now_ms: int) -> OAuthToken | None:
    """Parse an unsigned token; None if it is not valid now.

    The claims ``sub`` and ``exp`` are required, ``iat`` may not be in the future, and ``scope`` is text or a list.
    Raises `UnansweredLoginError` for a header without an algorithm, on which Kafka fails.
    """
    parts = token.split(".")
    if ".." in token or len(parts) != 3:
        return None
    header, claims = _json(parts[0]), _json(parts[1])
    if header is None or claims is None:
        return None
    if header.get("alg") is None:
        raise UnansweredLoginError("the token's header has no algorithm")
    if header["alg"] != "none" or parts[2] or not isinstance(claims.get("scope"), str | list | None):
        return None
    user, expires_ms, issued_ms = claims.get("sub"), _milliseconds(claims.get("exp")), claims.get("iat")
    if not isinstance(user, str) or not user.strip() or expires_ms is None or now_ms >= expires_ms:
        return None
    if issued_ms is not None:
        issued_ms = _milliseconds(issued_ms)
        if issued_ms is None or issued_ms > now_ms or expires_ms <= issued_ms:
            return None
    return OAuthToken(user, round(min(expires_ms, _LATEST_MS)))


def _milliseconds(seconds: object) -> float | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return 1000 * seconds


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number in JSON")


def _json(part: str) -> Mapping[str, Any] | None:
    """Return the fields of a part; empty for a value without fields, None if it is not JSON."""
    if not _BASE64.fullmatch(part):
        return None
    try:
        decoded = base64.b64decode(part.rstrip("=") + "=" * (-len(part.rstrip("=")) % 4))
        value = json.loads(decoded, parse_constant=_no_number) if decoded.strip() else {}
    except (binascii.Error, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else {}
