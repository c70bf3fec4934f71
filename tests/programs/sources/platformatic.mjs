// A topic, records in batches, a group as a stream, offsets and groups by admin calls, with @platformatic/kafka.
import { createRequire } from "node:module";

// Newer versions of Node than many machines have.
Promise.withResolvers ??= () => {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
};
const { Admin, Consumer, Producer, stringDeserializers, stringSerializers } =
  createRequire(`${process.env.NODE_PATH}/`)("@platformatic/kafka");
const { BROKER, NAME } = process.env;
const about = { clientId: "program", bootstrapBrokers: [BROKER] };

const admin = new Admin(about);
await admin.createTopics({ topics: [NAME], partitions: 2, replicas: 1 });
const producer = new Producer({ ...about, serializers: stringSerializers, idempotent: true });
await producer.send({ messages: Array.from({ length: 100 }, (_, n) => ({ topic: NAME, key: `k${n}`, value: `hello ${n}`, headers: { a: "b" } })) });
for (const groupProtocol of ["classic", "consumer"]) {
  const groupId = `${NAME}-${groupProtocol}`;
  const consumer = new Consumer({ ...about, groupId, groupProtocol, deserializers: stringDeserializers });
  const stream = await consumer.consume({ topics: [NAME], mode: "earliest", autocommit: false, maxWaitTime: 100 });
  let read = 0;
  for await (const message of stream) {
    await message.commit();
    if (++read === 100) break;
  }
  console.log(groupProtocol, "read", read);
  await stream.close();
  await consumer.close(true);
}
const groups = await admin.listGroups();
console.log("groups", [...groups.keys()].filter((each) => each.startsWith(NAME)).length);
await admin.deleteTopics({ topics: [NAME] });
await producer.close();
await admin.close();
console.log("done");
