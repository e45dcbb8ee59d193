"""Which worker has which connectors, from rebalance to rebalance."""

from __future__ import annotations

from millbeck.pipeline.connect.worker.assignment import Assignor, Part, WorkerMetadata


def _info(name: str, *owned: str) -> WorkerMetadata:
    return WorkerMetadata(worker_id=name, url=f"http://{name}/", owned=owned)


def test_new_connectors_go_to_the_worker_with_the_fewest() -> None:
    assignor = Assignor(300.0)
    found = assignor.assign({"m1": _info("a", "one"), "m2": _info("b")}, ["one", "two", "three"], {}, 0.0)
    assert found == {"m1": ("one",), "m2": ("three", "two")} or found == {"m1": ("one", "two"), "m2": ("three",)}
    assert assignor.next_s() is None


def test_a_worker_that_joins_stops_nothing_of_the_others() -> None:
    assignor = Assignor(300.0)
    found = assignor.assign({"m1": _info("a", "one", "two"), "m2": _info("b")}, ["one", "two"], {"one": "a"}, 0.0)
    assert found == {"m1": ("one", "two"), "m2": ()}


def test_connectors_of_a_lost_worker_wait_and_then_move() -> None:
    assignor = Assignor(300.0)
    members = {"m2": _info("b", "two")}
    last = {"one": "a", "two": "b"}
    assert assignor.assign(members, ["one", "two"], last, 1000.0) == {"m2": ("two",)}
    assert assignor.next_s() == 1300.0
    # Further rebalances do not begin the wait anew.
    assert assignor.assign(members, ["one", "two"], last, 1200.0) == {"m2": ("two",)}
    assert assignor.assign(members, ["one", "two"], last, 1300.0) == {"m2": ("one", "two")}
    assert assignor.next_s() is None


def test_a_worker_that_comes_back_in_time_gets_its_connectors() -> None:
    assignor = Assignor(300.0)
    last = {"one": "a"}
    assignor.assign({"m2": _info("b")}, ["one"], last, 0.0)
    assert assignor.assign({"m2": _info("b"), "m3": _info("a")}, ["one"], last, 10.0) == {"m2": (), "m3": ("one",)}
    assert assignor.next_s() is None


def test_without_a_delay_or_after_a_good_bye_they_move_at_once() -> None:
    assert Assignor(0.0).assign({"m2": _info("b")}, ["one"], {"one": "a"}, 0.0) == {"m2": ("one",)}
    assert Assignor(300.0).assign({"m2": _info("b")}, ["one"], {}, 0.0) == {"m2": ("one",)}


def test_deleted_connectors_and_double_claims() -> None:
    assignor = Assignor(300.0)
    found = assignor.assign({"m1": _info("a", "one", "gone"), "m2": _info("b", "one")}, ["one"], {}, 0.0)
    assert found == {"m1": ("one",), "m2": ()}


def test_what_is_sent_is_read_back() -> None:
    info = _info("a", "one", "two")
    assert WorkerMetadata.decode(info.encode()) == info
    part = Part(leader_url="http://a/", is_leader=True, connectors=("one",), owners={"two": "http://b/"})
    assert Part.decode(part.encode()) == part
