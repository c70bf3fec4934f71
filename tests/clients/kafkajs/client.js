// A kafkajs client for the interop tests, as a program of its own; the same commands and lines as franz-go/main.go.
// kafkajs knows neither static members nor cooperative rebalancing, and has one assignor of its own, RoundRobinAssigner.
"use strict";

const { Kafka, logLevel, PartitionAssigners } = require("kafkajs");

function say(event, details) {
  console.log(JSON.stringify({ event, ...details }));
}

function client(bootstrap) {
  return new Kafka({ brokers: bootstrap.split(","), clientId: "kafkajs", logLevel: logLevel.NOTHING });
}

async function member(bootstrap, group, topic, strategy, sessionMs) {
  const consumer = client(bootstrap).consumer({
    groupId: group,
    partitionAssigners: [PartitionAssigners.roundRobin],
    sessionTimeout: Number(sessionMs),
    rebalanceTimeout: 60000,
    heartbeatInterval: 200,
    maxWaitTimeInMs: 200,
    metadataMaxAge: 2000,
    retry: { retries: 50, maxRetryTime: 500 },
  });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    say("assigned", { partitions: payload.memberAssignment[topic] || [] });
  });
  consumer.on(consumer.events.REBALANCING, () => say("revoked", { partitions: [] }));
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, heartbeat }) => {
      const to = Number(batch.lastOffset()) + 1;
      say("records", { partition: batch.partition, from: Number(batch.firstOffset()), to });
      await consumer.commitOffsets([{ topic, partition: batch.partition, offset: String(to) }]);
      await heartbeat();
    },
  });
  process.stdin.resume();
  process.stdin.on("end", async () => {
    await consumer.disconnect();
    say("closed", {});
    process.exit(0);
  });
}

async function produce(bootstrap, topic, first, last) {
  const producer = client(bootstrap).producer();
  await producer.connect();
  const messages = [];
  for (let each = Number(first); each < Number(last); each++) messages.push({ key: String(each), value: String(each) });
  await producer.send({ topic, messages });
  await producer.disconnect();
  say("produced", { count: messages.length });
}

// Kafka's brokers learn of a topic a moment after the answer; kafkajs' own waitForLeaders fails until they know it.
async function untilKnown(administrator, topic) {
  while (true) {
    try {
      return await administrator.fetchTopicMetadata({ topics: [topic] });
    } catch (error) {
      if (!["UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE"].includes(error.type)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50)); // between two looks
  }
}

async function admin(bootstrap, group, topic) {
  const administrator = client(bootstrap).admin();
  await administrator.connect();
  const fresh = `${topic}-fresh`;
  const wanted = { topics: [{ topic: fresh, numPartitions: 3, replicationFactor: 1 }], waitForLeaders: false };
  await administrator.createTopics(wanted);
  const again = await administrator.createTopics(wanted); // false: it exists
  const { topics } = await untilKnown(administrator, fresh);
  const { groups } = await administrator.listGroups();
  const { groups: described } = await administrator.describeGroups([group]);
  const offsets = await administrator.fetchOffsets({ groupId: group, topics: [topic] });
  const committed = offsets[0].partitions.reduce((sum, { offset }) => sum + Math.max(0, Number(offset)), 0);
  await administrator.deleteGroups([group]);
  const missing = await administrator.deleteGroups([group]).catch((error) => error.groups[0].errorCode);
  await administrator.deleteTopics({ topics: [fresh] });
  await administrator.disconnect();
  say("admin", {
    again,
    partitions: topics[0].partitions.length,
    listed: groups.some((each) => each.groupId === group),
    state: described[0].state,
    type: described[0].protocolType,
    committed,
    missing,
  });
}

const [command, ...rest] = process.argv.slice(2);
({ member, produce, admin })[command](...rest).catch((error) => {
  console.error(error);
  process.exit(1);
});
