"""What one request does to a network, from a standing to the next; nothing is written before all of it went well."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

from jointset.contracts import Array
from jointset.errors import InputError
from jointset.inputs.labels import reading_of
from jointset.inputs.outliers import require_sane
from jointset.inputs.times import iso
from jointset.live.alarms import Alarms
from jointset.live.answers import Answer, answer_of
from jointset.live.formats import Batch, Whole
from jointset.live.happenings import Change, plain
from jointset.live.joining import MOST_HELD, Held, Single, hold, row_of
from jointset.live.relearning import recalibrated, rows_since_change
from jointset.live.standing import Standing, acted, judge, taken
from jointset.live.store import ACTION, LATE, ROW, Cells, Entry, cells_of

if TYPE_CHECKING:
    from jointset.live.network import Network


class Post(NamedTuple):
    """A body of readings."""

    body: bytes
    kind: str
    precision: str
    done: Future[tuple[list[Answer], bool]]


class Act(NamedTuple):
    """Something an operator does: what goes into the log."""

    action: Answer
    done: Future[Answer]


class Work:
    """What one request does, from a standing to the next; nothing is written before `flush`."""

    def __init__(self, network: Network, standing: Standing, engine: Alarms, held: Held, newest: int | None) -> None:
        self.network, self.standing, self.engine, self.held, self.newest = network, standing, engine, held, newest
        self.entries: list[Entry] = []
        # of them: what cannot be written fails its own request, not the commit with all that share it
        self._cells: list[Cells] = []
        self._mine: dict[tuple[int | None, bytes], Entry] = {}  # of these, by time; late ones also by their readings
        self.changes: list[tuple[int, Answer]] = []  # of alarms, each with its number of the log
        self._holding: list[tuple[int, int, int, float]] = []
        self._released: list[int] = []

    def do(self, job: Post | Act) -> Any:
        """The result of a request."""
        if isinstance(job, Act):
            return self._act(job.action)
        batch = self.network.reader.read(job.body, job.kind, job.precision)
        return self._batch(batch), batch.many

    def _batch(self, batch: Batch) -> list[Answer]:
        answers = [self._whole(i, row) for i, row in enumerate(batch.rows, 1)]
        for single in batch.singles:
            answers += self._single(single)
        return answers

    def _whole(self, place: int, row: Whole) -> Answer:
        known = self._known(row.seconds) or (self._late_before(row) if self._is_past(row.seconds) else None)
        if known is not None:
            same = known.values is not None and known.values.tobytes() == row.values.tobytes()
            return {**self._again(known), **({} if same else {"differs": True})}
        for step in sorted(step for step in self.held if step < row.seconds):
            self._close(step)
        try:
            return self._row(row)
        except (ValueError, ArithmeticError) as error:
            raise InputError(f"row {place} ({row.time}): {' '.join(str(error).split())}") from None

    def _row(self, row: Whole) -> Answer:
        """Count one row, or keep it as late."""
        network = self.network
        self.standing, entry, changes = taken(self.standing, self.engine, row, network.settings.limits)
        self._wrote(entry, changes)
        return answer_of(entry, network.sensors)

    def _act(self, action: Answer) -> Answer:
        """What an operator does about an alarm; its time is that of the last row."""
        if action["action"] == "recalibrate":
            return self._recalibrate(action)
        now = self.standing.clock.latest
        action = {**action, "time": int(time.time()) if now is None else now}
        if "minutes" in action:
            action["until"] = action["time"] + 60 * action.pop("minutes")
        self.standing, changes = acted(self.standing, self.engine, action)
        self._wrote(Entry(self.standing.number, ACTION, None, None, None, action), changes)
        return {"row": self.standing.number, "changes": [plain(one) for one in changes]}

    def _recalibrate(self, action: Answer) -> Answer:
        """Calibrate the model again on rows of the log."""
        network = self.network
        first, last = rows_since_change(self.standing, network.store, action.get("rows"))
        rows = list(network.store.entries(first - 1, last + 1))
        self.standing, self.engine, changes = recalibrated(self.standing, self.engine, rows)
        done = {"action": "recalibrate", "first": first, "last": last}
        self._wrote(Entry(self.standing.number, ACTION, None, None, None, done), changes)
        scores = self.standing.predictor.n_calibration
        return {"row": self.standing.number, "scores": scores, "changes": [plain(one) for one in changes]}

    def _wrote(self, entry: Entry, changes: list[Change]) -> None:
        self.entries.append(entry)
        self._cells.append(cells_of(entry))
        readings = b"" if entry.kind != LATE or entry.values is None else entry.values.tobytes()
        self._mine[entry.seconds, readings] = entry
        if entry.kind == ROW and entry.seconds is not None:
            self.newest = entry.seconds if self.newest is None else max(self.newest, entry.seconds)
        self.changes += [(entry.number, plain(one)) for one in changes]

    def _known(self, seconds: int) -> Entry | None:
        """The row of this time that has counted, in this request or before."""
        if self.newest is None or seconds > self.newest:
            return None
        return self._mine.get((seconds, b"")) or self.network.store.at(seconds)

    def _late_before(self, row: Whole) -> Entry | None:
        """The very row, kept as late, in this request or before."""
        readings = row.values.tobytes()
        return self._mine.get((row.seconds, readings)) or self.network.store.at(row.seconds, readings)

    def _single(self, single: Single) -> list[Answer]:
        """Hold one reading; the answers of the rows that it makes whole."""
        rule, step = self.network.rule, self.network.rule.step(single.seconds)
        alone = Whole(self._alone(single), step, iso(step))
        answers = [self._close(one) for one in rule.over(self.held, single.seconds)]
        late = None if step in self.held else self._belated(alone, single.place)
        if late is not None:
            return [*answers, *late]
        self.held = hold(self.held, step, single)
        self._holding.append((step, single.place, *self.held[step][single.place]))
        if len(self.held[step]) == len(self.network.sensors):
            answers.append(self._close(step))
        if len(self.held) > MOST_HELD:
            answers.append(self._close(min(self.held)))
        return answers

    def _alone(self, single: Single) -> Array:
        """The row (N,) of one reading; refused where no row could hold it."""
        predictor = self.standing.predictor
        values = row_of({single.place: (single.seconds, single.value)}, len(self.network.sensors))
        if predictor.standardize:
            require_sane(values, predictor.sensors, predictor.shift, predictor.scale)
        return reading_of(values, predictor.sensors)

    def _belated(self, alone: Whole, place: int) -> list[Answer] | None:
        """The answers to one reading whose row was whole or would not count; None where it waits for the others."""
        known = self._known(alone.seconds)
        if known is None and not self._is_past(alone.seconds):
            return None
        if known is not None and known.values is not None and known.values[place] == alone.values[place]:
            self.network.counts["repeated"] += 1
            return []
        before = self._late_before(alone)
        if before is not None:
            return [self._again(before)]
        if known is not None:
            return [self._late(alone)]
        counts, _ = judge(self.standing.clock, alone.seconds, self.standing.usual.cadence)
        return None if counts else [self._row(alone)]

    def _again(self, entry: Entry) -> Answer:
        """The answer to what is in the log already."""
        self.network.counts["repeated"] += 1
        return {**answer_of(entry, self.network.sensors), "repeated": True}

    def _is_past(self, step: int) -> bool:
        latest = self.standing.clock.latest
        return latest is not None and step <= latest

    def _late(self, row: Whole) -> Answer:
        """Keep what the clock is not asked about."""
        number = self.standing.number + 1
        self.standing = self.standing._replace(number=number)
        self._wrote(Entry(number, LATE, row.seconds, row.time, row.values, {"single": True}), [])
        return answer_of(self.entries[-1], self.network.sensors)

    def _close(self, step: int) -> Answer:
        """Make a row of what is held of a step."""
        readings = self.held[step]
        self.held = {one: rest for one, rest in self.held.items() if one != step}
        self._released.append(step)
        row = Whole(row_of(readings, len(self.network.sensors)), step, iso(step))
        try:
            return self._row(row)
        except (ValueError, ArithmeticError):  # each reading was good by itself: nobody waits for this answer
            return self._late(row)

    def close_all(self) -> None:
        """Make rows of all that is held."""
        for step in sorted(self.held):
            self._close(step)

    def flush(self) -> None:
        """Write it, inside the transaction of the store that is open."""
        store = self.network.store
        store.append(self._cells)
        store.add_changes(self.changes)
        store.hold(reading for reading in self._holding if reading[0] in self.held)
        for step in self._released:
            store.release(step)
