// The whole admin client of kafkajs, call by call.
const { Kafka, AclOperationTypes, AclPermissionTypes, AclResourceTypes, ConfigResourceTypes, ResourcePatternTypes, logLevel } = require("kafkajs");

const { BROKER, NAME } = process.env;
const kafka = new Kafka({ brokers: [BROKER], logLevel: logLevel.NOTHING });

async function told(what, call) {
  try {
    console.log(what, JSON.stringify(await call()));
  } catch (problem) {
    console.log(what, "refused", problem.type ?? problem.name, (problem.errors ?? []).map((each) => each.type).join());
  }
}

async function main() {
  const admin = kafka.admin();
  await admin.connect();
  await told("create", () => admin.createTopics({ topics: [{ topic: NAME, numPartitions: 2, configEntries: [{ name: "retention.ms", value: "1000000" }] }] }));
  await told("create badly", () => admin.createTopics({ topics: [{ topic: `${NAME}-x`, replicationFactor: 9 }] }));
  await told("grow", () => admin.createPartitions({ topicPartitions: [{ topic: NAME, count: 4 }] }));
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: NAME, messages: [1, 2, 3, 4, 5].map((n) => ({ partition: 0, value: `hello ${n}` })) });
  await producer.disconnect();
  await told("offsets", async () => (await admin.fetchTopicOffsets(NAME)).map((each) => each.high).sort());
  await told("by time", async () => (await admin.fetchTopicOffsetsByTimestamp(NAME, 1000)).map((each) => each.offset).sort());
  await told("set", () => admin.setOffsets({ groupId: NAME, topic: NAME, partitions: [{ partition: 0, offset: "3" }] }));
  await told("committed", () => admin.fetchOffsets({ groupId: NAME, topics: [NAME] }).then(([row]) => row.partitions.map((each) => each.offset).sort()));
  await told("reset", () => admin.resetOffsets({ groupId: NAME, topic: NAME, earliest: true }));
  await told("groups", async () => (await admin.listGroups()).groups.some((each) => each.groupId === NAME));
  await told("describe", async () => (await admin.describeGroups([NAME])).groups[0].state);
  await told("records", () => admin.deleteTopicRecords({ topic: NAME, partitions: [{ partition: 0, offset: "2" }] }));
  await told("configs", async () => (await admin.describeConfigs({ includeSynonyms: true, resources: [{ type: ConfigResourceTypes.TOPIC, name: NAME, configNames: ["retention.ms"] }] })).resources[0].configEntries[0].configValue);
  await told("alter", async () => (await admin.alterConfigs({ validateOnly: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: NAME, configEntries: [{ name: "retention.ms", value: "2000000" }] }] })).resources.length);
  await told("alter badly", async () => (await admin.alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: NAME, configEntries: [{ name: "retention.ms", value: "soon" }] }] })).resources.length);
  await told("cluster", async () => (await admin.describeCluster()).brokers.length);
  const acl = { resourceType: AclResourceTypes.TOPIC, resourceName: NAME, resourcePatternType: ResourcePatternTypes.LITERAL, principal: "User:x", host: "*", operation: AclOperationTypes.READ, permissionType: AclPermissionTypes.ALLOW };
  await told("acl", () => admin.createAcls({ acl: [acl] }));
  await told("reassignments", () => admin.listPartitionReassignments({ topics: [{ topic: NAME, partitions: [0] }] }));
  await told("reassign", () => admin.alterPartitionReassignments({ topics: [{ topic: NAME, partitionAssignment: [{ partition: 0, replicas: [1] }] }] }));
  await told("group", () => admin.deleteGroups([NAME]));
  await told("topic", () => admin.deleteTopics({ topics: [NAME] }));
  await admin.disconnect();
  console.log("all asked");
}

main().catch((error) => { console.error(error); process.exit(1); });
