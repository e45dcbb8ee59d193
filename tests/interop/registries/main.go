// The registry client of franz-go: registers, encodes and decodes, and prints what it saw as one JSON document.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/sr"
)

const (
	order  = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"string"},{"name":"n","type":"int"}]}`
	noted  = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"string"},{"name":"n","type":"int"},{"name":"note","type":"string","default":"-"}]}`
	broken = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"int"},{"name":"n","type":"int"}]}`
	proto  = "syntax = \"proto3\";\npackage shop;\nimport \"customer.proto\";\nmessage Order { string id = 1; Customer customer = 2; }\n"
	inner  = "syntax = \"proto3\";\npackage shop;\nmessage Customer { string name = 1; }\n"
	closed = `{"type":"object","properties":{"id":{"type":"string"}},"additionalProperties":false}`
	wider  = `{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer"}},"additionalProperties":false}`
)

type document struct {
	ID string `json:"id"`
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func code(err error) int {
	var found *sr.ResponseError
	if errors.As(err, &found) {
		return found.ErrorCode
	}
	return 0
}

func main() {
	ctx := context.Background()
	client := must(sr.NewClient(sr.URLs(os.Args[1])))
	seen := map[string]any{}
	seen["types"] = must(client.SupportedTypes(ctx))
	first := must(client.CreateSchema(ctx, "go-avro-value", sr.Schema{Schema: order}))
	again := must(client.CreateSchema(ctx, "go-avro-value", sr.Schema{Schema: order}))
	seen["same"] = first.ID == again.ID && first.Version == again.Version
	seen["lookup"] = must(client.LookupSchema(ctx, "go-avro-value", sr.Schema{Schema: order})).Version
	compatible := must(client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), "go-avro-value", -1, sr.Schema{Schema: noted}))
	seen["compatible"] = compatible.Is
	refused := must(client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), "go-avro-value", -1, sr.Schema{Schema: broken}))
	seen["incompatible"] = refused.Messages
	_, err := client.CreateSchema(ctx, "go-avro-value", sr.Schema{Schema: broken})
	seen["refused"] = code(err)
	_, err = client.SchemaByVersion(ctx, "go-missing", -1)
	seen["missing"] = code(err)
	customer := must(client.CreateSchema(ctx, "customer.proto", sr.Schema{Schema: inner, Type: sr.TypeProtobuf}))
	referring := sr.Schema{
		Schema:     proto,
		Type:       sr.TypeProtobuf,
		References: []sr.SchemaReference{{Name: "customer.proto", Subject: "customer.proto", Version: customer.Version}},
	}
	created := must(client.CreateSchema(ctx, "go-proto-value", referring))
	seen["text"] = must(client.SchemaTextByID(ctx, created.ID)) == proto
	references := must(client.SchemaReferences(ctx, "customer.proto", customer.Version))
	seen["references"] = len(references)
	must(client.CreateSchema(ctx, "go-json-value", sr.Schema{Schema: closed, Type: sr.TypeJSON}))
	seen["wider"] = must(client.CreateSchema(ctx, "go-json-value", sr.Schema{Schema: wider, Type: sr.TypeJSON})).Version
	set := client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFullTransitive}, "go-avro-value")
	seen["level"] = set[0].Level.String()
	seen["globalLevel"] = client.Compatibility(ctx, sr.GlobalSubject)[0].Level.String()
	seen["mode"] = client.Mode(ctx, sr.GlobalSubject)[0].Mode.String()
	seen["usages"] = len(must(client.SchemaUsagesByID(ctx, first.ID)))
	seen["subjects"] = must(client.Subjects(sr.WithParams(ctx, sr.SubjectPrefix("go-"))))
	seen["versions"] = must(client.SubjectVersions(ctx, "go-json-value"))
	seen["deleted"] = must(client.DeleteSubject(ctx, "go-json-value", sr.SoftDelete))
	seen["gone"] = must(client.DeleteSubject(ctx, "go-json-value", sr.HardDelete))
	var serde sr.Serde
	serde.Register(created.ID, document{}, sr.EncodeFn(json.Marshal), sr.DecodeFn(json.Unmarshal), sr.Index(0))
	seen["record"] = hex.EncodeToString(must(serde.Encode(document{"a"})))
	must(0, json.NewEncoder(os.Stdout).Encode(seen))
}
