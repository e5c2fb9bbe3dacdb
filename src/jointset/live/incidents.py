"""One incident is one alarm: causes that rows give are held against the alarms that are open.

A cause is an alarm without a name yet. It keeps the open alarm alive that it belongs to, or raises a new one; an alarm
is over after CALM rows in a row without a cause of its own. A change of the scores may be one that was over, at the
same place: then it is opened again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jointset.errors import some
from jointset.live.happenings import Alarm, Change, change

CALM = 12  # rows in a row without its cause after which an alarm is over
GATHER = 6  # rows within which sensors that fall ill are one incident
ILL = ("silent", "stuck")
WARNING, CRITICAL = "warning", "critical"


def cause(kind: str, who: Sequence[str], around: Sequence[str], words: str, severity: str = WARNING) -> Alarm:
    """What a row gives cause for."""
    return Alarm("", kind, math.nan, math.nan, tuple(who), tuple(around), severity, words)


def settle(
    opened: tuple[Alarm, ...],
    causes: list[Alarm],
    time: float,
    count: int,
    blind: bool = False,
    again: Alarm | None = None,
) -> tuple[tuple[Alarm, ...], list[Change], int]:
    """Open alarms after a row, what changed, and the number of alarms so far.

    A `blind` row has no reading: it says nothing about alarms but those it gives cause for. A change of the scores
    at the place of the alarm `again` opens that once more.
    """
    kept: list[Alarm] = []
    changes: list[Change] = []
    claimed: set[int] = set()
    known = {(alarm.kind, (name,)) for alarm in opened if alarm.severity != CRITICAL for name in alarm.who}
    for alarm in opened:
        mine = [i for i, one in enumerate(causes) if belongs(one, alarm, (one.kind, one.who[:1]) in known)]
        claimed.update(mine)
        if blind and not mine:
            kept.append(alarm)
            continue
        alarm, event = _carried(alarm, [causes[i] for i in mine], time)
        changes += [change(alarm, event, time)] if event else []
        kept += [alarm] if event != "cleared" else []
    for new in _gathered([one for i, one in enumerate(causes) if i not in claimed], causes):
        if again is not None and new.kind == "sustained" and not new.local and _same_place(new, again):
            kept.append(new._replace(id=again.id, since=again.since, silenced_until=again.silenced_until, changed=time))
            changes.append(change(kept[-1], "reopened", time))
            continue
        count += 1
        kept.append(new._replace(id=f"{new.kind}-{count}", since=time, changed=time))
        changes.append(change(kept[-1], "raised", time))
    return tuple(kept), changes, count


def _same_place(one: Alarm, other: Alarm) -> bool:
    """Whether two changes share a sensor; one without a neighbourhood is the whole network's."""
    places = {*one.neighbourhood}, {*other.neighbourhood}
    return not all(places) or not places[0].isdisjoint(places[1])


def belongs(one: Alarm, alarm: Alarm, known: bool = False) -> bool:
    """Whether a cause is part of an open alarm; `known`: its sensor is named by one already."""
    if alarm.kind in ILL:
        if one.kind != alarm.kind or one.severity != alarm.severity:
            return False
        return alarm.severity == CRITICAL or one.who[0] in alarm.who or (alarm.rows < GATHER and not known)
    if alarm.kind == "sustained":  # the change itself, or a neighbourhood or sensor within it
        near = not {*one.neighbourhood}.isdisjoint(alarm.neighbourhood or alarm.who)
        soon = one.local and not alarm.local and alarm.rows < GATHER
        return one.kind in ("sustained", "sensor") and (near or soon or not (one.local or one.kind == "sensor"))
    if alarm.kind == "sensor":  # or a change that is this one sensor's
        return one.who[:1] == alarm.who[:1] and one.kind in ("sensor", "sustained")
    return one.kind == alarm.kind


def _gathered(new: list[Alarm], causes: list[Alarm]) -> list[Alarm]:
    """Alarms to raise: sensors ill at once are one, an outage speaks for all its sensors, a change for those near."""
    outage = any(one.kind in ILL and one.severity == CRITICAL for one in causes)
    change_of = next((one.neighbourhood or one.who for one in causes if one.kind == "sustained"), ())
    raised = []
    for kind in ILL:
        ill = [one for one in new if one.kind == kind]
        raised += [one for one in ill if one.severity == CRITICAL]
        single = [one for one in ill if one.severity != CRITICAL]
        raised += [_together(single)] if single and not (outage and kind == "silent") else []
    for one in sorted((one for one in new if one.kind == "sustained"), key=lambda one: not one.local):
        raised += [] if any(belongs(one, other) for other in raised if other.kind == "sustained") else [one]
    return raised + [
        one
        for one in new
        if one.kind not in (*ILL, "sustained") and not (one.kind == "sensor" and one.who[0] in change_of)
    ]


def _together(ill: list[Alarm]) -> Alarm:
    """One cause of several sensors that are ill in the same way."""
    who = tuple(dict.fromkeys(name for one in ill for name in one.who))
    return ill[0] if len(who) == 1 else ill[0]._replace(who=who, neighbourhood=who, words=ill_words(ill[0].kind, who))


def ill_words(kind: str, who: Sequence[str]) -> str:
    """What is to be told of ill sensors.

    >>> ill_words("stuck", ["a"]), ill_words("silent", ["a", "b"])
    ("stuck at one value: 'a'", "no reading of 'a', 'b'")
    """
    return f"no reading of {some(who)}" if kind == "silent" else f"stuck at one value: {some(who)}"


def _carried(alarm: Alarm, causes: list[Alarm], time: float) -> tuple[Alarm, str]:
    """An open alarm after a row with these causes of it, and the event to tell, if any."""
    alarm = alarm._replace(rows=alarm.rows + 1, calm=0 if causes else alarm.calm + 1)
    if not causes:
        return alarm, "cleared" if alarm.calm >= CALM else ""
    if alarm.kind in ILL and alarm.severity != CRITICAL:
        known = {*alarm.who}
        joined = _together([alarm, *(one for one in causes if one.who[0] not in known)])
        return (joined._replace(changed=time), "updated") if len(joined.who) > len(known) else (alarm, "")
    now = next((one for one in causes if one.kind == alarm.kind), alarm)
    if now.severity == CRITICAL and alarm.severity != CRITICAL:
        alarm = alarm._replace(who=now.who, neighbourhood=now.neighbourhood, words=now.words)
        return alarm._replace(severity=CRITICAL, changed=time), "updated"
    return alarm, ""
