// A producer and a group, with kafka-crab-js: librdkafka by Rust in JavaScript.
import { createRequire } from "node:module";

const { KafkaClient } = createRequire(`${process.env.NODE_PATH}/`)("kafka-crab-js");
const { BROKER, NAME } = process.env;
const client = new KafkaClient({ brokers: BROKER, clientId: "program", logLevel: "error" });
const producer = client.createProducer({ configuration: { "message.timeout.ms": "30000" } });
await producer.send({ topic: NAME, messages: Array.from({ length: 20 }, (_, n) => ({ key: Buffer.from(`k${n}`), payload: Buffer.from(`hello ${n}`) })) });
const consumer = client.createConsumer({ groupId: NAME, configuration: { "auto.offset.reset": "earliest" } });
await consumer.subscribe(NAME);
for (let read = 0; read < 20; read++) await consumer.recv();
console.log("read 20");
process.exit(0);
