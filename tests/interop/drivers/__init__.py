"""Drivers: each wraps one Kafka client behind the same verbs, so that one suite asks the same of all of them.

A driver is a process started as `<driver> <bootstrap>`. It reads one JSON object per line, `{"verb": ..., arguments}`,
and answers each with one JSON line: the verb's result, `{"error": {"code", "name", "message"}}` when the client failed,
or `{"unsupported": reason}`. End of input ends it. The verbs:

    produce            topic, codec, acks, idempotent, size_bytes_max, pause_ms, records
                       -> acknowledged [[partition, offset]]
    consume            topic, partition, offset, count, size_bytes_max, timeout_ms -> records
    offsets_for_times  topic, partition, timestamps_ms -> offsets (-1: none)
    watermarks         topic, partition -> low, high
    commit, committed  group, topic, partition(, offset) -> offset (-1: none)
    join, poll, leave  group, topic; duration_ms -> assignment, records (a member of a classic group)
    create_topic, list_topics, describe_topic, describe_configs, alter_config, add_partitions, delete_topic,
    list_groups, describe_group, delete_group, delete_records

A record to send has partition, key, value (text or null) or value_size (a repeating pattern), headers [[name, text or
null]] and timestamp_ms. A record received has those and offset, value_size and value_sha256; a long value is left out.
"""
