// Confluent's registry client for Go: registers, serializes and deserializes, and prints what it saw as one JSON document.
package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/rest"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/avrov2"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/jsonschema"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/protobuf"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	order  = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"string"},{"name":"n","type":"int"}]}`
	noted  = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"string"},{"name":"n","type":"int"},{"name":"note","type":"string","default":"-"}]}`
	broken = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"int"},{"name":"n","type":"int"}]}`
	schema = `{"$schema":"http://json-schema.org/draft-07/schema#","title":"Order","type":"object","properties":{"id":{"type":"string","minLength":2},"n":{"type":"integer"}},"required":["id"]}`
)

// Order is what the records are.
type Order struct {
	ID string `avro:"id" json:"id"`
	N  int    `avro:"n" json:"n"`
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func code(err error) int {
	var found *rest.Error
	if errors.As(err, &found) {
		return found.Code
	}
	fmt.Fprintln(os.Stderr, "not an error of the registry:", err)
	return 0
}

func main() {
	client := must(schemaregistry.NewClient(schemaregistry.NewConfig(os.Args[1])))
	seen := map[string]any{}
	avro := func(text string) schemaregistry.SchemaInfo { return schemaregistry.SchemaInfo{Schema: text, SchemaType: "AVRO"} }
	tagged := avro(order)
	tagged.Metadata = &schemaregistry.Metadata{Properties: map[string]string{"team": "shop"}}
	first := must(client.RegisterFullResponse("cgo-avro-value", tagged, false))
	seen["same"] = must(client.Register("cgo-avro-value", tagged, true)) == first.ID
	seen["compatible"] = must(client.TestCompatibility("cgo-avro-value", 1, avro(noted)))
	seen["incompatible"] = must(client.TestSubjectCompatibility("cgo-avro-value", avro(broken)))
	_, err := client.Register("cgo-avro-value", avro(broken), false)
	seen["refused"] = code(err)
	_, err = client.GetLatestSchemaMetadata("cgo-missing")
	seen["missing"] = code(err)
	seen["withMetadata"] = must(client.GetLatestWithMetadata("cgo-avro-value", map[string]string{"team": "shop"}, false)).Version
	seen["byGUID"] = must(client.GetByGUID(first.GUID)).Schema == order
	seen["usages"] = must(client.GetSubjectsAndVersionsByID(first.ID))
	level := must(client.UpdateCompatibility("cgo-avro-value", schemaregistry.FullTransitive))
	levelRead := must(client.GetCompatibility("cgo-avro-value"))
	seen["level"], seen["levelRead"] = level.String(), levelRead.String()
	seen["config"] = must(client.UpdateConfig("cgo-avro-value", schemaregistry.ServerConfig{Normalize: true})).Normalize
	seen["contexts"] = must(client.GetAllContexts())

	writing := avrov2.NewSerializerConfig()
	writing.AutoRegisterSchemas, writing.UseLatestVersion = false, true
	avroRecord := must(must(avrov2.NewSerializer(client, serde.ValueSerde, writing)).Serialize("cgo-avro", &Order{"abcdef", 7}))
	var read Order
	if err := must(avrov2.NewDeserializer(client, serde.ValueSerde, avrov2.NewDeserializerConfig())).DeserializeInto("cgo-avro", avroRecord, &read); err != nil {
		must(0, err)
	}
	seen["avro"], seen["avroRecord"] = read, hex.EncodeToString(avroRecord)

	must(client.Register("cgo-json-value", schemaregistry.SchemaInfo{Schema: schema, SchemaType: "JSON"}, false))
	documents := jsonschema.NewSerializerConfig()
	documents.AutoRegisterSchemas, documents.UseLatestVersion, documents.EnableValidation = false, true, true
	encoder := must(jsonschema.NewSerializer(client, serde.ValueSerde, documents))
	jsonRecord := must(encoder.Serialize("cgo-json", &Order{"abcdef", 7}))
	_, err = encoder.Serialize("cgo-json", &Order{"a", 7})
	var document Order
	if err := must(jsonschema.NewDeserializer(client, serde.ValueSerde, jsonschema.NewDeserializerConfig())).DeserializeInto("cgo-json", jsonRecord, &document); err != nil {
		must(0, err)
	}
	seen["json"], seen["jsonRecord"], seen["jsonRefused"] = document, hex.EncodeToString(jsonRecord), err != nil

	messages := must(protobuf.NewSerializer(client, serde.ValueSerde, protobuf.NewSerializerConfig()))
	protoRecord := must(messages.Serialize("cgo-proto", wrapperspb.String("abcdef")))
	reader := must(protobuf.NewDeserializer(client, serde.ValueSerde, protobuf.NewDeserializerConfig()))
	reader.ProtoRegistry.RegisterMessage((&wrapperspb.StringValue{}).ProtoReflect().Type())
	message := must(reader.Deserialize("cgo-proto", protoRecord))
	seen["proto"], seen["protoRecord"] = message.(*wrapperspb.StringValue).Value, hex.EncodeToString(protoRecord)

	seen["versions"] = must(client.GetAllVersions("cgo-avro-value"))
	must(client.Register("cgo-gone-value", avro(order), false))
	seen["deleted"] = must(client.DeleteSubject("cgo-gone-value", false))
	seen["gone"] = must(client.DeleteSubject("cgo-gone-value", true))
	must(0, json.NewEncoder(os.Stdout).Encode(seen))
}
