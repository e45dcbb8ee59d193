"""Declared once, counted, rendered as the text format says, and bounded."""

from __future__ import annotations

from math import inf, nan

import pytest

from millbeck.kernel.metrics import HISTOGRAM_SLOT_MS, PART_LINES, MetricDeclaration, MetricKind, Registry, RowsInParts


@pytest.fixture
def registry() -> Registry:
    return Registry()


def samples(registry: Registry, name: str) -> list[str]:
    """The lines of one metric, without its head."""
    return [line for line in registry.render().splitlines() if line.startswith(name)]


def test_counter_renders_with_help_type_and_labels(registry: Registry) -> None:
    family = registry.counter("requests_total", "Requests received.", ["request", "version"])
    family.child("Produce", 9).value += 3
    family.child("Fetch", 17).value += 1
    family.child("Produce", "9").value += 1
    assert registry.render().startswith(
        "# HELP requests_total Requests received.\n"
        "# TYPE requests_total counter\n"
        'requests_total{request="Produce",version="9"} 4\n'
        'requests_total{request="Fetch",version="17"} 1\n'
    )


def test_children_start_at_zero(registry: Registry) -> None:
    registry.counter("c_total", "Count.").child()
    registry.gauge("g", "A gauge.").child()
    assert samples(registry, "c_total") + samples(registry, "g ") == ["c_total 0", "g 0"]


def test_metrics_without_labels(registry: Registry) -> None:
    registry.gauge("partitions", "How many.").child().value = 12
    assert samples(registry, "partitions") == ["partitions 12"]


def test_a_gauge_can_be_a_function(registry: Registry) -> None:
    registry.gauge("lag", "Lag.", ["group"]).child("g").read = lambda: 7.5
    assert samples(registry, "lag") == ['lag{group="g"} 7.5']


def test_a_family_can_be_a_function(registry: Registry) -> None:
    sizes = {("a", 0): 10, ("a", 1): 20}
    registry.callback_gauge("log_size", "Bytes.", ["topic", "partition"], lambda: sizes.items())
    registry.callback_counter("seen_total", "Seen.", [], lambda: [((), 5)])
    sizes["b", 0] = 30
    assert samples(registry, "log_size") == [
        'log_size{topic="a",partition="0"} 10',
        'log_size{topic="a",partition="1"} 20',
        'log_size{topic="b",partition="0"} 30',
    ]
    assert "# TYPE seen_total counter\nseen_total 5\n" in registry.render()


def test_histogram_renders_as_a_summary(registry: Registry) -> None:
    child = registry.histogram("time_ms", "Milliseconds.", ["request"]).child("Produce")
    for _ in range(4):
        child.record(2.0)
    lines = samples(registry, "time_ms")
    assert "# TYPE time_ms summary" in registry.render()
    assert [line.rsplit(" ", 1)[0] for line in lines] == [
        *(f'time_ms{{request="Produce",quantile="{share}"}}' for share in ("0.5", "0.75", "0.95", "0.99", "0.999")),
        'time_ms_sum{request="Produce"}',
        'time_ms_count{request="Produce"}',
    ]
    assert lines[-2:] == ['time_ms_sum{request="Produce"} 8.0', 'time_ms_count{request="Produce"} 4']
    assert registry.render().endswith("millbeck_metrics_failures_total 0\n")
    assert 1.95 < float(lines[0].rsplit(" ", 1)[1]) < 2.05


def test_the_histograms_window_slides_one_slot_at_a_time(registry: Registry) -> None:
    child = registry.histogram("time_ms", "Milliseconds.").child()
    registry.advance(0)
    child.record(5.0)
    registry.advance(HISTOGRAM_SLOT_MS - 1)
    registry.advance(HISTOGRAM_SLOT_MS * 100)
    assert "NaN" not in registry.render()
    registry.advance(HISTOGRAM_SLOT_MS * 101 - 1)
    registry.advance(HISTOGRAM_SLOT_MS * 101)
    assert "NaN" not in registry.render()
    registry.advance(HISTOGRAM_SLOT_MS * 102)
    assert samples(registry, "time_ms")[0] == 'time_ms{quantile="0.5"} NaN'
    assert samples(registry, "time_ms_count") == ["time_ms_count 1"]


def test_text_is_escaped(registry: Registry) -> None:
    registry.gauge("g", "back\\slash and\nline", ["l"]).child('quote " back \\ line\n').value = 1
    assert "# HELP g back\\\\slash and\\nline\n" in registry.render()
    assert samples(registry, "g{") == ['g{l="quote \\" back \\\\ line\\n"} 1']


def test_a_label_cannot_forge_a_line(registry: Registry) -> None:
    registry.counter("c_total", "Count.", ["client"]).child('x"} 1\nforged_total 99\n').value += 1
    assert samples(registry, "forged_total") == []
    assert len(samples(registry, "c_total")) == 1


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (True, "1"), (2**70, str(2**70)), (0.1, "0.1"), (inf, "+Inf"), (-inf, "-Inf"), (nan, "NaN")],
)
def test_numbers(registry: Registry, number: float, text: str) -> None:
    registry.gauge("g", "A number.").child().value = number
    assert samples(registry, "g ") == [f"g {text}"]


def test_a_full_family_counts_the_rest_under_other() -> None:
    registry = Registry(children_max=2)
    family = registry.counter("c_total", "Count.", ["topic", "client"])
    for number in range(5):
        family.child("t", number).value += 1
    assert family.child("t", 4) is family.child("t", 5)
    assert samples(registry, "c_total") == [
        'c_total{topic="t",client="0"} 1',
        'c_total{topic="t",client="1"} 1',
        'c_total{topic="other",client="other"} 3',
    ]
    family.child("t", 0).value += 1
    assert 'c_total{topic="t",client="0"} 2' in samples(registry, "c_total")


