// kafkajs behind the verbs of tests/interop/drivers: one JSON command per line in, one JSON answer per line out.
"use strict";

const crypto = require("crypto");
const readline = require("readline");
const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require("kafkajs");
const SnappyCodec = require("kafkajs-snappy");

CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec;

const VALUE_SHOWN_MAX = 1024;
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy };
const GROUP = { sessionTimeout: 10000, heartbeatInterval: 500, rebalanceTimeout: 10000 };

const kafka = new Kafka({
  clientId: "interop",
  brokers: [process.argv[2]],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 20 },
});

let adminClient = null;
let member = null;
const sleep = (durationMs) => new Promise((resolve) => setTimeout(resolve, durationMs));

async function admin() {
  if (adminClient === null) {
    adminClient = kafka.admin();
    await adminClient.connect();
  }
  return adminClient;
}

function valueToSend(record) {
  if (record.value_size !== undefined) {
    return Buffer.alloc(record.value_size, "0123456789abcdef");
  }
  return record.value === null || record.value === undefined ? null : Buffer.from(record.value);
}

// kafkajs keeps headers in an object: a name that occurs twice becomes a list under that name.
function headersToSend(record) {
  const headers = {};
  for (const [name, value] of record.headers || []) {
    if (name in headers) headers[name] = [].concat(headers[name], value);
    else headers[name] = value;
  }
  return headers;
}

function received(partition, message) {
  const value = message.value;
  const headers = [];
  for (const [name, values] of Object.entries(message.headers || {})) {
    for (const one of [].concat(values)) headers.push([name, one === null || one === undefined ? null : one.toString()]);
  }
  return {
    partition,
    offset: Number(message.offset),
    timestamp_ms: Number(message.timestamp),
    key: message.key === null ? null : message.key.toString(),
    value: value === null || value.length > VALUE_SHOWN_MAX ? null : value.toString(),
    value_size: value === null ? -1 : value.length,
    value_sha256: value === null ? "" : crypto.createHash("sha256").update(value).digest("hex"),
    headers,
  };
}

async function produce({ topic, records, codec = "none", acks = "all", idempotent = false, pause_ms = 0 }) {
  if (!(codec in CODECS)) return { unsupported: `kafkajs has no ${codec}` };
  const producer = kafka.producer({
    idempotent,
    maxInFlightRequests: idempotent ? 1 : 5,
    createPartitioner: () => ({ message }) => message.partition,
  });
  await producer.connect();
  const toMessage = (record) => ({
    partition: record.partition || 0,
    key: record.key === undefined ? null : record.key,
    value: valueToSend(record),
    headers: headersToSend(record),
    timestamp: record.timestamp_ms ? String(record.timestamp_ms) : undefined,
  });
  const send = (some) =>
    producer.send({ topic, acks: acks === "all" ? -1 : Number(acks), compression: CODECS[codec], messages: some.map(toMessage) });
  try {
    const results = pause_ms > 0 ? [] : await send(records);
    if (pause_ms > 0) {
      for (const record of records) {
        results.push(...(await send([record])));
        await sleep(pause_ms);
      }
      return { acknowledged: results.map((one) => [one.partition, Number(one.baseOffset)]) };
    }
    // One batch per partition: the offsets count up from the batch's base.
    const next = new Map(results.map((one) => [one.partition, Number(one.baseOffset)]));
    return {
      acknowledged: records.map((record) => {
        const partition = record.partition || 0;
        next.set(partition, next.get(partition) + 1);
        return [partition, next.get(partition) - 1];
      }),
    };
  } finally {
    await producer.disconnect();
  }
}

async function consume({ topic, count, partition = 0, offset = 0, size_bytes_max = 1 << 20, timeout_ms = 30000 }) {
  const consumer = kafka.consumer({ groupId: `reader-${crypto.randomUUID()}`, maxBytesPerPartition: size_bytes_max, ...GROUP });
  const records = [];
  await consumer.connect();
  try {
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    const done = new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, (event) => reject(event.payload.error));
      consumer
        .run({
          autoCommit: false,
          eachMessage: async ({ partition: from, message }) => {
            if (from === partition && Number(message.offset) >= offset && records.length < count) records.push(received(from, message));
            if (records.length >= count) resolve();
          },
        })
        .catch(reject);
      consumer.seek({ topic, partition, offset: String(offset) });
    });
    if (count > 0) await Promise.race([done, sleep(timeout_ms)]);
  } finally {
    await consumer.disconnect();
  }
  return { records };
}

