"""loadwise: load-aware partition assignment for Kafka consumers.

The four parts are ``loadwise.assignor`` (partition assignment), ``loadwise.coordinator`` (a group coordinator for
tests and demos), ``loadwise.protocol`` (the wire protocol under both) and ``loadwise.spark_source`` (a PySpark data
source that honours the assignments). ``docs/architecture.md`` in the repository has the map.

The names that users need can be imported from here. Each is loaded when it is first used, and needs the extra of its
part: without it, an ImportError names the extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from loadwise.version import __version__

if TYPE_CHECKING:
    from loadwise.assignor.algorithms.optimal import Optimal
    from loadwise.assignor.algorithms.weighted import Weighted
    from loadwise.assignor.balance import Balance
    from loadwise.assignor.clients.aiokafka import AiokafkaConsumer, aiokafka_consumer
    from loadwise.assignor.clients.confluent_kafka import ConfluentConsumer, confluent_consumer
    from loadwise.assignor.clients.confluent_kafka.aio import ConfluentAioConsumer, confluent_aio_consumer
    from loadwise.assignor.clients.kafka_python import KafkaPythonConsumer, kafka_python_consumer
    from loadwise.assignor.live.decision import Decision
    from loadwise.assignor.live.settings import LiveSettings
    from loadwise.assignor.load.drain import DrainLoad
    from loadwise.assignor.load.history import HistoryLoad
    from loadwise.assignor.load.lag import LagLoad
    from loadwise.assignor.load.mix import MixedLoad
    from loadwise.assignor.load.polled import PolledLoad
    from loadwise.assignor.load.rate import RateLoad
    from loadwise.assignor.load.source import FixedLoad, LoadSnapshot, LoadSource
    from loadwise.assignor.prometheus import GroupCollector
    from loadwise.assignor.strategy import Cooperative
    from loadwise.coordinator import Coordinator, KafkaContainer
    from loadwise.dispatcher.clients.aiokafka import AiokafkaProducer, aiokafka_producer
    from loadwise.dispatcher.clients.confluent_kafka import ConfluentProducer, confluent_producer
    from loadwise.dispatcher.clients.kafka_python import kafka_python_producer
    from loadwise.dispatcher.dispatcher import Dispatcher
    from loadwise.dispatcher.metrics import LogDirGrowth, PromQL
    from loadwise.dispatcher.spread_keys import SpreadKeys

    # At run time `__getattr__` makes it: the names whose extras are installed.
    __all__ = [
        "AiokafkaConsumer",
        "AiokafkaProducer",
        "Balance",
        "ConfluentAioConsumer",
        "ConfluentConsumer",
        "ConfluentProducer",
        "Cooperative",
        "Coordinator",
        "Decision",
        "Dispatcher",
        "DrainLoad",
        "FixedLoad",
        "GroupCollector",
        "HistoryLoad",
        "KafkaContainer",
        "KafkaPythonConsumer",
        "LagLoad",
        "LiveSettings",
        "LoadSnapshot",
        "LoadSource",
        "LogDirGrowth",
        "MixedLoad",
        "Optimal",
        "PolledLoad",
        "PromQL",
        "RateLoad",
        "SpreadKeys",
        "Weighted",
        "__version__",
        "aiokafka_consumer",
        "aiokafka_producer",
        "confluent_aio_consumer",
        "confluent_consumer",
        "confluent_producer",
        "kafka_python_consumer",
        "kafka_python_producer",
    ]

_PLACES = {
    "algorithms.optimal": ["Optimal"],
    "algorithms.weighted": ["Weighted"],
    "balance": ["Balance"],
    "clients.aiokafka": ["AiokafkaConsumer", "aiokafka_consumer"],
    "clients.confluent_kafka": ["ConfluentConsumer", "confluent_consumer"],
    "clients.confluent_kafka.aio": ["ConfluentAioConsumer", "confluent_aio_consumer"],
    "clients.kafka_python": ["KafkaPythonConsumer", "kafka_python_consumer"],
    "live.decision": ["Decision"],
    "live.settings": ["LiveSettings"],
    "load.drain": ["DrainLoad"],
    "load.history": ["HistoryLoad"],
    "load.lag": ["LagLoad"],
    "load.mix": ["MixedLoad"],
    "load.rate": ["RateLoad"],
    "load.polled": ["PolledLoad"],
    "load.source": ["FixedLoad", "LoadSnapshot", "LoadSource"],
    "prometheus": ["GroupCollector"],
    "strategy": ["Cooperative"],
}
_MODULES = {name: f"loadwise.assignor.{module}" for module, names in _PLACES.items() for name in names}
_MODULES |= dict.fromkeys(["Coordinator", "KafkaContainer"], "loadwise.coordinator")
_MODULES |= {
    "AiokafkaProducer": "loadwise.dispatcher.clients.aiokafka",
    "ConfluentProducer": "loadwise.dispatcher.clients.confluent_kafka",
    "Dispatcher": "loadwise.dispatcher.dispatcher",
    "LogDirGrowth": "loadwise.dispatcher.metrics",
    "PromQL": "loadwise.dispatcher.metrics",
    "SpreadKeys": "loadwise.dispatcher.spread_keys",
    "aiokafka_producer": "loadwise.dispatcher.clients.aiokafka",
    "confluent_producer": "loadwise.dispatcher.clients.confluent_kafka",
    "kafka_python_producer": "loadwise.dispatcher.clients.kafka_python",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used (PEP 562)."""
    if name == "__all__":
        return ["__version__", *filter(_is_there, sorted(_MODULES))]
    if name not in _MODULES:
        from loadwise.nearest import did_you_mean  # noqa: PLC0415  (seldom needed)

        near = did_you_mean(name, _MODULES)
        # With the name, and without the object, Python adds no second suggestion.
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{near}", name=name)
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def _is_there(name: str) -> bool:
    """Return whether everything that a name needs is installed, for ``from loadwise import *``."""
    try:
        __getattr__(name)
    except ImportError:
        return False
    return True


def __dir__() -> list[str]:
    return sorted(globals().keys() | _MODULES.keys())
