"""Send records to the brokers that have room for them: the producer's side of load awareness."""

from loadwise.dispatcher.dispatcher import Dispatcher
from loadwise.dispatcher.errors import BadDispatcherError, DispatcherError

__all__ = ["BadDispatcherError", "Dispatcher", "DispatcherError"]
