// A topic, a producer and a group, with kafka-ts.
import { createRequire } from "node:module";

const { createKafkaClient } = createRequire(`${process.env.NODE_PATH}/`)("kafka-ts");
const [host, port] = process.env.BROKER.split(":");
const kafka = createKafkaClient({ clientId: "program", bootstrapServers: [{ host, port: Number(port) }] });
const producer = kafka.createProducer({ allowTopicAutoCreation: true });
await producer.send(Array.from({ length: 50 }, (_, n) => ({ topic: process.env.NAME, key: `k${n}`, value: `hello ${n}` })));
let read = 0;
const consumer = await kafka.startConsumer({
  topics: [process.env.NAME], groupId: process.env.NAME, fromTimestamp: -2n, fromBeginning: true, allowTopicAutoCreation: true,
  onBatch: async (messages) => {
    read += messages.length;
    if (read >= 50) console.log("read", read);
  },
});
while (read < 50) await new Promise((resolve) => setTimeout(resolve, 50));
await consumer.close();
await producer.close();
console.log("done");
process.exit(0);
