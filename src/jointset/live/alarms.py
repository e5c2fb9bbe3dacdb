"""Alarms with a meaning: rows in, changes of alarms out; pure and deterministic, with a state of plain values.

A single miss is no alarm: misses come at the rate alpha by design. These are:

- `sustained`: the network has left its usual course and stays away, by its scores (`jointset.live.evidence`), or
  a neighbourhood has jumped and stays there (`jointset.live.displaced`);
- `sensor`: one sensor is to blame for most of several misses;
- `silent`, `stuck`: sensors without a reading, or with one value, for longer than they ever are; a whole network
  without readings is one alarm;
- `coverage`: the model's own light is red: its sets hold too few readings.

Alarms are raised at one level and end below another (hysteresis), after some rows without their cause; what happens
near an open alarm belongs to it, and scores that leave their course again within a day, at the same place, are the
same incident (`jointset.live.incidents`).

>>> engine = Alarms(Config(), ["a", "b"], cadence=300)
>>> state = engine.start(np.random.default_rng(0).random(2000))
>>> row = Happening(0.0, 0.5, 0.9, True, math.nan, np.array([0.3, 0.2]), (), (), GREEN)
>>> for t in range(300, 3300, 300):
...     state, changes = engine.step(state, row._replace(time=t, score=1.0, inside=False))
...     for one in changes:
...         print(one.time, one.event, one.words)
900 raised readings have left their usual course, most of all 'a', 'b'
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require, require_known, some
from jointset.inputs.graph_edges import edges_of
from jointset.inputs.jumps import FORM, Neighbourhoods, UsualJumps
from jointset.live.displaced import Displaced, Jumps, Local, local_of, local_tree
from jointset.live.evidence import DAY, NONE, add_evidence, evidence_course, limit_of, log_bet, rank_among, reference_of
from jointset.live.happenings import GREEN, RED, Alarm, Change, Happening, alarm_of, change
from jointset.live.incidents import CRITICAL, WARNING, cause, ill_words, settle

ACTIONS = ("acknowledge", "silence", "clear")
MEMORY = 1 / 6  # weight of a row in what is blamed and in how hot it is
COOL, HOT = -0.1, 1.0  # mean log bets of scores as usual again, and far off; by chance it is about -0.3
HIGHEST = 6.0  # above its limit evidence counts no further
EMPTY = 20  # rows in a row without any reading that are an outage of the network
MANY = 0.5  # share of the sensors whose silence is one
RED_ROWS = 3  # rows in a row that the light must be red
BLAMED, FORGIVEN, LEAK = 3.0, 1.0, 1 / 12  # misses by one sensor that raise and that keep, and what a row takes away
MOST = 0.5  # share of a score that makes one sensor the one to blame
NAMED, PART = 5, 0.25  # sensors that a change names, each with so much of the blame of the first
PLACE, TIMES = 1 / 3, 2.0  # a neighbourhood with so much of the blame, and so many times its part, is a change's place
RELEARN = 200  # scores after an acknowledged change that are the usual ones from then on
USUAL_CADENCE = 300.0  # seconds, where the model knows none


class Config(NamedTuple):
    """What an operator may choose."""

    days_between: float = 30.0  # false alarms of a sustained change come no more often
    relearn: bool = True  # whether an acknowledged change becomes the usual after RELEARN rows


class State(NamedTuple):
    """All that the engine remembers."""

    reference: Array  # order statistics of the usual scores
    limit: float  # log evidence that raises
    blame: Array  # (N,) share of recent evidence that each sensor has
    faults: Array  # (N,) recent misses that are one sensor's
    log_r: float = NONE  # evidence of a change
    heat: float = 0.0  # recent mean of log bets
    empty: int = 0  # rows in a row without a reading
    red: int = 0  # rows in a row with a red light
    alarms: int = 0  # so far
    fresh: tuple[float, ...] | None = None  # scores since a change was acknowledged
    local: Local | None = None  # neighbourhoods, where the model knows how far they usually jump
    open: tuple[Alarm, ...] = ()
    over: Alarm | None = None  # the last change of the scores that ended by itself
    rest: int = 0  # rows since it ended and coverage was back


class Alarms:
    """An engine for one network.

    `neighbours` is its adjacency (N, N) or None, `cadence` the seconds between rows, `jumps` what calibration says of
    its neighbourhoods (`predictor.usual.jumps`).
    """

    def __init__(
        self,
        config: Config,
        sensors: Sequence[str],
        neighbours: Array | None = None,
        cadence: float | None = None,
        jumps: UsualJumps | None = None,
    ) -> None:
        require(config.days_between > 0, f"days between false alarms must be positive, got {config.days_between}")
        self.config, self.sensors, self.n = config, tuple(sensors), len(sensors)
        self.place = {name: i for i, name in enumerate(self.sensors)}
        edges = np.zeros((self.n, self.n)) if neighbours is None else np.asarray(neighbours)
        self.near = (edges > 0) | (edges.T > 0) | np.eye(self.n, dtype=bool)  # oneself included
        self.cadence = cadence
        self.rows_a_day = DAY / (cadence or USUAL_CADENCE)
        around = Neighbourhoods(edges_of(neighbours), self.n)
        fits = jumps is not None and jumps.form == FORM and len(jumps.sets) == len(around)
        self.jumps = Jumps(around, jumps, self.rows_a_day, config.days_between) if jumps is not None and fits else None

    def start(self, calibration_scores: Array) -> State:
        """The state before the first row, from calibration scores (m,) in the order of time."""
        scores = np.asarray(calibration_scores, dtype=float)
        scores = scores[~np.isnan(scores)]
        require(len(scores) > 0, "alarms need calibration scores: calibrate the model")
        reference = reference_of(scores)
        limit = limit_of(evidence_course(scores, reference), self.rows_a_day, self.config.days_between)
        local = None if self.jumps is None else self.jumps.start()
        return State(reference, limit, np.zeros(self.n), np.zeros(self.n), local=local)

    def step(self, state: State, happening: Happening) -> tuple[State, list[Change]]:
        """The state after one more row, and what changed."""
        state = self._follow(state, happening)
        causes = [
            *self._jumped(state),
            *self._sustained(state),
            *self._faults(state),
            *self._silent(state, happening),
            *(cause("stuck", (name,), (name,), ill_words("stuck", (name,))) for name in happening.stuck),
            *self._coverage(state, happening),
        ]
        if not causes and not state.open:
            return state, []
        again = state.over if state.rest <= self.rows_a_day else None
        found = settle(state.open, causes, happening.time, state.alarms, state.empty > 0, again)
        after = state._replace(open=found[0], alarms=found[2])
        ended = {one.id for one in found[1] if one.event == "cleared" and one.kind == "sustained"}
        if ended:
            after = after._replace(log_r=NONE, fresh=None)
        for alarm in state.open:
            if alarm.id in ended and not alarm.local:
                learned = self.config.relearn and alarm.acknowledged and state.fresh is None  # it is the usual now
                after = after._replace(over=None if learned else alarm, rest=0)
        return after, found[1]

    def act(
        self, state: State, alarm_id: str, action: str, time: float, until: float | None = None
    ) -> tuple[State, list[Change]]:
        """The state after an operator's action on an open alarm: acknowledge, silence (until a time) or clear it."""
        require_known(action, ACTIONS, f"unknown action {action!r}")
        alarm = next((one for one in state.open if one.id == alarm_id), None)
        if alarm is None:
            raise InputError(f"no open alarm {alarm_id!r}: open are {some([one.id for one in state.open]) or 'none'}")
        if action == "clear":
            return self._cleared(state, alarm), [change(alarm, "cleared", time)]
        if action == "silence":
            require(until is not None and until > time, f"silence needs a time to come, got {until}: give until")
            after, event = alarm._replace(silenced_until=until), "silenced"
        else:
            after, event = alarm._replace(acknowledged=True), "acknowledged"
            if alarm.kind == "sustained" and self.config.relearn and not alarm.acknowledged:
                state = state._replace(fresh=())
        opened = tuple(after if one is alarm else one for one in state.open)
        return state._replace(open=opened), [change(after, event, time)]

    # ------------------------------------------------------------------ what rows say

    def _follow(self, state: State, now: Happening) -> State:
        """Evidence, blame and counters after a row; without a reading only the row itself counts."""
        red = state.red + 1 if now.trust == RED else 0
        if math.isnan(now.score):
            local = self._moved(state.local, np.full(self.n, np.nan))
            return state._replace(empty=state.empty + 1, red=red, local=local)
        bet = log_bet(rank_among(state.reference, now.score) if math.isnan(now.rank) else now.rank)
        shares = _normed(now.shares)
        state = state._replace(
            log_r=max(min(add_evidence(state.log_r, bet), state.limit + HIGHEST), NONE),
            heat=state.heat + MEMORY * (bet - state.heat),
            blame=state.blame + MEMORY * (max(bet, 0.0) * shares - state.blame),
            faults=_blamed_more(state.faults, shares) if now.inside is False else _forgiven(state.faults),
            empty=0,
            red=red,
            rest=0 if state.open and any(one.kind == "coverage" for one in state.open) else state.rest + 1,
            local=self._moved(state.local, now.errors),
        )
        return self._relearn(state, now.score)

    def _moved(self, local: Local | None, errors: Array | None) -> Local | None:
        """Neighbourhoods after a row."""
        if self.jumps is None or errors is None:
            return local
        return self.jumps.step(local or self.jumps.start(), errors)

    def _relearn(self, state: State, score: float) -> State:
        """After an acknowledged change the scores that follow become the usual ones, once there are enough."""
        if state.fresh is None:
            return state
        fresh = (*state.fresh, score)
        if len(fresh) < RELEARN:
            return state._replace(fresh=fresh)
        return state._replace(fresh=None, reference=np.sort(np.array(fresh)), log_r=NONE, heat=COOL)

    def _jumped(self, state: State) -> list[Alarm]:
        """A cause for each neighbourhood that jumped and is still off."""
        if self.jumps is None or state.local is None:
            return []
        return [self._jump(self.jumps, one) for one in state.local.off if not one.back]

    def _jump(self, jumps: Jumps, one: Displaced) -> Alarm:
        who = [self.sensors[i] for i in one.sensors]
        around = who if one.wide else [self.sensors[i] for i in jumps.members(one.which)]
        where = "all over the network" if one.wide else f"around {around[0]!r}"
        words = f"readings {where} {'rose' if one.way > 0 else 'dropped'} together and stayed: {some(who)}"
        found = cause("sustained", who[:NAMED], around, words, CRITICAL if one.wide else WARNING)
        return found._replace(local=not one.wide)

    def _sustained(self, state: State) -> list[Alarm]:
        """The cause that a lasting change gives: evidence raises it, and it goes on while scores are hot."""
        running = any(one.kind == "sustained" and not one.local for one in state.open)
        if state.heat <= COOL if running else state.log_r < state.limit:
            return []
        who, around = self._blamed(state.blame)
        hot = state.heat > HOT or not running
        many = np.count_nonzero(state.blame > PART * state.blame.max(initial=0.0)) > self.n / 3
        where = f" around {around[0]!r}" if 1 < len(around) < self.n else ""
        words = f"readings have left their usual course{where}, most of all {some(who)}"
        return [cause("sustained", who, around, words, CRITICAL if many and hot else WARNING)]

    def _faults(self, state: State) -> list[Alarm]:
        """A cause for each sensor that most of several misses are due to."""
        if not np.count_nonzero(state.faults):  # as nearly always
            return []
        running = {one.who[0] for one in state.open if one.kind == "sensor"}
        blamed = (state.faults >= FORGIVEN).nonzero()[0].tolist()
        names = [self.sensors[i] for i in blamed if state.faults[i] >= BLAMED or self.sensors[i] in running]
        return [
            cause("sensor", (name,), (name,), f"{name!r} reads what the others contradict: look at it")
            for name in names
        ]

    def _silent(self, state: State, now: Happening) -> list[Alarm]:
        """A cause for each silent sensor, and one for the network where most are, or no row has a reading."""
        if state.empty:
            text = f"no reading of any sensor in {EMPTY} rows: is the line down?"
            return [cause("silent", self.sensors, (), text, CRITICAL)] if state.empty > EMPTY else []
        found = [cause("silent", (name,), (name,), ill_words("silent", (name,))) for name in now.silent]
        if len(found) > max(MANY * self.n, 1):
            text = f"no reading of {len(found)} of {self.n} sensors: is the line down?"
            found.append(cause("silent", now.silent, (), text, CRITICAL))
        return found

    def _coverage(self, state: State, now: Happening) -> list[Alarm]:
        """The cause that a red light gives: it raises after some rows, and goes on until the light is green."""
        running = any(one.kind == "coverage" for one in state.open)
        if now.trust == GREEN or (state.red < RED_ROWS and not running):
            return []
        return [
            cause("coverage", (), (), "sets hold fewer readings than promised: calibrate the model again", CRITICAL)
        ]

    # ------------------------------------------------------------------ who, and after a hand

    def _blamed(self, blame: Array) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Sensors most to blame, and the neighbourhood with most blame for its size, its centre first.

        There is none where it has little of the blame: the change is the whole network's.
        """
        centre = int((self.near @ blame / np.sqrt(self.near.sum(axis=1))).argmax())
        order = np.argsort(-blame, kind="stable").tolist()
        inside = self.near[centre]
        least = max(PLACE, TIMES * np.count_nonzero(inside) / self.n) * float(blame.sum())
        here = float(blame[inside].sum()) >= least
        around = (centre, *(i for i in order if inside[i] and i != centre)) if here else ()
        who = [i for i in order if blame[i] > PART * blame[order[0]]][:NAMED] or [centre]
        return tuple(self.sensors[i] for i in who), tuple(self.sensors[i] for i in around)

    def _cleared(self, state: State, alarm: Alarm) -> State:
        """The state after an alarm was cleared by hand: what raised it begins anew."""
        state = state._replace(open=tuple(one for one in state.open if one is not alarm))
        if alarm.kind == "sustained":
            local = None if state.local is None else state.local._replace(off=())
            return state._replace(log_r=NONE, heat=0.0, blame=np.zeros(self.n), fresh=None, local=local, over=None)
        if alarm.kind == "sensor":
            mine = np.arange(self.n) == self.place[alarm.who[0]]
            return state._replace(faults=np.where(mine, 0.0, state.faults))
        return state._replace(red=0)


def state_to_json(state: State) -> str:
    """The state as JSON text; numbers come back to the last bit."""
    fields = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in state._asdict().items()}
    local = None if state.local is None else local_tree(state.local)
    alarms = {"open": [list(one) for one in state.open], "over": None if state.over is None else list(state.over)}
    return json.dumps({**fields, "local": local, **alarms}, allow_nan=False)


def state_from_json(text: str) -> State:
    """The state that `state_to_json` wrote."""
    fields = json.loads(text)
    arrays = {key: np.array(fields[key], dtype=float) for key in ("reference", "blame", "faults")}
    opened = tuple(alarm_of(one) for one in fields["open"])
    over = None if fields.get("over") is None else alarm_of(fields["over"])
    fresh = None if fields["fresh"] is None else tuple(fields["fresh"])
    local = None if fields.get("local") is None else local_of(fields["local"])
    return State(**{**fields, **arrays, "open": opened, "over": over, "fresh": fresh, "local": local})


def _normed(shares: Array) -> Array:
    """Shares (N,) that are positive and sum to 1, or to 0 where no sensor adds to the score."""
    positive = np.minimum(np.maximum(shares, 0.0), 1e150)
    total = float(positive.sum())
    if math.isnan(total):  # a share is NaN
        positive = np.nan_to_num(positive, nan=0.0)
        total = float(positive.sum())
    return positive / total if total > 0 else positive


def _blamed_more(faults: Array, shares: Array) -> Array:
    """Misses that are one sensor's after one more, of these shares."""
    return np.minimum(np.maximum(faults + np.where(shares > MOST, 1.0, -LEAK), 0.0), 2.0 * BLAMED)


def _forgiven(faults: Array) -> Array:
    """Misses that are one sensor's after a row inside."""
    return np.maximum(faults - LEAK, 0.0) if np.count_nonzero(faults) else faults
