// franz-go behind the verbs of tests/interop/drivers: one JSON command per line in, one JSON answer per line out.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const valueShownMax = 1024

type record struct {
	Partition   int32        `json:"partition"`
	Offset      int64        `json:"offset"`
	TimestampMs int64        `json:"timestamp_ms"`
	Key         *string      `json:"key"`
	Value       *string      `json:"value"`
	ValueSize   *int         `json:"value_size"`
	ValueSha256 string       `json:"value_sha256"`
	Headers     [][2]*string `json:"headers"`
}

type command struct {
	Verb         string            `json:"verb"`
	Topic        string            `json:"topic"`
	Partition    int32             `json:"partition"`
	Partitions   int32             `json:"partitions"`
	Offset       int64             `json:"offset"`
	Count        int               `json:"count"`
	Total        int               `json:"total"`
	Codec        string            `json:"codec"`
	Acks         string            `json:"acks"`
	Idempotent   bool              `json:"idempotent"`
	SizeBytesMax int32             `json:"size_bytes_max"`
	PauseMs      int               `json:"pause_ms"`
	TimeoutMs    int               `json:"timeout_ms"`
	DurationMs   int               `json:"duration_ms"`
	TimestampsMs []int64           `json:"timestamps_ms"`
	Group        string            `json:"group"`
	Configs      map[string]string `json:"configs"`
	Records      []record          `json:"records"`
}

type answer map[string]any

type driver struct {
	bootstrap  string
	admin      *kadm.Client
	member     *kgo.Client
	lock       sync.Mutex
	assignment map[int32]bool
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func (d *driver) client(options ...kgo.Opt) (*kgo.Client, error) {
	base := []kgo.Opt{
		kgo.SeedBrokers(d.bootstrap),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	}
	return kgo.NewClient(append(base, options...)...)
}

func orElse[T int | int32](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
}

func valueToSend(r record) []byte {
	if r.ValueSize != nil {
		value := make([]byte, *r.ValueSize)
		for index := range value {
			value[index] = "0123456789abcdef"[index%16]
		}
		return value
	}
	return raw(r.Value)
}

func raw(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

func text(raw []byte) *string {
	if raw == nil {
		return nil
	}
	shown := string(raw)
	return &shown
}

func received(r *kgo.Record) record {
	size := -1
	shown := record{Partition: r.Partition, Offset: r.Offset, TimestampMs: r.Timestamp.UnixMilli(), Key: text(r.Key), ValueSize: &size}
	if r.Value != nil {
		size = len(r.Value)
		digest := sha256.Sum256(r.Value)
		shown.ValueSha256 = hex.EncodeToString(digest[:])
		if size <= valueShownMax {
			shown.Value = text(r.Value)
		}
	}
	shown.Headers = [][2]*string{}
	for _, header := range r.Headers {
		shown.Headers = append(shown.Headers, [2]*string{&header.Key, text(header.Value)})
	}
	return shown
}

func (d *driver) produce(ctx context.Context, c command) (answer, error) {
	options := []kgo.Opt{
		kgo.ProducerBatchCompression(codecs[c.Codec]),
		kgo.ProducerBatchMaxBytes(orElse(c.SizeBytesMax, 1_000_000)),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
	if c.PauseMs == 0 {
		options = append(options, kgo.ProducerLinger(20*time.Millisecond))
	}
	if c.Acks == "1" {
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()))
	}
	if !c.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := d.client(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	acknowledged := make([][2]int64, len(c.Records))
	failures := make(chan error, len(c.Records))
	for index, r := range c.Records {
		outgoing := &kgo.Record{Topic: c.Topic, Partition: r.Partition, Key: raw(r.Key), Value: valueToSend(r)}
		if r.TimestampMs > 0 {
			outgoing.Timestamp = time.UnixMilli(r.TimestampMs)
		}
		for _, header := range r.Headers {
			outgoing.Headers = append(outgoing.Headers, kgo.RecordHeader{Key: *header[0], Value: raw(header[1])})
		}
		client.Produce(ctx, outgoing, func(done *kgo.Record, err error) {
			if err != nil {
				failures <- err
			} else {
				acknowledged[index] = [2]int64{int64(done.Partition), done.Offset}
			}
		})
		time.Sleep(time.Duration(c.PauseMs) * time.Millisecond)
	}
	if err := client.Flush(ctx); err != nil {
		return nil, err
	}
	select {
	case err := <-failures:
		return nil, err
	default:
		return answer{"acknowledged": acknowledged}, nil
	}
}

func (d *driver) consume(ctx context.Context, c command) (answer, error) {
	client, err := d.client(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic: {c.Partition: kgo.NewOffset().At(c.Offset)}}),
		kgo.FetchMaxPartitionBytes(orElse(c.SizeBytesMax, 1<<20)),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(orElse(c.TimeoutMs, 30_000))*time.Millisecond)
	defer cancel()
	records := []record{}
	for len(records) < c.Count && ctx.Err() == nil {
		fetches := client.PollRecords(ctx, c.Count-len(records))
		if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) { records = append(records, received(r)) })
	}
	return answer{"records": records}, nil
}

