"""Tokens as clients of OAUTHBEARER bring them, whole and broken."""

from __future__ import annotations

import base64
import json
from typing import Any


def jws(claims: Any, header: Any = {"alg": "none"}, signature: str = "") -> str:  # noqa: B006
    def part(value: Any) -> str:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.b64encode(data).decode().rstrip("=")

    return f"{part(header)}.{part(claims)}.{signature}"


def first_message(token: str, authorization_id: str = "") -> bytes:
    return f"n,{authorization_id},\x01auth=Bearer {token}\x01\x01".encode()
