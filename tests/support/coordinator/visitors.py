"""Logging in to a broker by hand, one connection after the other; its answers can be compared with another's."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from typing import Any

from kafka.net.sasl.scram import ScramClient
from sessions import Session


class Visitor(Session):
    """One connection that tries to log in."""

    def versions(self, version: int = 3, software: str = "test") -> int:
        answer = self.ask("ApiVersions", version, client_software_name=software, client_software_version="1")
        return int(answer.error_code)

    def handshake(self, mechanism: str, version: int = 1) -> tuple[int, list[str]]:
        answer = self.ask("SaslHandshake", version, mechanism=mechanism)
        return answer.error_code, sorted(answer.mechanisms)

    def step(self, token: bytes, version: int = 2) -> Any:
        return self.ask("SaslAuthenticate", version, auth_bytes=token)

    def authenticate(self, token: bytes, version: int = 2) -> tuple[int, str | None, bytes, int]:
        answer = self.step(token, version)
        return answer.error_code, answer.error_message, answer.auth_bytes, answer.session_lifetime_ms

    def raw(self, token: bytes) -> bytes:
        self.socket.sendall(struct.pack(">i", len(token)) + token)
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def send(self, data: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(data)) + data)

    def scram(self, mechanism: str, user: str, password: str) -> Any:
        """A whole login with kafka-python's client: the errors of both steps, and whether the server proved itself."""
        client = ScramClient(user, password, mechanism)
        first = self.step(client.first_message())
        if first.error_code:
            return first.error_code, first.error_message
        client.process_server_first_message(first.auth_bytes)
        iterations = dict(pair.split("=", 1) for pair in first.auth_bytes.decode().split(","))["i"]
        final = self.step(client.final_message())
        if final.error_code:
            return iterations, final.error_code, final.error_message
        client.process_server_final_message(final.auth_bytes)
        return iterations, final.error_code, final.session_lifetime_ms

    def alter_scram(self, *changes: tuple[str, int, int | None]) -> Any:
        """Delete (``None``) or put, with so many iterations, credentials of users for mechanisms by their number."""
        deletions = [{"name": name, "mechanism": kind} for name, kind, count in changes if count is None]
        upsertions = [
            {"name": name, "mechanism": kind, "iterations": count, "salt": b"s" * 20, "salted_password": b"p" * 32}
            for name, kind, count in changes
            if count is not None
        ]
        answer = self.ask("AlterUserScramCredentials", 0, deletions=deletions, upsertions=upsertions)
        return sorted((each.user, each.error_code, each.error_message) for each in answer.results)

    def described_scram(self, *names: str) -> Any:
        answer = self.ask("DescribeUserScramCredentials", 0, users=[{"name": name} for name in names])
        return answer.error_code, sorted(
            (
                each.user, each.error_code, each.error_message,
                sorted((info.mechanism, info.iterations) for info in each.credential_infos),
            )
            for each in answer.results
        )  # fmt: skip

    def works(self) -> int:
        """The error of a request that only who has logged in may send."""
        return int(self.ask("Heartbeat", 4, group_id="secured-g", generation_id=1, member_id="m").error_code)

    def is_hung_up_on(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


class Door:
    """Where visitors come in: a broker's address."""

    def __init__(self, address: str) -> None:
        self.address = address

    @contextlib.contextmanager
    def visitor(self) -> Iterator[Visitor]:
        made = Visitor(self.address)
        with contextlib.closing(made):  # its socket may be another by then
            yield made
