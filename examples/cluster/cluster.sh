#!/bin/sh
# A cluster of three combined nodes from nothing, in a directory of its own, and the commands that look after it.
set -eu

directory=${1:-cluster}
first=${2:-19092}
mkdir -p "$directory"
id=$(millbeck storage random-uuid)
voters=1@127.0.0.1:$((first + 10)),2@127.0.0.1:$((first + 11)),3@127.0.0.1:$((first + 12))
nodes=
for node in 1 2 3; do
    port=$((first + node - 1))
    cat > "$directory/$node.properties" <<END
process.roles=broker,controller
node.id=$node
controller.quorum.voters=$voters
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((first + 9 + node))
log.dirs=$directory/data-$node
num.partitions=3
default.replication.factor=3
min.insync.replicas=2
END
    millbeck storage format --cluster-id "$id" --config "$directory/$node.properties"
    millbeck server --config "$directory/$node.properties" > "$directory/$node.log" 2>&1 &
    nodes="$nodes $!"
done
trap 'kill $nodes; wait' EXIT

export MILLBECK_BOOTSTRAP=127.0.0.1:$first
tries=0
until millbeck topic create orders 2> "$directory/waiting"; do
    tries=$((tries + 1))
    [ $tries -lt 40 ] || { cat "$directory/waiting"; exit 1; }
    sleep 0.5
done
millbeck quorum describe
millbeck topic describe orders
millbeck feature describe
millbeck config alter --group image-processors \
    --add-config share.delivery.count.limit=5,share.record.lock.duration.ms=30000
millbeck config describe --group image-processors
millbeck share list
