"""The balancing algorithm of sticky assignors: no member has two partitions more than another that could take one, and
partitions move only if needed. Pure.

1. Each member keeps its partitions, as far as they exist and it still subscribes to the topic. If two claim the same
   one, the later generation wins; claims of the same generation cancel out.
2. Each unassigned partition goes, the one with the fewest candidates first, to the subscribed member with the fewest
   partitions.
3. Then partitions move one at a time from members with more to members with fewer, as long as that balances the two.
   Each move lowers the sum of the squared partition counts, so this terminates.
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
    """The assignment by member, including every member. The order of ``topics_by_member`` breaks ties."""
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
    """Move one partition; the largest member gives first, and its latest partition, so that early ones stay."""
    for giver in sorted(assignment, key=lambda member_id: -len(assignment[member_id])):
        for partition in sorted(assignment[giver], reverse=True):
            taker = min(readers[partition.topic], key=lambda member_id: len(assignment[member_id]))
            if len(assignment[giver]) - len(assignment[taker]) >= 2:
                del assignment[giver][partition]
                assignment[taker][partition] = None
                return True
    return False
