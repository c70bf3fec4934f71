// A topic, a transaction and a group, with kafkajs.
const { Kafka, logLevel } = require("kafkajs");

const { BROKER, NAME } = process.env;
const kafka = new Kafka({ brokers: [BROKER], logLevel: logLevel.ERROR });

async function main() {
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: NAME, numPartitions: 2 }], waitForLeaders: true });
  const producer = kafka.producer({ transactionalId: NAME, idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  const transaction = await producer.transaction();
  await transaction.send({ topic: NAME, messages: [{ key: "k", value: "hello" }] });
  await transaction.commit();
  const consumer = kafka.consumer({ groupId: NAME });
  await consumer.connect();
  await consumer.subscribe({ topic: NAME, fromBeginning: true });
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, (event) => reject(event.payload.error));
    consumer.run({ eachMessage: async ({ message }) => { console.log("read", message.value.toString()); resolve(); } });
  });
  await consumer.stop();
  const offsets = await admin.fetchOffsets({ groupId: NAME, topics: [NAME] });
  console.log("committed", JSON.stringify(offsets));
  const { groups } = await admin.describeGroups([NAME]);
  console.log(groups[0].state);
  await Promise.all([consumer.disconnect(), producer.disconnect(), admin.disconnect()]);
}

main().catch((error) => { console.error(error); process.exit(1); });
