"""The messages of KIP-932's share groups, which kafka-python has no classes for, made as it makes its own.

Their definitions are those of Apache Kafka 4.3.1, in `loadwise.protocol.schemas`: ShareGroupHeartbeat (76) and
ShareGroupDescribe (77) v1, ShareFetch (78) and ShareAcknowledge (79) v1 and v2 (acquiring by a limit of records,
KIP-1206, and renewing locks, KIP-1222), DescribeShareGroupOffsets (90) v0 and v1 (lag, KIP-1226),
AlterShareGroupOffsets (91) and DeleteShareGroupOffsets (92) v0.
"""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage

_SCHEMAS = "loadwise.protocol.schemas"


class ShareGroupHeartbeatRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """A member is alive, and tells what is new."""


class ShareGroupHeartbeatResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """The member's epoch, and its assignment where that is new."""


class ShareGroupDescribeRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Asks for share groups by their ids."""


class ShareGroupDescribeResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Share groups with their members and assignments."""


class ShareFetchRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Acquires records, and acknowledges others."""


class ShareFetchResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Records, and which of them were acquired."""


class ShareAcknowledgeRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Tells what became of records that were acquired."""


class ShareAcknowledgeResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Whether that was taken in."""


class DescribeShareGroupOffsetsRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # as above
    """Asks where share groups are."""


class DescribeShareGroupOffsetsResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # as above
    """The start offset and the lag of each partition."""


class AlterShareGroupOffsetsRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # as above
    """Sets where a share group without members begins."""


class AlterShareGroupOffsetsResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # as above
    """What became of each partition."""


class DeleteShareGroupOffsetsRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # as above
    """Lets a share group without members forget topics."""


class DeleteShareGroupOffsetsResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # as above
    """What became of each topic."""
