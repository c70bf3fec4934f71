"""Bytewax reads a topic, writes another, and reads that."""

import os

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

NAME, BROKERS = os.environ["NAME"], [os.environ["BROKER"]]
admin = AdminClient({"bootstrap.servers": BROKERS[0]})
for future in admin.create_topics([NewTopic(NAME, 2), NewTopic(f"{NAME}-out", 2)]).values():
    future.result(30)
producer = Producer({"bootstrap.servers": BROKERS[0]})
producer.produce(NAME, b"hello")
producer.flush(30)


def passed_on(message):
    print("passed on", message.value.decode(), flush=True)
    return message


flow = Dataflow("upper")
read = kop.input("read", flow, brokers=BROKERS, topics=[NAME])
upper = op.map("upper", read.oks, lambda message: KafkaSinkMessage(message.key, message.value.upper()))
kop.output("write", upper, brokers=BROKERS, topic=f"{NAME}-out")
again = kop.input("again", flow, brokers=BROKERS, topics=[f"{NAME}-out"])
op.inspect("shown", op.map("passed_on", again.oks, passed_on))