func (d *driver) join(c command) (answer, error) {
	note := func(assigned bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, moved map[string][]int32) {
			d.lock.Lock()
			defer d.lock.Unlock()
			for _, partition := range moved[c.Topic] {
				if assigned {
					d.assignment[partition] = true
				} else {
					delete(d.assignment, partition)
				}
			}
		}
	}
	d.assignment = map[int32]bool{}
	client, err := d.client(
		kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(c.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(500*time.Millisecond), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(note(true)), kgo.OnPartitionsRevoked(note(false)), kgo.OnPartitionsLost(note(false)),
	)
	d.member = client
	return answer{}, err
}

func (d *driver) poll(ctx context.Context, c command) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.DurationMs)*time.Millisecond)
	defer cancel()
	records := []record{}
	for ctx.Err() == nil {
		d.member.PollFetches(ctx).EachRecord(func(r *kgo.Record) { records = append(records, received(r)) })
	}
	if len(records) > 0 {
		if err := d.member.CommitUncommittedOffsets(context.Background()); err != nil {
			return nil, err
		}
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	assignment := []int{}
	for partition := range d.assignment {
		assignment = append(assignment, int(partition))
	}
	sort.Ints(assignment)
	return answer{"assignment": assignment, "records": records}, nil
}

func (d *driver) offsetsForTimes(ctx context.Context, c command) (answer, error) {
	offsets := []int64{}
	for _, timestamp := range c.TimestampsMs {
		// kadm answers the end offset with timestamp -1 when no record is that young.
		found, err := d.admin.ListOffsetsAfterMilli(ctx, timestamp, c.Topic)
		if err != nil {
			return nil, err
		}
		one, _ := found.Lookup(c.Topic, c.Partition)
		if one.Err != nil {
			return nil, one.Err
		}
		if one.Timestamp < 0 {
			one.Offset = -1
		}
		offsets = append(offsets, one.Offset)
	}
	return answer{"offsets": offsets}, nil
}

func (d *driver) watermarks(ctx context.Context, c command) (answer, error) {
	starts, err := d.admin.ListStartOffsets(ctx, c.Topic)
	if err != nil {
		return nil, err
	}
	ends, err := d.admin.ListEndOffsets(ctx, c.Topic)
	if err != nil {
		return nil, err
	}
	low, _ := starts.Lookup(c.Topic, c.Partition)
	high, _ := ends.Lookup(c.Topic, c.Partition)
	return answer{"low": low.Offset, "high": high.Offset}, errors.Join(low.Err, high.Err)
}

func (d *driver) committed(ctx context.Context, c command) (answer, error) {
	found, err := d.admin.FetchOffsets(ctx, c.Group)
	if err != nil {
		return nil, err
	}
	one, there := found.Lookup(c.Topic, c.Partition)
	if !there {
		return answer{"offset": -1}, nil
	}
	return answer{"offset": one.At}, one.Err
}

func (d *driver) commit(ctx context.Context, c command) (answer, error) {
	offsets := kadm.Offsets{}
	offsets.AddOffset(c.Topic, c.Partition, c.Offset, -1)
	return answer{}, d.admin.CommitAllOffsets(ctx, c.Group, offsets)
}

