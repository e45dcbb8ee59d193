"""The balance that sticky strategies keep: nobody has two partitions more than somebody who could take one, and what
need not move does not. Pure.

1. Everybody keeps what it had, as far as that exists and it still reads the topic. Of two that claim the same, the one
   with the later generation is right; claims of the same generation cancel out.
2. What nobody has goes, the hardest to place first, to the member with the least that reads the topic.
3. Then partitions move one at a time from who has more to who has less, as long as that makes the pair more even.
   Each move lowers the sum of the squares of what members have, so this ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from millbeck.kernel.ids import TopicPartition


def balanced(
    topics_by_member: Mapping[str, Sequence[str]],
    owned_by_member: Mapping[str, Sequence[TopicPartition]],
    generation_by_member: Mapping[str, int],
    partition_counts: Mapping[str, int],
) -> dict[str, list[TopicPartition]]:
    """Partitions by member, every member included. The order of ``topics_by_member`` breaks ties."""
    readers = {
        topic: [member_id for member_id, topics in topics_by_member.items() if topic in topics]
        for topic in sorted(partition_counts)
    }
    kept = _kept(owned_by_member, generation_by_member, readers, partition_counts)
    assignment: dict[str, dict[TopicPartition, None]] = {member_id: {} for member_id in topics_by_member}
    for partition, member_id in kept.items():
        assignment[member_id][partition] = None
    free = [
        TopicPartition(topic, number)
        for topic, count in sorted(partition_counts.items())
        if readers[topic]
        for number in range(count)
        if TopicPartition(topic, number) not in kept
    ]
    for partition in sorted(free, key=lambda partition: (len(readers[partition.topic]), partition)):
        taker = min(readers[partition.topic], key=lambda member_id: len(assignment[member_id]))
        assignment[taker][partition] = None
    _even_out(assignment, readers)
    return {member_id: sorted(partitions) for member_id, partitions in assignment.items()}


def _kept(
    owned_by_member: Mapping[str, Sequence[TopicPartition]],
    generation_by_member: Mapping[str, int],
    readers: Mapping[str, Sequence[str]],
    partition_counts: Mapping[str, int],
) -> dict[TopicPartition, str]:
    claims: dict[TopicPartition, tuple[int, str | None]] = {}
    for member_id, owned in owned_by_member.items():
        generation = generation_by_member[member_id]
        for partition in owned:
            if not 0 <= partition.partition < partition_counts.get(partition.topic, 0):
                continue
            if member_id not in readers[partition.topic]:
                continue
            known = claims.get(partition)
            if known is None or known[0] < generation:
                claims[partition] = (generation, member_id)
            elif known[0] == generation:
                claims[partition] = (generation, None)
    return {partition: owner for partition, (_, owner) in claims.items() if owner is not None}


def _even_out(assignment: dict[str, dict[TopicPartition, None]], readers: Mapping[str, Sequence[str]]) -> None:
    while _move_one(assignment, readers):
        pass


def _move_one(assignment: dict[str, dict[TopicPartition, None]], readers: Mapping[str, Sequence[str]]) -> bool:
    """Whoever has most gives first, so that newcomers are served by all; the latest partition goes, early ones stay."""
    for giver in sorted(assignment, key=lambda member_id: -len(assignment[member_id])):
        for partition in sorted(assignment[giver], reverse=True):
            taker = min(readers[partition.topic], key=lambda member_id: len(assignment[member_id]))
            if len(assignment[giver]) - len(assignment[taker]) >= 2:
                del assignment[giver][partition]
                assignment[taker][partition] = None
                return True
    return False