const verbs = {
  produce,
  consume,

  async offsets_for_times({ topic, partition, timestamps_ms }) {
    const client = await admin();
    const offsets = [];
    for (const timestamp of timestamps_ms) {
      // kafkajs answers the end offset when no record is that young; the suite knows.
      const found = await client.fetchTopicOffsetsByTimestamp(topic, timestamp);
      offsets.push(Number(found.find((one) => one.partition === partition).offset));
    }
    return { offsets };
  },

  async watermarks({ topic, partition }) {
    const found = (await (await admin()).fetchTopicOffsets(topic)).find((one) => one.partition === partition);
    return { low: Number(found.low), high: Number(found.high) };
  },

  async commit({ group, topic, partition, offset }) {
    await (await admin()).setOffsets({ groupId: group, topic, partitions: [{ partition, offset: String(offset) }] });
    return {};
  },

  async committed({ group, topic, partition }) {
    const found = await (await admin()).fetchOffsets({ groupId: group, topics: [topic] });
    const one = found[0].partitions.find((candidate) => candidate.partition === partition);
    return { offset: one === undefined ? -1 : Number(one.offset) };
  },

  async join({ group, topic }) {
    const consumer = kafka.consumer({ groupId: group, ...GROUP });
    member = { consumer, assignment: [], records: [] };
    const current = member;
    consumer.on(consumer.events.GROUP_JOIN, (event) => {
      current.assignment = (event.payload.memberAssignment[topic] || []).slice().sort((a, b) => a - b);
    });
    consumer.on(consumer.events.REBALANCING, () => {
      current.assignment = [];
    });
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({
      autoCommitThreshold: 1,
      eachMessage: async ({ partition, message }) => {
        current.records.push(received(partition, message));
      },
    });
    return {};
  },

  async poll({ duration_ms }) {
    await sleep(duration_ms);
    const records = member.records;
    member.records = [];
    return { assignment: member.assignment, records };
  },

  async leave() {
    await member.consumer.disconnect();
    member = null;
    return {};
  },

  async create_topic({ topic, partitions = 1, configs = {} }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    await (await admin()).createTopics({ topics: [{ topic, numPartitions: partitions, replicationFactor: 1, configEntries }] });
    return {};
  },

  async list_topics() {
    return { topics: (await (await admin()).listTopics()).sort() };
  },

  async describe_topic({ topic }) {
    const { topics } = await (await admin()).fetchTopicMetadata({ topics: [topic] });
    return { partitions: topics[0].partitions.length, leaders: topics[0].partitions.map((one) => one.leader) };
  },

  async describe_configs({ topic }) {
    const found = await (await admin()).describeConfigs({
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
      includeSynonyms: false,
    });
    const configs = {};
    for (const entry of found.resources[0].configEntries) configs[entry.configName] = entry.configValue;
    return { configs };
  },

  async alter_config({ topic, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    await (await admin()).alterConfigs({ validateOnly: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }] });
    return {};
  },

  async add_partitions({ topic, total }) {
    await (await admin()).createPartitions({ topicPartitions: [{ topic, count: total }] });
    return {};
  },

  async delete_topic({ topic }) {
    await (await admin()).deleteTopics({ topics: [topic] });
    return {};
  },

  async list_groups() {
    return { groups: (await (await admin()).listGroups()).groups.map((one) => one.groupId).sort() };
  },

  async describe_group({ group }) {
    const found = (await (await admin()).describeGroups([group])).groups[0];
    return { state: found.state, members: found.members.length };
  },

  async delete_group({ group }) {
    await (await admin()).deleteGroups([group]);
    return {};
  },

  async delete_records({ topic, partition, offset }) {
    // kafkajs looks the leader up in metadata it has only after another call for the topic.
    await verbs.watermarks({ topic, partition });
    await (await admin()).deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] });
    return { low: (await verbs.watermarks({ topic, partition })).low };
  },
};

async function answer(line) {
  const { verb, ...command } = JSON.parse(line);
  if (!(verb in verbs)) return { unsupported: `no verb ${verb}` };
  try {
    return await verbs[verb](command);
  } catch (error) {
    let cause = error;
    while (cause.cause !== undefined && cause.code === undefined) cause = cause.cause;
    if (error.errors && error.errors.length > 0) cause = error.errors[0];
    const code = typeof cause.code === "number" ? cause.code : null;
    return { error: { code, name: cause.type || cause.name, message: error.message } };
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    process.stdout.write(JSON.stringify(await answer(line)) + "\n");
  }
  if (member !== null) await member.consumer.disconnect();
  if (adminClient !== null) await adminClient.disconnect();
  process.exit(0);
})();
