"""The contracts: what a filter, a law, a score, a region and a calibration rule promise.

Data flows one way: a frozen **filter** emits a **law** before the reading is seen, a **score** turns (law, reading)
into one number, a **calibration** turns past scores into a radius, and law + score + radius is a **region**.
Every configuration is a frozen dataclass and every state a NamedTuple of plain numbers and arrays, so two states can
be run side by side, copied and stored. What some filters do beyond their contract is in `jointset.abilities`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointset.support.table_line import Method as Method

if TYPE_CHECKING:
    import pandas as pd

    from jointset.algebra.partial import GapScale
    from jointset.panel import Panel

Array = NDArray[Any]
Index: TypeAlias = "int | np.integer[Any] | slice | Array"  # one step of many, a stretch of them, or some of them
Readings: TypeAlias = "Panel | pd.DataFrame | Mapping[str, Any] | ArrayLike"  # rows by label, or (T, N) by position
Reading: TypeAlias = "Panel | pd.DataFrame | pd.Series[Any] | Mapping[str, Any] | ArrayLike"  # one row, likewise
State = TypeVar("State")
L = TypeVar("L", contravariant=True)  # the kind of law that a score takes
Pieces = Sequence[tuple[int, float]]  # directions of every covariance of a shape, and its share of the miss rate


class Forecast(Protocol):
    """What a filter emits, batched over leading axes: a mean (..., N), and how the reading may lie around it.

    A Gaussian law (`Law`), a law of components, or the sets that a published method makes itself.
    """

    @property
    def mean(self) -> Array: ...
    def rescale(self, shift: Array, scale: Array) -> Forecast:
        """That of `shift + scale * Y`, sensor by sensor."""
        ...

    def __getitem__(self, index: Index) -> Forecast: ...


class Law(Forecast, Protocol):
    """A Gaussian predictive law, batched over leading axes: mean (..., N)."""

    @property
    def variance(self) -> Array: ...
    @property
    def log_det(self) -> Array: ...
    def mahalanobis(self, y: Array) -> Array:
        """Squared Mahalanobis distance (...); NaN entries are missing and left out (marginal law)."""
        ...

    def contributions(self, y: Array) -> Array:
        """Drop of the squared distance (..., N) when one sensor is left out; 0 where missing."""
        ...

    def select(self, sensors: Sequence[int] | Array) -> Law:
        """Marginal law on a subset of sensors (indices or boolean mask)."""
        ...

    def condition(self, sensors: Sequence[int] | Array, values: Array) -> Law:
        """Law of the remaining sensors given readings of these."""
        ...

    def effective_sensors(self, seen: Array) -> tuple[Array, Array]:
        """How many independent sensors those `seen` (..., N) amount to, and all: k^2 / sum of squared correlations."""
        ...

    def rescale(self, shift: Array, scale: Array) -> Law: ...
    def sample(self, rng: np.random.Generator) -> Array:
        """One draw (..., N) from each law of the batch."""
        ...

    def distance(self, other: Any) -> Array:
        """Bures-Wasserstein distance to another law, step by step."""
        ...

    def __getitem__(self, index: Index) -> Law: ...


class Region(Protocol):
    """A joint prediction set, batched over time; `region[t]` is the set of one step."""

    @property
    def center(self) -> Array: ...
    @property
    def half_width(self) -> Array:
        """Half the length of the projection on every sensor (..., N)."""
        ...

    def contains(self, y: Reading) -> Array:
        """Whether the whole reading lies inside; missing (NaN) sensors do not count."""
        ...

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper end of the projection on every sensor, each (..., N)."""
        ...

    def bounds_for(self, y: Reading) -> tuple[Array, Array]:
        """The same of the set that a reading with gaps is held against, for the sensors that were read."""
        ...

    @property
    def width(self) -> Array:
        """sqrt(mean_i h_i^2), h_i the half-width of the projection on sensor i."""
        ...

    @property
    def width_full(self) -> Array:
        """mean_i 2 h_i."""
        ...

    @property
    def log_volume(self) -> Array:
        """(1/N) log of the volume, exact."""
        ...

    def to_pandas(self) -> pd.DataFrame:
        """Lower end, mean and upper end of the projection on every sensor; of the region of one step."""
        ...

    def __getitem__(self, index: Index) -> Self: ...


@runtime_checkable
class Score(Protocol[L]):
    """Law + reading -> one number, and back: radius -> region. `region.contains(y)` is `score <= radius`.

    A reading with gaps is scored on the scale of the complete ones, and a reading equal to the mean has score 0.
    """

    def with_gaps(self, gaps: GapScale) -> Self:
        """The score with another scale for rows with gaps."""
        ...

    def score(self, law: L, y: Array) -> Array: ...
    def measure(self, law: L, y: Array) -> Array:
        """What of a reading the score is made from, before it is put on a scale: `place(measure)` is the score."""
        ...

    def place(self, measured: Array) -> Array:
        """The score on the scale of complete rows."""
        ...

    def region(self, law: L, radius: Array | float) -> Region: ...
    def contributions(self, law: L, y: Array) -> Array:
        """What each sensor adds to the score (..., N); 0 where missing."""
        ...