def test_a_removed_child_makes_room() -> None:
    registry = Registry(children_max=1)
    family = registry.gauge("g", "A gauge.", ["topic"])
    family.child("old").value = 1
    family.remove("old")
    family.remove("never there")
    family.child("new").value = 2
    assert samples(registry, "g{") == ['g{topic="new"} 2']
    assert len(family) == 1


def test_parts_are_short_and_make_the_whole() -> None:
    registry = Registry()
    many = [((f"topic {number}", number), number) for number in range(3500)]
    registry.callback_gauge("before", "Little.", [], lambda: [((), 1)])
    registry.callback_gauge("first", "Many.", ["topic", "partition"], lambda: many)
    registry.callback_gauge(
        "second", "The same labels.", ["topic", "partition"], lambda: [(row, -1.5) for row, _ in many]
    )
    registry.callback_gauge("third", "Other labels.", ["name", "number"], lambda: many[:2])
    parts = list(registry.render_parts())
    assert "".join(parts) == registry.render()
    assert max(part.count("\n") for part in parts) <= 2 * PART_LINES
    lines = "".join(parts).splitlines()
    assert 'first{topic="topic 3499",partition="3499"} 3499' in lines
    assert 'second{topic="topic 3499",partition="3499"} -1.5' in lines
    assert 'third{name="topic 1",number="1"} 1' in lines
    assert lines.index("# TYPE second gauge") == lines.index('first{topic="topic 3499",partition="3499"} 3499') + 2


def test_a_family_in_parts_is_read_as_it_is_sent_and_may_pause(registry: Registry) -> None:
    read: list[int] = []

    def rows() -> RowsInParts:
        for number in range(3 * PART_LINES):
            read.append(number)
            yield (number,), number
        for _ in range(3):
            yield None
        yield ("last",), 1

    registry.callback_gauge("many", "Many.", ["n"], rows, in_parts=True)
    parts = registry.render_parts()
    for number in range(1, 4):
        assert next(parts).count("\n") == PART_LINES
        assert len(read) == number * PART_LINES - 2, "no row is read before its part is due; two lines are the head"
    rest = list(parts)
    assert rest[:3] == ['many{n="1498"} 1498\nmany{n="1499"} 1499\n', "", ""]
    assert 'many{n="last"} 1\n' in "".join(rest[3:])


def test_metrics_can_be_asked_for_by_name(registry: Registry) -> None:
    def unwanted() -> int:
        raise AssertionError("nobody asked for this one")

    registry.gauge("a", "A gauge.").child().value = 1
    registry.gauge("b", "Another.").child().read = unwanted
    registry.histogram("c", "A summary.").child().record(3)
    text = "".join(registry.render_parts({"a", "c_count", "no_such"}))
    assert [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")] == ["a", "c"]
    assert "c_count 1\n" in text
    assert "".join(registry.render_parts({"no_such"})) == ""
    assert registry.render().endswith("millbeck_metrics_failures_total 1\n")


def test_a_full_function_family_adds_up_the_rest() -> None:
    registry = Registry(children_max=2)
    registry.callback_gauge("g", "A gauge.", ["n"], lambda: [([number], number) for number in range(6)])
    registry.callback_gauge("h", "Just full.", ["n"], lambda: [([number], number) for number in range(2)])
    assert samples(registry, "g{") == ['g{n="0"} 0', 'g{n="1"} 1', 'g{n="other"} 14']
    assert samples(registry, "h{") == ['h{n="0"} 0', 'h{n="1"} 1']


def test_what_cannot_be_read_is_left_out_and_counted(registry: Registry) -> None:
    def broken() -> int:
        raise RuntimeError

    gauges = registry.gauge("g", "A gauge.", ["n"])
    gauges.child("bad").read = broken
    gauges.child("good").value = 1
    registry.callback_gauge("f", "A family.", [], lambda: [((), broken())])
    assert samples(registry, "g{") == ['g{n="good"} 1']
    assert samples(registry, "f ") == []
    assert registry.render().endswith("millbeck_metrics_failures_total 6\n")


def test_declarations_list_everything_for_the_docs(registry: Registry) -> None:
    registry.histogram("time_ms", "Milliseconds.", ["request"])
    registry.callback_gauge("g", "A gauge.", [], list)
    assert registry.declarations[1:] == [
        MetricDeclaration(name="time_ms", kind=MetricKind.HISTOGRAM, help="Milliseconds.", labels=("request",)),
        MetricDeclaration(name="g", kind=MetricKind.GAUGE, help="A gauge.", labels=()),
    ]


def test_a_metric_cannot_be_declared_twice(registry: Registry) -> None:
    registry.gauge("g", "A gauge.")
    with pytest.raises(AssertionError, match="g is declared twice"):
        registry.counter("g", "A counter.")


@pytest.mark.parametrize(
    ("name", "text", "labels"),
    [("bad-name", "h", []), ("", "h", []), ("g", "", []), ("g", "h", ["bad-label"]), ("g", "h", ["quantile"])],
)
def test_bad_declarations_are_refused(registry: Registry, name: str, text: str, labels: list[str]) -> None:
    with pytest.raises(AssertionError):
        registry.gauge(name, text, labels)


def test_a_child_needs_a_value_for_every_label(registry: Registry) -> None:
    with pytest.raises(AssertionError, match="labels"):
        registry.counter("c_total", "Count.", ["a", "b"]).child("x")
