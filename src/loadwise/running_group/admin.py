"""The connection to the Kafka of a running group: kafka-python's admin client and its errors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from loadwise.assignor.clients.kafka_python.lag import Admin
from loadwise.assignor.clients.kafka_python.logged_once import log_once
from loadwise.assignor.clients.kafka_python.refusals import REFUSALS, TlsRefusedError
from loadwise.assignor.clients.kafka_python.version import TRIED
from loadwise.running_group.errors import BadConnectionError, UnreadableGroupError

# Importing the lag reader first names the extra if kafka-python is not installed.
from kafka.errors import (  # isort: skip
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NoError,
    RequestTimedOutError,
    for_code,
)
from kafka.protocol.admin import DescribeLogDirsRequest  # isort: skip

from loadwise.running_group.kafka_python_messages import (  # isort: skip
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)

_TIMEOUT_MS = 9_000
_CONNECTION = "see --bootstrap-servers, and security.protocol, sasl.* and ssl.* in --command-config"


class GroupAdmin(Admin):
    """kafka-python's admin client, which returns the descriptions of groups unchanged."""

    def describe_classic(self, group_id: str) -> Any:
        """Return the group's description from DescribeGroups. Raises `KafkaError`."""
        return self.describe_groups([group_id])[group_id]

    def describe_consumer_group(self, group_id: str) -> Any | None:
        """Return the group's description from ConsumerGroupDescribe (KIP-848); None if the broker lacks the request.

        Raises `KafkaError`.
        """
        try:
            request = ConsumerGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
            response = self._manager.run(self._ask_coordinator, group_id, request)
        except IncompatibleBrokerVersion:
            return None
        return response.groups[0]

    def heartbeat(self, group_id: str, **fields: Any) -> Any:
        """Send a ConsumerGroupHeartbeat (KIP-848) to the coordinator; return its answer. Raises `KafkaError`."""
        request = ConsumerGroupHeartbeatRequest(group_id=group_id, **fields)
        return self._manager.run(self._ask_coordinator, group_id, request)

    def describe_all_log_dirs(self, brokers: list[int]) -> Any:
        """Return the log directories of brokers, with topics that the user may not describe too. Raises `KafkaError`.

        The client's own method asks for the topics that it sees, and drops the error of a broker.
        """
        return self._manager.run(self._ask_log_dirs, brokers)

    async def _ask_log_dirs(self, brokers: list[int]) -> list[dict[str, Any]]:
        answers = []
        for broker in brokers:
            response = await self._manager.send(DescribeLogDirsRequest(topics=None), node_id=broker)
            refused = for_code(response.error_code)
            if refused is not NoError:
                raise refused(f"broker {broker} does not describe its log directories")
            answers.append({"broker": broker, "log_dirs": [each.to_dict() for each in response.results]})
        return answers

    async def _ask_coordinator(self, group_id: str, request: Any) -> Any:
        return await self._manager.send(request, node_id=await self._find_coordinator_id(group_id))

    def _describe_groups_process_response(self, response: Any) -> dict[str, Any]:
        # The client's own processing turns the members' user data, which are bytes, into text, irreversibly.
        return {group.group_id: group for group in response.groups}


def _send_naming_broker(
    manager: Any, send: Callable[..., Any], request: Any, node_id: int | None = None, **options: Any
) -> Any:
    """Send a request; a broker that does not answer is named in the error."""
    if node_id is None:
        node_id = manager.least_loaded_node()
    return send(request, node_id=node_id, **options).add_errback(partial(_name_broker, node_id))


def _name_broker(node_id: int | str | None, error: Exception) -> None:
    # A closed connection gives all its requests the same error. Before metadata, node ids are names of the client's.
    unanswered = isinstance(error, KafkaConnectionError | RequestTimedOutError)
    if isinstance(node_id, int) and unanswered and not str(error.args[:1]).startswith("('broker "):
        error.args = (f"broker {node_id}: {error.args[0] if error.args else 'no answer'}", *error.args[1:])


@contextlib.contextmanager
def connected(
    bootstrap_servers: str, settings: Mapping[str, Any] | None = None, *, client_id: str
) -> Iterator[GroupAdmin]:
    """Connect for a with block. ``settings`` are keyword arguments of kafka-python's clients.

    Raises `BadConnectionError` and `UnreadableGroupError`.
    """
    for path in map(Path, {(settings or {}).get(name, "/") for name in ("ssl_cafile", "ssl_certfile")}):
        if not path.exists():  # kafka-python would retry until its timeout, and not say why
            raise BadConnectionError(f"there is no file {path}; see --command-config")
    timeouts = {"request_timeout_ms": _TIMEOUT_MS, "bootstrap_timeout_ms": _TIMEOUT_MS}
    try:
        options = {"client_id": client_id, **timeouts, **(settings or {})}
        if TRIED.includes_installed:
            from loadwise.assignor.clients.kafka_python.logins import client_that_tells  # noqa: PLC0415 (private parts)

            options["kafka_client"] = client_that_tells
        else:
            TRIED.warn("a refused login has no reason, and groups of the consumer protocol may not be readable")
        admin = GroupAdmin(bootstrap_servers=bootstrap_servers, **options)
        if TRIED.includes_installed:
            log_once(admin._net._io_thread)  # later failures are raised
            admin._manager.send = partial(_send_naming_broker, admin._manager, admin._manager.send)
    except (*REFUSALS, TlsRefusedError) as error:
        raise UnreadableGroupError(
            f"{bootstrap_servers} refuses the login ({error.args[0] if error.args else error}); see security.protocol,"
            " sasl.* and ssl.* in --command-config"
        ) from error
    except KafkaTimeoutError as error:
        raise UnreadableGroupError(f"{error.args[0]}; {_CONNECTION}") from error
    except KafkaError as error:
        raise UnreadableGroupError(f"no Kafka answers at {bootstrap_servers} ({error}); {_CONNECTION}") from error
    except ValueError as error:
        raise BadConnectionError(
            f"{bootstrap_servers!r} is not HOST:PORT ({error}); see --bootstrap-servers"
        ) from error
    with contextlib.closing(admin):
        yield admin
