// The registry clients of JavaScript: registers, encodes and decodes, and prints what it saw as one JSON document.
'use strict'

const url = process.argv[2]
const ORDER = { type: 'record', name: 'Order', namespace: 'shop', fields: [{ name: 'id', type: 'string' }, { name: 'n', type: 'int' }] }
const NOTED = { ...ORDER, fields: [...ORDER.fields, { name: 'note', type: 'string', default: '-' }] }
const BROKEN = { ...ORDER, fields: [{ name: 'id', type: 'int' }, { name: 'n', type: 'int' }] }
const DOCUMENT = { $schema: 'http://json-schema.org/draft-07/schema#', title: 'Order', type: 'object', properties: { id: { type: 'string' }, n: { type: 'integer' } }, required: ['id'] }
const PROTO = 'syntax = "proto3";\npackage shop;\nmessage Order {\n  string id = 1;\n  int32 n = 2;\n}\n'
const VALUE = { id: 'abcdef', n: 7 }

async function refused(call) {
  try {
    await call()
    return null
  } catch (error) {
    return { status: error.status ?? error.response?.status ?? null, code: error.errorCode ?? null, message: String(error.message).slice(0, 300) }
  }
}

async function confluent() {
  const { SchemaRegistryClient, AvroSerializer, AvroDeserializer, JsonSerializer, JsonDeserializer, ProtobufSerializer, ProtobufDeserializer, SerdeType, Compatibility } = require('@confluentinc/schemaregistry')
  const { createFileRegistry, create, toBinary, fromBinary } = require('@bufbuild/protobuf')
  const { FileDescriptorSetSchema } = require('@bufbuild/protobuf/wkt')
  const client = new SchemaRegistryClient({ baseURLs: [url], retriesWaitMs: 10 })
  const seen = {}
  seen.first = await client.register('js-avro-value', { schemaType: 'AVRO', schema: JSON.stringify(ORDER) })
  seen.again = await client.register('js-avro-value', { schemaType: 'AVRO', schema: JSON.stringify(ORDER) })
  seen.compatible = await client.testSubjectCompatibility('js-avro-value', { schemaType: 'AVRO', schema: JSON.stringify(NOTED) })
  seen.incompatible = await client.testSubjectCompatibility('js-avro-value', { schemaType: 'AVRO', schema: JSON.stringify(BROKEN) })
  seen.refused = await refused(() => client.register('js-avro-value', { schemaType: 'AVRO', schema: JSON.stringify(BROKEN) }))
  seen.missing = await refused(() => client.getLatestSchemaMetadata('js-missing'))
  seen.level = await client.updateCompatibility('js-avro-value', Compatibility.FULL)
  seen.levelRead = await client.getCompatibility('js-avro-value')
  const avro = new AvroSerializer(client, SerdeType.VALUE, { autoRegisterSchemas: false, useLatestVersion: true })
  const avroRecord = await avro.serialize('js-avro', VALUE)
  seen.avroRecord = avroRecord.toString('hex')
  seen.avro = await new AvroDeserializer(client, SerdeType.VALUE, {}).deserialize('js-avro', avroRecord)
  await client.register('js-json-value', { schemaType: 'JSON', schema: JSON.stringify(DOCUMENT) })
  const json = new JsonSerializer(client, SerdeType.VALUE, { autoRegisterSchemas: false, useLatestVersion: true, validate: true })
  const jsonRecord = await json.serialize('js-json', VALUE)
  seen.jsonRecord = jsonRecord.toString('hex')
  seen.json = await new JsonDeserializer(client, SerdeType.VALUE, {}).deserialize('js-json', jsonRecord)
  seen.jsonRefused = await refused(() => json.serialize('js-json', { n: 1 }))
  const files = fromBinary(FileDescriptorSetSchema, Buffer.from(process.argv[3], 'base64'))
  const registry = createFileRegistry(files)
  const Order = registry.getMessage('shop.Order')
  const proto = new ProtobufSerializer(client, SerdeType.VALUE, { autoRegisterSchemas: true, registry })
  const protoRecord = await proto.serialize('js-proto', create(Order, VALUE))
  seen.protoRecord = protoRecord.toString('hex')
  const read = await new ProtobufDeserializer(client, SerdeType.VALUE, {}).deserialize('js-proto', protoRecord)
  seen.proto = { id: read.id, n: read.n }
  seen.protoSame = Buffer.from(toBinary(Order, create(Order, VALUE))).toString('hex')
  seen.versions = await client.getAllVersions('js-avro-value')
  seen.deleted = await client.deleteSubject('js-json-value')
  return seen
}

async function kafkajs() {
  const { SchemaRegistry, SchemaType, COMPATIBILITY } = require('@kafkajs/confluent-schema-registry')
  const registry = new SchemaRegistry({ host: url, retry: { retries: 0 } })
  const seen = {}
  const avro = await registry.register({ type: SchemaType.AVRO, schema: JSON.stringify(ORDER) }, { subject: 'kjs-avro-value', compatibility: COMPATIBILITY.BACKWARD })
  seen.avroId = avro.id
  seen.latest = await registry.getLatestSchemaId('kjs-avro-value')
  const avroRecord = await registry.encode(avro.id, VALUE)
  seen.avroRecord = avroRecord.toString('hex')
  seen.avro = { ...(await new SchemaRegistry({ host: url }).decode(avroRecord)) }
  const json = await registry.register({ type: SchemaType.JSON, schema: JSON.stringify(DOCUMENT) }, { subject: 'kjs-json-value' })
  seen.json = await registry.decode(await registry.encode(json.id, VALUE))
  const proto = await registry.register({ type: SchemaType.PROTOBUF, schema: PROTO }, { subject: 'kjs-proto-value' })
  const protoRecord = await registry.encode(proto.id, VALUE)
  seen.protoRecord = protoRecord.toString('hex')
  seen.proto = { ...(await new SchemaRegistry({ host: url }).decode(protoRecord)) }
  seen.refused = await refused(() => registry.register({ type: SchemaType.AVRO, schema: JSON.stringify(BROKEN) }, { subject: 'kjs-avro-value' }))
  seen.id = await registry.getRegistryId('kjs-avro-value', 1)
  seen.missing = await refused(() => registry.getLatestSchemaId('kjs-missing'))
  return seen
}

Promise.all([confluent(), kafkajs()]).then(
  ([first, second]) => console.log(JSON.stringify({ confluent: first, kafkajs: second })),
  (error) => { console.error(error); process.exit(1) },
)