@runtime_checkable
class Calibration(Protocol[State]):
    """Past scores -> radius. `run` is the whole-sequence path and equals repeated `radius`, `update`."""

    @property
    def alpha(self) -> float: ...
    def start(self, scores: Array) -> State:
        """State after the calibration scores (m,)."""
        ...

    def radius(self, state: State) -> float:
        """Radius for the next step: a reading is inside when its score is <= radius."""
        ...

    def update(self, state: State, score: float) -> State:
        """State after one more score."""
        ...

    def run(self, state: State, scores: Array) -> tuple[Array, State]:
        """Radii (T,), each emitted before its score is seen, and the state after the last score."""
        ...

    def infinite_share(self, state: State) -> float:
        """Share of the steps so far whose radius was infinite or had to be limited."""
        ...


@runtime_checkable
class Filter(Protocol[State]):
    """A frozen state-space filter, a dataclass. The law of Y_t depends on Y_1 .. Y_{t-1} only."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def fit(self, panel: Panel) -> Self:
        """A fitted copy."""
        ...

    def start(self) -> State: ...
    def law(self, state: State) -> Forecast:
        """Law of the next reading."""
        ...

    def step(self, state: State, y: Array) -> State:
        """State after one reading (N,), NaN = missing."""
        ...

    def run(self, values: Array, state: State) -> tuple[Forecast, State]:
        """Laws of all rows of values (T, N) and the state after the last: the fast path of `law`, `step`."""
        ...


class Fittable(Protocol):
    """What `fit` makes a filter of, be it of another class (`DefaultFilter`)."""

    def fit(self, panel: Panel) -> Any:
        """The fitted filter."""
        ...


@runtime_checkable
class MeanModel(Protocol):
    """One-step means of a network from the `lags` readings before each row (`jointset.backbones`)."""

    @property
    def mean(self) -> Array | None:
        """Training mean (N,), None before `fit`."""
        ...

    @property
    def lags(self) -> int: ...
    @property
    def fitted(self) -> bool: ...
    def fit(self, panel: Panel) -> Self: ...
    def start(self) -> Array:
        """History (lags, N) before the first row."""
        ...

    def fill(self, values: Array, history: Array | None = None) -> Array:
        """Complete rows (lags + T, N): the history, then the values with their gaps filled."""
        ...

    def predict(self, values: Array, history: Array | None = None) -> Array:
        """Means (T, N) of the rows of values (T, N), each from the rows before it."""
        ...

    def next_mean(self, history: Array) -> Array:
        """Mean (N,) of the reading after a history (lags, N)."""
        ...


class Pilot(NamedTuple):
    """What a shape is fitted on: complete residuals and means (n, N), their times, the graph, and the row's name."""

    residuals: Array
    means: Array
    times: Array | None
    adjacency: Any  # of the panel: an array, of scipy.sparse, or None
    cadence: int | None
    name: str


@runtime_checkable
class Shape(Protocol[State]):
    """How the residuals of a mean model spread (`jointset.residuals`): the law of row t from the residuals before t."""

    def fit(self, pilot: Pilot) -> Shape[State]: ...
    def start(self) -> State: ...
    def run(self, residuals: Array, centers: Array, times: Array | None, state: State) -> tuple[Forecast, State]:
        """Laws of all rows around their centres (T, N), and the state after the last."""
        ...


@runtime_checkable
class SetRule(Protocol[State]):
    """A published method: from residuals of a mean to sets (`jointset.published.filter`)."""

    @property
    def alpha(self) -> float:
        """Target miss rate."""
        ...

    @property
    def needed(self) -> int:
        """Fewest calibration residuals."""
        ...

    def start(self, residuals: Array) -> State:
        """State after the calibration residuals (m, N)."""
        ...

    def radii(self, state: State, residuals: Array) -> tuple[tuple[Array, ...], State]:
        """Parameters of the next T + 1 sets and the state after T residuals."""
        ...

    def shape(self, state: State, parameters: tuple[Array, ...], mean: Array) -> OwnSet:
        """The regions with these parameters around means (..., N)."""
        ...


class OwnSet(Region, Protocol):
    """The set of a published method (`jointset.published.sets`), which can be scaled about its centre."""

    @property
    def log_volume_filled(self) -> Array:
        """(1/N) log of the volume without a hole."""
        ...

    def growth(self, y: Array) -> Array:
        """The least factor by which the set must be scaled to hold a reading (...), for gaps times `lift` (...)."""
        ...

    def lift(self, y: Array) -> Array: ...

    def contributions(self, y: Array) -> Array:
        """What each sensor adds (..., N); 0 where missing."""
        ...

    def shares(self, y: Array) -> Array:
        """Shares (N,) of the sensors in the growth of one reading."""
        ...

    def scalable(self, least: Array, correlations: Array | None, level: float) -> OwnSet:
        """The set with half-widths (N,) of at least so much, so that it can be scaled."""
        ...

    def rescale(self, shift: Array, scale: Array) -> OwnSet:
        """That of shift + scale * Y."""
        ...

    def as_normal(self) -> Law:
        """A normal law of the same spread."""
        ...
