// A topic and a group, with confluent's client.
const { Kafka } = require("@confluentinc/kafka-javascript").KafkaJS;

const { BROKER, NAME } = process.env;
const kafka = new Kafka({ kafkaJS: { brokers: [BROKER] } });

async function main() {
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: NAME, numPartitions: 2 }] });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: NAME, messages: [{ key: "k", value: "hello" }] });
  const consumer = kafka.consumer({ kafkaJS: { groupId: NAME, fromBeginning: true } });
  await consumer.connect();
  await consumer.subscribe({ topic: NAME });
  await new Promise((resolve) => {
    consumer.run({ eachMessage: async ({ message }) => { console.log("read", message.value.toString()); resolve(); } });
  });
  await Promise.all([consumer.disconnect(), producer.disconnect(), admin.disconnect()]);
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
