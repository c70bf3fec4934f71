"""Whose fault an error of a produced batch is: the broker's or network's, the topic's or record's, or neither."""

from __future__ import annotations

from loadwise.dispatcher.acknowledgements import Batch
from loadwise.dispatcher.dispatcher import Dispatcher
from loadwise.protocol.error_codes import BROKER_ERRORS

_NETWORK_ERRORS = frozenset({"KafkaTimeoutError", "KafkaConnectionError", "NodeNotReadyError"})
"""Errors of kafka-python and aiokafka without a code of Kafka's protocol."""


def report(dispatcher: Dispatcher, batch: Batch, code: int | None, *, network: bool) -> None:
    """Report a failed batch by its code in Kafka's protocol, None for an error of the client.

    A topic that refuses its records must not take a healthy broker away from the others.
    """
    if network or code in BROKER_ERRORS:
        dispatcher.failed(batch)
    elif code is None:
        dispatcher.acknowledged(batch, None, 0)
    else:
        dispatcher.refused(batch)


def report_exception(dispatcher: Dispatcher, batch: Batch, error: BaseException | None) -> None:
    """Report an error of kafka-python or aiokafka; None if the batch was cancelled."""
    report(dispatcher, batch, getattr(error, "errno", None), network=type(error).__name__ in _NETWORK_ERRORS)
