"""The errors of ``loadwise.coordinator``. Clients get Kafka's error codes instead.

::

    CoordinatorError              base class
    ├── MissingLibraryError       a library is not installed (names the extra)
    ├── NotLoopbackError          other machines can reach the address, and it was not allowed
    ├── BadTopicError             a topic cannot be created
    ├── BadFaultError             a fault is not valid
    ├── BadSecurityError          ``Security`` is not valid
    ├── LoginRefusedError         a client's login failed
    ├── BadClusterError           brokers are not valid, or a broker, topic or replica does not exist
    ├── WeakTokenError            the HTTP token is too short
    ├── BadRequestError           an HTTP request is not valid
    ├── NoSuchFaultError          no such fault (any more)
    ├── NoSuchGroupError          no such group
    ├── NoSuchMemberError         no such member
    ├── NoSuchSnapshotError       no such snapshot (any more)
    ├── DataDirError              a data directory cannot be opened, read or written
    │   └── LostWritesError       acknowledged writes are missing from it
    ├── NotRunningError           the coordinator is not running
    ├── BadAssignorError          no such assignor on the coordinator's side
    ├── BadSettingError           no such broker setting, or its value is not valid
    ├── CannotConvertError        a group cannot change its protocol
    ├── InvalidTopologyError      a Streams application's topology is not valid
    └── BadRegexError             a subscription's regular expression is not valid
"""

from __future__ import annotations

from loadwise.protocol.error_codes import ErrorCode


class CoordinatorError(Exception):
    """The base class of all errors of ``loadwise.coordinator``."""


class MissingLibraryError(CoordinatorError, ImportError):
    """A library is not installed; the message names the extra that installs it."""


class NotLoopbackError(CoordinatorError, ValueError):
    """Other machines can reach the address, and ``allow_remote`` was not given."""


class BadTopicError(CoordinatorError, ValueError):
    """A topic cannot be created; the message gives its name and the reason."""


class BadFaultError(CoordinatorError, ValueError):
    """A fault is not valid; the message says why and lists the valid values."""


class BadSecurityError(CoordinatorError, ValueError):
    """A `Security` is not valid; the message names the field and its valid values."""


class LoginRefusedError(CoordinatorError):
    """A client's login failed. The message is Kafka's, and may be sent to the client."""


class BadCredentialsError(LoginRefusedError):
    """The client's credentials are wrong or malformed; the client does not learn which."""


class UnansweredLoginError(LoginRefusedError):
    """A login on which Kafka itself fails. The client gets no answer, and its connection is closed."""


class BadClusterError(CoordinatorError, ValueError):
    """Brokers are not valid, or a broker, topic or replica does not exist; the message names it."""


class WeakTokenError(CoordinatorError, ValueError):
    """The HTTP token is too short to be safe."""


class BadRequestError(CoordinatorError, ValueError):
    """An HTTP request is not valid; the message names the field and its valid values."""


class NoSuchFaultError(CoordinatorError, LookupError):
    """The fault does not exist, or it was used up and dropped."""


class NoSuchGroupError(CoordinatorError, LookupError):
    """The group does not exist; the message lists the existing groups."""


class NoSuchMemberError(CoordinatorError, LookupError):
    """The group has no such member; the message lists its members."""


class NoSuchSnapshotError(CoordinatorError, LookupError):
    """The snapshot does not exist; the message lists the existing snapshots."""


class DataDirError(CoordinatorError):
    """A data directory is in use, damaged, of a newer format, or not writable.

    The message gives its path and the reason.
    """


class LostWritesError(DataDirError):
    """Acknowledged writes are missing from a data directory; the message says how to continue."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(
            f"the data directory {path} has lost writes: {reason}. Restore a copy of the whole directory, or continue "
            "with what is left: --accept-data-loss (accept_data_loss=True)"
        )
        self.reason = reason
        """What is missing."""


class NotRunningError(CoordinatorError, RuntimeError):
    """The coordinator is not running, or has been stopped."""


class BadRegexError(CoordinatorError, ValueError):
    """A regular expression is not valid; the message says why. Clients get INVALID_REGULAR_EXPRESSION."""


class InvalidTopologyError(CoordinatorError, ValueError):
    """A Streams application's topology is not valid; clients get the message, which is Kafka's."""


class CannotConvertError(CoordinatorError, ValueError):
    """A classic group cannot become a consumer group; the message says why."""

    def __init__(self, message: str, error: ErrorCode = ErrorCode.GROUP_ID_NOT_FOUND) -> None:
        super().__init__(message)
        self.error = error
        """The error that the member gets."""


class BadAssignorError(CoordinatorError, ValueError):
    """The coordinator has no such assignor; the message lists the existing ones."""


class BadSettingError(CoordinatorError, ValueError):
    """A broker setting does not exist, or its value is not valid; the message says which."""
