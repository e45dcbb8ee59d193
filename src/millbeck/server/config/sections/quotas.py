"""Measurement windows of quotas and throttles."""

from __future__ import annotations

from millbeck.kernel.options import CLASS, INT, Importance, Section, at_least, option


class QuotaOptions(Section):
    quota_window_num = option(
        "quota.window.num",
        INT,
        11,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The number of samples of client quotas.",
    )
    quota_window_size_seconds = option(
        "quota.window.size.seconds",
        INT,
        1,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The length in seconds of each sample of client quotas.",
    )
    controller_quota_window_num = option(
        "controller.quota.window.num",
        INT,
        11,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The number of samples of controller mutation quotas: a client may use the rate of that many samples "
        "in one burst.",
    )
    controller_quota_window_size_seconds = option(
        "controller.quota.window.size.seconds",
        INT,
        1,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The length in seconds of each sample of controller mutation quotas.",
    )
    replication_quota_window_num = option(
        "replication.quota.window.num",
        INT,
        11,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The number of samples of replication throttles.",
    )
    replication_quota_window_size_seconds = option(
        "replication.quota.window.size.seconds",
        INT,
        1,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The length in seconds of each sample of replication throttles.",
    )
    alter_log_dirs_replication_quota_window_num = option(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The number of samples of the throttle on moves between log directories.",
    )
    alter_log_dirs_replication_quota_window_size_seconds = option(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The length in seconds of each sample of the throttle on moves between log directories.",
    )
    client_quota_callback_class = option(
        "client.quota.callback.class",
        CLASS,
        None,
        importance=Importance.LOW,
        doc="An entry point of an installed package that decides which limits apply to clients (docs/policies.md).",
    )
