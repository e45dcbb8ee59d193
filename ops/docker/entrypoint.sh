#!/bin/sh
# Format the log directories on first use, then run the node. Settings come from KAFKA_... variables and
# /etc/millbeck/server.properties; CLUSTER_ID is the cluster's id, the same on every node, and needed with several nodes.
set -eu
config=${MILLBECK_CONFIG:-/etc/millbeck/server.properties}
if [ -n "${CLUSTER_ID:-}" ]; then
    millbeck storage format --ignore-formatted --config "$config" --cluster-id "$CLUSTER_ID"
else
    millbeck storage format --ignore-formatted --config "$config"
fi
exec millbeck server --config "$config" "$@"
