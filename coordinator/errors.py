"""The errors of ``loadwise.coordinator``, for whoever starts one; clients get Kafka's error codes instead.

::

    CoordinatorError              anything this package refuses
    ├── MissingLibraryError       kafka-python is not installed (names the extra)
    ├── NotLoopbackError          asked to listen where others can reach it, without saying so twice
    ├── BadTopicError             a topic that was asked for cannot be
    ├── BadFaultError             a fault that was asked for cannot be
    ├── BadSecurityError          what clients are asked for cannot be
    ├── LoginRefusedError         a client may not log in; it is told so
    ├── BadClusterError           brokers that cannot be, or a broker, topic or replica that is not there
    ├── WeakTokenError            a token for HTTP that is too short
    ├── BadRequestError           an HTTP request is not what the API takes
    ├── NoSuchFaultError          a fault that is to be looked at or removed is not there (any more)
    ├── NoSuchGroupError          a group that is to be acted on is not there
    ├── NoSuchMemberError         a member that is to be acted on is not there
    ├── NoSuchSnapshotError       a snapshot that is to be put back or forgotten is not there (any more)
    ├── DataDirError              a data directory cannot be opened, read or written
    │   └── LostWritesError       writes that were acknowledged are missing from it
    ├── NotRunningError           asked for something that only a running coordinator has
    ├── BadAssignorError          an assignor that groups are to be offered is not there
    ├── BadSettingError           a broker setting of Kafka's that is not there, or a value that it cannot have
    ├── CannotConvertError        a group cannot go on under the other protocol
    ├── InvalidTopologyError      a Streams application's topology is one that no topics can do for
    └── BadRegexError             a subscription's regular expression is none, or none that can be read here
"""

from __future__ import annotations

from loadwise.protocol.error_codes import ErrorCode


class CoordinatorError(Exception):
    """Anything that ``loadwise.coordinator`` refuses."""


class MissingLibraryError(CoordinatorError, ImportError):
    """A library is not installed; the message names the extra that brings it."""


class NotLoopbackError(CoordinatorError, ValueError):
    """The address can be reached from other machines, and ``allow_remote`` was not given."""


class BadTopicError(CoordinatorError, ValueError):
    """A topic cannot be made; the message names it and the reason."""


class BadFaultError(CoordinatorError, ValueError):
    """A fault cannot be made; the message names what is wrong with it and what there is."""


class BadSecurityError(CoordinatorError, ValueError):
    """What clients are asked for (``Security``) cannot be; the message names the field and what it takes."""


class LoginRefusedError(CoordinatorError):
    """A client may not log in. The message is worded as Kafka words it, and may be told to the client."""


class BadCredentialsError(LoginRefusedError):
    """What a client logs in with is not right, or not well-formed; it is not told which."""


class UnansweredLoginError(LoginRefusedError):
    """A client logs in with what Kafka fails on: it gets no answer, but loses its connection."""


class BadClusterError(CoordinatorError, ValueError):
    """Brokers cannot be so, or are asked for something that they do not have; the message names it."""


class WeakTokenError(CoordinatorError, ValueError):
    """A token for HTTP is too short to be safe."""


class BadRequestError(CoordinatorError, ValueError):
    """An HTTP request is not what the API takes; the message names the field and what it takes."""


class NoSuchFaultError(CoordinatorError, LookupError):
    """There is no such fault; those that are used up are forgotten after some time."""


class NoSuchGroupError(CoordinatorError, LookupError):
    """There is no such group; the message names those that there are."""


class NoSuchMemberError(CoordinatorError, LookupError):
    """The group has no such member; the message names those that it has."""


class NoSuchSnapshotError(CoordinatorError, LookupError):
    """There is no such snapshot; the message names those that there are."""


class DataDirError(CoordinatorError):
    """A data directory is in use, damaged, of a newer format, or cannot be written; the message names it and why."""


class LostWritesError(DataDirError):
    """Writes that were acknowledged are missing from a data directory; the message names the way to go on."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(
            f"the data directory {path} has lost writes: {reason}. Put a copy of the whole directory back, or go on "
            "with what is left: --accept-data-loss (accept_data_loss=True)"
        )
        self.reason = reason
        """What is missing."""


class NotRunningError(CoordinatorError, RuntimeError):
    """The coordinator does not run (yet, or any more)."""


class BadRegexError(CoordinatorError, ValueError):
    """A regular expression cannot be used; the message gives the reason. Clients get INVALID_REGULAR_EXPRESSION."""


class InvalidTopologyError(CoordinatorError, ValueError):
    """No topics can do for a Streams application's topology; clients get the message, which is Kafka's."""


class CannotConvertError(CoordinatorError, ValueError):
    """A classic group cannot become a consumer group; the message gives the reason."""

    def __init__(self, message: str, error: ErrorCode = ErrorCode.GROUP_ID_NOT_FOUND) -> None:
        super().__init__(message)
        self.error = error
        """What the member that wanted it is answered."""


class BadAssignorError(CoordinatorError, ValueError):
    """There is no such assignor on the coordinator's side; the message names those that there are."""


class BadSettingError(CoordinatorError, ValueError):
    """There is no such broker setting, or not with this value; the message names it and what it takes."""
