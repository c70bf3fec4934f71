// A topic and a group, with @platformatic/kafka.
const { Admin, Consumer, Producer, stringDeserializers, stringSerializers } = require("@platformatic/kafka");

const { BROKER, NAME } = process.env;
const common = { clientId: NAME, bootstrapBrokers: [BROKER] };

async function main() {
  const admin = new Admin(common);
  await admin.createTopics({ topics: [NAME], partitions: 2, replicas: 1 });
  const producer = new Producer({ ...common, serializers: stringSerializers });
  await producer.send({ messages: [{ topic: NAME, key: "k", value: "hello" }] });
  const consumer = new Consumer({ ...common, groupId: NAME, deserializers: stringDeserializers });
  const stream = await consumer.consume({ topics: [NAME], mode: "earliest", autocommit: true });
  for await (const message of stream) {
    console.log("read", message.value);
    break;
  }
  await consumer.close(true);
  await Promise.all([producer.close(), admin.close()]);
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
