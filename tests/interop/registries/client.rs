//! The registry client of Rust: registers, encodes and decodes, and prints what it saw as one JSON document.

use apache_avro::types::Value as AvroValue;
use schema_registry_converter::blocking::avro::{AvroDecoder, AvroEncoder};
use schema_registry_converter::blocking::json::{JsonDecoder, JsonEncoder};
use schema_registry_converter::blocking::proto_raw::{ProtoRawDecoder, ProtoRawEncoder};
use schema_registry_converter::blocking::schema_registry::{
    get_all_subjects, get_all_versions, get_schema_by_id, get_schema_by_subject, is_compatible_schema, post_schema, SrSettings,
};
use schema_registry_converter::schema_registry_common::{SchemaType, SubjectNameStrategy, SuppliedReference, SuppliedSchema};
use serde_json::json;

const ORDER: &str = r#"{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"string"},{"name":"n","type":"int"}]}"#;
const NOTED: &str = r#"{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"string"},{"name":"n","type":"int"},{"name":"note","type":"string","default":"-"}]}"#;
const BROKEN: &str = r#"{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"int"},{"name":"n","type":"int"}]}"#;
const DOCUMENT: &str = r#"{"$schema":"http://json-schema.org/draft-07/schema#","$id":"http://shop/order.json","title":"Order","type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer"}},"required":["id"]}"#;
const INNER: &str = "syntax = \"proto3\";\npackage shop;\nmessage Customer { string name = 1; }\n";
const PROTO: &str = "syntax = \"proto3\";\npackage shop;\nimport \"customer.proto\";\nmessage Order { string id = 1; Customer customer = 2; }\n";

fn supplied(schema_type: SchemaType, schema: &str, references: Vec<SuppliedReference>) -> SuppliedSchema {
    SuppliedSchema { name: None, schema_type, schema: schema.to_string(), references, properties: None, tags: None }
}

fn avro(schema: &str) -> SuppliedSchema {
    supplied(SchemaType::Avro, schema, vec![])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn topic(name: &str) -> SubjectNameStrategy {
    SubjectNameStrategy::TopicNameStrategy(name.to_string(), false)
}

fn main() {
    let url = std::env::args().nth(1).expect("the registry's address");
    let settings = SrSettings::new_builder(url).no_proxy().build().unwrap();
    let first = post_schema(&settings, "rs-avro-value".into(), avro(ORDER)).unwrap();
    let again = post_schema(&settings, "rs-avro-value".into(), avro(ORDER)).unwrap();
    let compatible = is_compatible_schema(&settings, "rs-avro-value".into(), avro(NOTED)).unwrap();
    let incompatible = is_compatible_schema(&settings, "rs-avro-value".into(), avro(BROKEN)).unwrap();
    let refused = post_schema(&settings, "rs-avro-value".into(), avro(BROKEN)).unwrap_err();
    let missing = get_schema_by_subject(&settings, &topic("rs-missing")).unwrap_err();
    let fields = vec![("id", AvroValue::String("abcdef".into())), ("n", AvroValue::Int(7))];
    let avro_record = AvroEncoder::new(settings.clone()).encode(fields, &topic("rs-avro")).unwrap();
    let avro_read = AvroDecoder::new(settings.clone()).decode(Some(&avro_record)).unwrap().value;

    post_schema(&settings, "rs-json-value".into(), supplied(SchemaType::Json, DOCUMENT, vec![])).unwrap();
    let document = json!({"id": "abcdef", "n": 7});
    let mut encoder = JsonEncoder::new(settings.clone());
    let json_record = encoder.encode(&document, &topic("rs-json")).unwrap();
    let json_refused = encoder.encode(&json!({"n": 7}), &topic("rs-json")).is_err();
    let json_read = JsonDecoder::new(settings.clone()).decode(Some(&json_record)).unwrap().unwrap().value;

    let customer = SuppliedReference {
        name: "customer.proto".into(), subject: "rs-customer".into(), schema: INNER.into(), references: vec![], properties: None, tags: None,
    };
    let proto = post_schema(&settings, "rs-proto-value".into(), supplied(SchemaType::Protobuf, PROTO, vec![customer])).unwrap();
    let message = [0x0a, 0x01, 0x61];
    let proto_record = ProtoRawEncoder::new(settings.clone()).encode(&message, "shop.Order", &topic("rs-proto")).unwrap();
    let proto_read = ProtoRawDecoder::new(settings.clone()).decode(Some(&proto_record)).unwrap().unwrap();

    let found = get_schema_by_id(first.id, &settings).unwrap();
    let subjects: Vec<String> = get_all_subjects(&settings).unwrap().into_iter().filter(|each| each.starts_with("rs-")).collect();
    let seen = json!({
        "same": first.id == again.id, "compatible": compatible, "incompatible": incompatible,
        "refused": refused.to_string(), "missing": missing.to_string(),
        "avroRecord": hex(&avro_record), "avro": format!("{avro_read:?}"), "text": found.schema == ORDER,
        "json": json_read, "jsonRecord": hex(&json_record), "jsonRefused": json_refused,
        "references": proto.references.len(), "protoRecord": hex(&proto_record),
        "protoName": *proto_read.full_name, "proto": hex(&proto_read.bytes),
        "versions": get_all_versions(&settings, "rs-avro-value".into()).unwrap(), "subjects": subjects,
    });
    println!("{seen}");
}