func (d *driver) topics(ctx context.Context, c command) (answer, error) {
	switch c.Verb {
	case "create_topic":
		configs := map[string]*string{}
		for name, value := range c.Configs {
			configs[name] = &value
		}
		_, err := d.admin.CreateTopic(ctx, orElse(c.Partitions, 1), 1, configs, c.Topic)
		return answer{}, err
	case "list_topics":
		found, err := d.admin.ListTopicsWithInternal(ctx)
		return answer{"topics": found.Names()}, err
	case "describe_topic":
		found, err := d.admin.ListTopics(ctx, c.Topic)
		if err != nil {
			return nil, err
		}
		detail := found[c.Topic]
		leaders := []int32{}
		for _, partition := range detail.Partitions.Sorted() {
			leaders = append(leaders, partition.Leader)
		}
		return answer{"partitions": len(detail.Partitions), "leaders": leaders}, detail.Err
	case "add_partitions":
		found, err := d.admin.UpdatePartitions(ctx, c.Total, c.Topic)
		if err != nil {
			return nil, err
		}
		return answer{}, found[c.Topic].Err
	default:
		_, err := d.admin.DeleteTopic(ctx, c.Topic)
		return answer{}, err
	}
}

func (d *driver) configs(ctx context.Context, c command) (answer, error) {
	if c.Verb == "alter_config" {
		changes := []kadm.AlterConfig{}
		for name, value := range c.Configs {
			changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
		}
		results, err := d.admin.AlterTopicConfigs(ctx, changes, c.Topic)
		if err != nil {
			return nil, err
		}
		return answer{}, results[0].Err
	}
	found, err := d.admin.DescribeTopicConfigs(ctx, c.Topic)
	if err != nil {
		return nil, err
	}
	configs := map[string]*string{}
	for _, entry := range found[0].Configs {
		configs[entry.Key] = entry.Value
	}
	return answer{"configs": configs}, found[0].Err
}

func (d *driver) groups(ctx context.Context, c command) (answer, error) {
	switch c.Verb {
	case "list_groups":
		found, err := d.admin.ListGroups(ctx)
		return answer{"groups": found.Groups()}, err
	case "describe_group":
		found, err := d.admin.DescribeGroups(ctx, c.Group)
		if err != nil {
			return nil, err
		}
		one := found[c.Group]
		return answer{"state": one.State, "members": len(one.Members)}, one.Err
	default:
		_, err := d.admin.DeleteGroup(ctx, c.Group)
		return answer{}, err
	}
}

func (d *driver) deleteRecords(ctx context.Context, c command) (answer, error) {
	offsets := kadm.Offsets{}
	offsets.AddOffset(c.Topic, c.Partition, c.Offset, -1)
	found, err := d.admin.DeleteRecords(ctx, offsets)
	if err != nil {
		return nil, err
	}
	one, _ := found.Lookup(c.Topic, c.Partition)
	return answer{"low": one.LowWatermark}, one.Err
}

func (d *driver) perform(ctx context.Context, c command) (answer, error) {
	switch c.Verb {
	case "produce":
		return d.produce(ctx, c)
	case "consume":
		return d.consume(ctx, c)
	case "offsets_for_times":
		return d.offsetsForTimes(ctx, c)
	case "watermarks":
		return d.watermarks(ctx, c)
	case "commit":
		return d.commit(ctx, c)
	case "committed":
		return d.committed(ctx, c)
	case "join":
		return d.join(c)
	case "poll":
		return d.poll(ctx, c)
	case "leave":
		d.member.Close()
		d.member = nil
		return answer{}, nil
	case "create_topic", "list_topics", "describe_topic", "add_partitions", "delete_topic":
		return d.topics(ctx, c)
	case "describe_configs", "alter_config":
		return d.configs(ctx, c)
	case "list_groups", "describe_group", "delete_group":
		return d.groups(ctx, c)
	case "delete_records":
		return d.deleteRecords(ctx, c)
	}
	return answer{"unsupported": "no verb " + c.Verb}, nil
}

func failure(err error) answer {
	var code any
	name := fmt.Sprintf("%T", err)
	var told *kerr.Error
	if errors.As(err, &told) {
		code, name = told.Code, told.Message
	}
	return answer{"error": answer{"code": code, "name": name, "message": err.Error()}}
}

func main() {
	d := &driver{bootstrap: os.Args[1]}
	client, err := d.client()
	if err != nil {
		panic(err)
	}
	d.admin = kadm.NewClient(client)
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(make([]byte, 1<<20), 64<<20)
	output := json.NewEncoder(os.Stdout)
	for input.Scan() {
		var c command
		if err := json.Unmarshal(input.Bytes(), &c); err != nil {
			panic(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		result, err := d.perform(ctx, c)
		cancel()
		if err != nil {
			result = failure(err)
		}
		_ = output.Encode(result)
	}
	if d.member != nil {
		d.member.Close()
	}
	d.admin.Close()
}
