"""How quotas and throttles are measured; quotas themselves come in a later release."""

from __future__ import annotations

from millbeck.kernel.options import CLASS, INT, Importance, Section, at_least, option


class QuotaOptions(Section):
    quota_window_num = option(
        "quota.window.num",
        INT,
        11,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How many windows client quotas look back on. Takes effect with quotas, in a later release.",
    )
    quota_window_size_seconds = option(
        "quota.window.size.seconds",
        INT,
        1,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How long such a window is. Takes effect with quotas, in a later release.",
    )
    controller_quota_window_num = option(
        "controller.quota.window.num",
        INT,
        11,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How many windows quotas on topic changes look back on. Takes effect with quotas, in a later release.",
    )
    controller_quota_window_size_seconds = option(
        "controller.quota.window.size.seconds",
        INT,
        1,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How long such a window is. Takes effect with quotas, in a later release.",
    )
    replication_quota_window_num = option(
        "replication.quota.window.num",
        INT,
        11,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How many windows the throttles of leaders and followers look back on.",
    )
    replication_quota_window_size_seconds = option(
        "replication.quota.window.size.seconds",
        INT,
        1,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How long such a window is.",
    )
    alter_log_dirs_replication_quota_window_num = option(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How many windows the throttle between directories looks back on.",
    )
    alter_log_dirs_replication_quota_window_size_seconds = option(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How long such a window is.",
    )
    client_quota_callback_class = option(
        "client.quota.callback.class",
        CLASS,
        None,
        importance=Importance.LOW,
        doc="A class that decides quotas. Not available in this release: it must not be set.",
    )
