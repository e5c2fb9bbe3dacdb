"""One incident is one alarm, also when both detectors of a change raise in the same row."""

from jointset.live.incidents import cause, settle

WHOLE = cause("sustained", ("a", "b"), ("a", "b", "c"), "readings have left their usual course")
LOCAL = cause("sustained", ("b",), ("b", "c"), "readings around 'b' dropped")._replace(local=True)
ELSEWHERE = cause("sustained", ("z",), ("y", "z"), "readings around 'z' dropped")._replace(local=True)


def test_a_change_of_a_neighbourhood_and_of_the_network_in_one_row_are_one_alarm():
    for causes in ([WHOLE, LOCAL], [LOCAL, WHOLE]):
        opened, changes, count = settle((), causes, 0.0, 0)
        assert count == len(opened) == len(changes) == 1 and opened[0].words == LOCAL.words


def test_two_neighbourhoods_apart_are_two():
    assert settle((), [LOCAL, ELSEWHERE], 0.0, 0)[2] == 2


def test_a_change_that_returns_where_it_was_opens_the_same_alarm_again():
    """One without a neighbourhood is the whole network's, and so at every place."""
    before = WHOLE._replace(id="sustained-1", since=5.0)
    for again, new, events in (
        (before, WHOLE, "reopened"),
        (before._replace(neighbourhood=()), WHOLE, "reopened"),
        (before, WHOLE._replace(neighbourhood=()), "reopened"),
        (before, WHOLE._replace(neighbourhood=("x", "y")), "raised"),
    ):
        (opened,), (change,), _ = settle((), [new], 9.0, 1, again=again)
        assert change.event == events and (opened.id == "sustained-1") == (opened.since == 5.0) == (
            events == "reopened"
        )
