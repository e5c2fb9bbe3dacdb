"""A live model saved as it goes: every so many rows, and no failed save ends a stream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jointset.errors import InputError, require

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor


class RegularSaves:
    """Saves the predictor of a stream after every `every` good rows; `notice` is told of the first failed save in a row
    of them, and when it works again.
    """

    def __init__(self, path: Path, every: int, notice: Callable[[str], None]) -> None:
        require(every >= 1, f"--save-every must be at least 1 row, got {every}")
        self.path, self.every, self.notice = path, every, notice
        self.rows = self.failed = 0
        self.saved: JointPredictor | None = None  # the last predictor that is on the disk

    def saw(self, predictor: JointPredictor) -> None:
        """One more good row, and the predictor after it."""
        self.rows += 1
        if self.rows % self.every:
            return
        try:
            predictor.save(self.path)
        except InputError as error:
            if not self.failed:
                self.notice(f"not saved after good row {self.rows}: {error}; the stream goes on")
            self.failed += 1
            return
        if self.failed:
            self.notice(f"saved again after good row {self.rows}: {self.failed} saves had failed")
        self.saved, self.failed = predictor, 0
