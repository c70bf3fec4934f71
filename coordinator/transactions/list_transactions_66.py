"""ListTransactions (66, v0 to v2): lists a broker's transactional ids, optionally by state or producer.

v1 only transactions that started before a duration (KIP-994); v2 only ids that match a pattern (KIP-1152).
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.errors import BadRegexError
from loadwise.coordinator.groups.consumer.topic_regex import matcher
from loadwise.coordinator.handling.access import Access, open_to_all
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.transactions.feature import ClusterTransactions
from loadwise.coordinator.transactions.transaction import Transaction, TransactionState
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ListTransactionsRequest, ListTransactionsResponse

_DURATION = 1
_PATTERN = 2
_STATES = {state.value for state in TransactionState}


def handle(call: Call[ListTransactionsRequest], cluster: Cluster) -> Turns[ListTransactionsResponse]:
    """List the ids that match all filters, and that the client may describe."""
    body, access = call.body, Access(call, cluster)
    pattern = body.transactional_id_pattern if call.version >= _PATTERN else None
    error = ErrorCode.NONE
    unknown = [state for state in dict.fromkeys(body.state_filters) if state not in _STATES]
    transactions = ClusterTransactions.of(cluster)
    ids = list(transactions.ids.all)
    try:
        matches = matcher(pattern) if pattern else None
    except BadRegexError:
        error, ids, unknown = ErrorCode.INVALID_REGULAR_EXPRESSION, [], []
    row = ListTransactionsResponse.TransactionState
    states = []
    for transactional_id in ids:
        yield
        each = transactions.ids.all.get(transactional_id)
        if (
            each is not None  # it may have expired meanwhile
            and (matches is None or matches(transactional_id))
            and transactions.is_coordinator(call, transactional_id)
            and _is_wanted(call, cluster, each)
            and access.may(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        ):
            state = each.state.value
            states.append(row(transactional_id=transactional_id, producer_id=each.producer_id, transaction_state=state))
    return ListTransactionsResponse(
        error_code=error,
        unknown_state_filters=unknown,
        transaction_states=states,
    )


def _is_wanted(call: Call[ListTransactionsRequest], cluster: Cluster, each: Transaction) -> bool:
    body = call.body
    if body.state_filters and each.state.value not in body.state_filters:
        return False
    if body.producer_id_filters and each.producer_id not in body.producer_id_filters:
        return False
    longer_than_ms = body.duration_filter if call.version >= _DURATION else -1
    return longer_than_ms < 0 or cluster.now_ms - each.started_ms > longer_than_ms


guard = open_to_all
