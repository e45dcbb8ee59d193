"""Every mutant by its name, with the runs that must detect it.

Most mutants are detected in ordinary random runs. If a mistake has an effect only in rare conditions, the runs use only
faults of the kinds that cause these conditions (``kinds``). If even that takes too many seeds, the schedule is given
explicitly (``script``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from millbeck.simulation.environment.node import stream
from millbeck.simulation.faults import schedule as kinds
from millbeck.simulation.faults.schedule import Fault, draw_schedule
from millbeck.simulation.mutants import quorum, replicas
from millbeck.simulation.mutants.patching import Patch
from millbeck.simulation.runs.cluster_run import ClusterPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A mutant and the runs that detect it; ``flushes`` and ``is_combined`` are drawn when None."""

    name: str
    apply: Callable[[Patch], None]
    kinds: tuple[str, ...] = ()
    flushes: bool | None = None
    script: tuple[Fault, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    think_s: float | None = None

    def plan(self, seed: int) -> ClusterPlan:
        plan = ClusterPlan.drawn(seed)
        if self.flushes is not None and self.flushes != plan.flushes:
            options = dict(plan.topic_options)
            options.pop("flush.messages", None)
            if self.flushes:
                options["flush.messages"] = "1"
            plan = replace(plan, flushes=self.flushes, topic_options=options)
        if self.kinds:
            drawn = draw_schedule(stream(seed, f"mutant {self.name}"), self.kinds, count=12, over_s=15.0)
            plan = replace(plan, schedule=drawn)
        if self.script:
            plan = replace(plan, schedule=self.script)
        if self.think_s is not None:
            plan = replace(plan, think_s=self.think_s)
        return replace(plan, settings=plan.settings | dict(self.settings))


CONTROLLER_TROUBLE = (
    kinds.CRASH_CONTROLLER,
    kinds.PARTITION_CONTROLLER,
    kinds.POWER_LOSS,
    kinds.SPLIT,
    kinds.ONE_WAY,
    kinds.LINK,
)
LEADER_TROUBLE = (
    kinds.CRASH_LEADER,
    kinds.PARTITION_LEADER,
    kinds.PAUSE_LEADER,
    kinds.SPLIT,
    kinds.SLOW_LINK,
    kinds.STALLS,
)
BUSY = tuple(Fault(2.0 + 5.0 * number, kinds.BUSY_CONTROLLER, 4.0, 0.0, 0.0) for number in range(3))
SNAPSHOTS = (("metadata.log.max.record.bytes.between.snapshots", "1000"),)

MUTANTS: tuple[Mutant, ...] = (
    Mutant(name="leader acknowledges alone", apply=replicas.leader_acknowledges_alone),
    Mutant(
        name="acknowledges before min ISR",
        apply=replicas.acknowledges_before_min_isr,
        kinds=(kinds.CRASH_SEVERAL, kinds.CRASH, kinds.SPLIT, kinds.PAUSE),
    ),
    Mutant(
        name="vote not durable",
        apply=quorum.vote_not_durable,
        kinds=(kinds.POWER_LOSS, kinds.POWER_LOSS_OF_ALL, kinds.CRASH_CONTROLLER),
        flushes=True,
    ),
    Mutant(name="two votes in one epoch", apply=quorum.two_votes_in_one_epoch, kinds=CONTROLLER_TROUBLE),
    Mutant(
        name="leads again in the same epoch after restart",
        apply=quorum.leads_again_in_the_same_epoch,
        kinds=CONTROLLER_TROUBLE,
    ),
    Mutant(
        name="commit by count of an old epoch",
        apply=quorum.commit_by_count_of_an_old_epoch,
        kinds=CONTROLLER_TROUBLE,
    ),
    Mutant(name="no diverging-epoch check", apply=replicas.no_diverging_epoch_check, kinds=LEADER_TROUBLE),
    Mutant(
        name="truncation to the high watermark",
        apply=replicas.truncation_to_the_high_watermark,
        kinds=LEADER_TROUBLE,
    ),
    Mutant(name="ISR member counted that is behind", apply=replicas.isr_member_that_is_behind, kinds=LEADER_TROUBLE),
    Mutant(
        name="high watermark over a stale ISR",
        apply=replicas.high_watermark_over_a_stale_isr,
        kinds=(kinds.CRASH, kinds.PAUSE, kinds.SLOW_LINK, kinds.SPLIT, kinds.STALLS),
        think_s=0.02,
    ),
    Mutant(
        name="AlterPartition without the epoch compare",
        apply=quorum.alter_partition_without_epochs,
        kinds=LEADER_TROUBLE,
    ),
    Mutant(name="fenced broker stays in ISR", apply=quorum.fenced_broker_stays_in_isr),
    Mutant(
        name="unclean shutdown ignored by ELR",
        apply=quorum.unclean_shutdown_ignored_by_elr,
        kinds=(kinds.CRASH_SEVERAL, kinds.CRASH, kinds.POWER_LOSS),
    ),
    Mutant(
        name="heartbeat counts only when it is decided on",
        apply=quorum.heartbeat_counts_when_decided,
        script=BUSY,
    ),
    Mutant(name="reply before metadata commit", apply=quorum.reply_before_metadata_commit, kinds=CONTROLLER_TROUBLE),
    Mutant(name="snapshot that misses one record type", apply=quorum.snapshot_without_settings, settings=SNAPSHOTS),
    Mutant(
        name="zero-filled hole accepted by recovery",
        apply=replicas.zero_filled_hole_accepted,
        kinds=(kinds.POWER_LOSS,),
        flushes=False,
    ),
    Mutant(
        name="producer state not rebuilt on a new leader",
        apply=replicas.producer_state_not_rebuilt,
        kinds=(*LEADER_TROUBLE, kinds.RESET),
    ),
)
