"""A click belongs to the impression of the same advertisement that the user saw within half an hour before."""

from millbeck.pipeline.topology.serdes import json
from millbeck.pipeline.topology.windows import sliding_join, tumbling

PIPELINE = {
    "name": "click-attribution",
    "bootstrap_servers": "127.0.0.1:9092",
    "trigger": "500 milliseconds",
    "idle_after": "5 seconds",
    "spark": {"spark.sql.shuffle.partitions": "2"},  # each is a store for each operator: fewer are faster
}


def build(topology):
    clicks = topology.stream("clicks", value=json("page STRING"))
    impressions = topology.stream("impressions", value=json("campaign STRING"))
    attributed = clicks.join(
        impressions,
        lambda click, impression: {"page": click.page, "campaign": impression.campaign},
        window=sliding_join(before="30 minutes", after="0 seconds", grace="10 seconds"),
    )
    (
        attributed.group_by(lambda click: click.value.campaign)
        .windowed_by(tumbling("1 minute", grace="10 seconds"))
        .count()
        .to("clicks-by-campaign")
    )
