"""What some filters, shapes and laws do beyond their contract. One that does not is left alone, and need not know.

`isinstance(filter, Clocked)` asks for the ability, never for the class: a filter of another package has it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

from jointset.contracts import Array, Forecast, Law, Pieces, Region, State

if TYPE_CHECKING:
    from jointset.algebra.window_laws import WindowLaw
    from jointset.filters.recipes import Recipe
    from jointset.laws import AnyLaw
    from jointset.panel import Panel


Taken = TypeVar("Taken", contravariant=True)  # a state that is only read
_HAS: dict[tuple[type, type], bool] = {}  # abilities of classes that were asked for


class Ability(type(Protocol)):  # type: ignore[misc]
    """Asks every class once: Python would look through its attributes at every step of a stream."""

    def __instancecheck__(cls, instance: Any) -> bool:
        key = (cls, type(instance))
        found = _HAS.get(key)
        if found is None:
            found = _HAS[key] = super().__instancecheck__(instance)
        return found


@runtime_checkable
class Named(Protocol):
    """A filter with a name for messages."""

    @property
    def name(self) -> str: ...


def message_start(filter: object) -> str:
    """The name of a filter in front of a message, where it has one."""
    return f"{filter.name}: " if isinstance(filter, Named) and filter.name else ""


@runtime_checkable
class Clocked(Protocol[State], metaclass=Ability):
    """A filter, or rule, that may depend on the time of the reading; its `run` takes the times where it does."""

    @property
    def follows_clock(self) -> bool: ...
    def expect(self, state: State, when: int) -> State:
        """The state when the next reading is known to come at this time (epoch seconds)."""
        ...


def follows_clock(part: object) -> bool:
    """Whether what a filter or rule emits depends on the time of the reading."""
    return bool(getattr(part, "follows_clock", False))


def expecting(part: object, state: State, when: int) -> State:
    """The state of a filter or rule when the next reading is known to come at this time (epoch seconds)."""
    told: State = part.expect(state, when) if isinstance(part, Clocked) and part.follows_clock else state
    return told


@runtime_checkable
class Moved(Protocol, metaclass=Ability):
    """A shape that can go row by row: the law of the next one, and the state after it."""

    def law(self, center: Array, state: Any) -> Forecast:
        """The law of the next row around its center (N,)."""
        ...

    def after(self, residuals: Array, state: Any) -> Any:
        """The state after a row of residuals (1, N), NaN = missing."""
        ...


@runtime_checkable
class Several(Protocol[State], metaclass=Ability):
    """A filter that is a pool by itself and can give the laws of its parts; one pass over the readings serves all."""

    @property
    def parts(self) -> int: ...
    def laws(self, state: State) -> Sequence[AnyLaw]:
        """Laws of the next reading, one of every part."""
        ...

    def run_laws(self, values: Array, state: State, times: Array | None = None) -> tuple[Sequence[AnyLaw], State]:
        """Laws of all rows (T, N), of every part, and the state after the last one."""
        ...


@runtime_checkable
class LooksAhead(Protocol):
    """A filter that has a joint law of the next rows by itself; of others it is learned from past windows."""

    def ahead(self, law: Forecast, steps: int, shift: Array, scale: Array) -> Iterator[tuple[slice, WindowLaw]]:
        """Laws of the next `steps` rows from those of the next one, of consecutive rows that share a covariance.

        Both are in the units of the data, shift + scale * those of the filter.
        """
        ...


@runtime_checkable
class Restarting(Protocol[State]):
    """A filter whose mean can start afresh while its covariance goes on."""

    def restart(self, state: State) -> State:
        """The state with an empty history."""
        ...


@runtime_checkable
class Shaped(Protocol):
    """A filter with a shape fitted on residuals, which may be those of the calibration rows."""

    @property
    def shares(self) -> tuple[float, ...] | None:
        """How the miss rate is shared by several radii; None where a set has one."""
        ...

    def pieces(self, boxes: bool) -> Pieces | None:
        """Directions of every covariance of the shape and its share of the miss rate; None where it moves."""
        ...


def shares_of(filter: object) -> tuple[float, ...] | None:
    """How the miss rate is shared by several radii; None where a set has one."""
    return filter.shares if isinstance(filter, Shaped) else None


@runtime_checkable
class Sized(Protocol):
    """A filter that knows how much its laws hold; of others a row is taken to hold N x N numbers."""

    def law_sizes(self, values: Array) -> Array:
        """Numbers (T,) that the law of each row (T, N) holds, at most."""
        ...


@runtime_checkable
class OwnSetting(Protocol):
    """A filter that emits sets of its own, which begin with the calibration rows: it has no law to start from."""

    def calibrate(self, values: Array, warmup: int) -> tuple[Array, Any]:
        """Scores of calibration rows (T, N), and the state after the last; the first warmup - 1 are left out."""
        ...


@runtime_checkable
class SeveralSeeds(Protocol):
    """A filter or mean that trains for several seeds in one program."""

    def fit_seeds(self, panel: Panel, seeds: Sequence[int], **options: Any) -> Sequence[Any]:
        """Independent fitted copies, one a seed."""
        ...


@runtime_checkable
class ByRecipe(Protocol):
    """A learned filter that is trained as one of the recipes of `jointset.filters.recipes` says."""

    @property
    def recipe(self) -> str: ...
    @property
    def training_recipe(self) -> Recipe: ...


@runtime_checkable
class Linear(Protocol):
    """A linear filter at rest: h -> closed_loop h + input_gain y, the hidden state being the first field of its state.

    Where audits perturb a state they do it there.
    """

    @property
    def sigma_r(self) -> float:
        """Standard deviation of the observation noise: no emitted covariance is below its square."""
        ...

    @property
    def closed_loop(self) -> Array: ...
    @property
    def input_gain(self) -> Array: ...


@runtime_checkable
class Differentiable(Protocol[Taken]):
    """A filter with a hidden state, the first field of its state, that moves by a map with derivatives."""

    @property
    def variance_floor(self) -> float:
        """No eigenvalue of an emitted covariance is below it."""
        ...

    def state_map(self, state: Taken) -> tuple[Callable[[Any, Array], Any], Any]:
        """The hidden state after a reading, (h, y) -> h on flat tensors of torch, and the one of `state`."""
        ...


@runtime_checkable
class SideBySide(Protocol[Taken]):
    """A filter that runs many copies of itself in one batch."""

    def trajectories(self, states: Sequence[Taken], values: Array) -> Iterator[AnyLaw]:
        """Laws (K, N) that K copies emit before each row of values (T, N), from K states: as `run` for each."""
        ...


@runtime_checkable
class LowRank(Protocol):
    """A filter whose covariance is diagonal plus a matrix of chosen rank."""

    @property
    def rank(self) -> int: ...


@runtime_checkable
class Growing(Protocol, metaclass=Ability):
    """A score whose `region` has one size; larger sets about the same centre are asked for here."""

    def grown(self, law: Forecast, radius: Array | float) -> Region:
        """The set of all readings with a score of at most `radius`."""
        ...


@runtime_checkable
class ShapeOfTheHour(Protocol[State], metaclass=Ability):
    """A shape that depends on the time of the reading."""

    def at(self, state: State, time: int) -> State:
        """The state when the next reading is known to come at this time."""
        ...


@runtime_checkable
class Splitting(Protocol):
    """A shape that splits residuals into components with a score each (`Components`), fitted or not."""

    centred: ClassVar[bool]  # whether the mean pilot residual is taken off
    one_radius: ClassVar[bool]  # whether the scores are made one


class Components(Splitting, Protocol):
    """Components of residuals, fitted: they give a set several radii."""

    @property
    def shares(self) -> tuple[float, ...]: ...
    @property
    def covariance(self) -> Array:
        """Of the residuals (N, N), for what a missing sensor should have read."""
        ...

    @property
    def raised(self) -> dict[tuple[bytes, float], Array]:
        """What is known of patterns of gaps (`ComponentLaw`), by which sensors are missing and the coverage."""
        ...

    def scores(self, e: Array) -> Array:
        """Component scores (..., K) of residuals (..., N)."""
        ...

    def slopes(self, e: Array) -> Array:
        """Slope of every component score (K, N) at one residual (N,), up to a positive factor each."""
        ...

    def at_least(self, scores: Array) -> Array:
        """Component scores (..., K), those below the least raised to it."""
        ...

    def quantiles(self, covariance: Array, level: float) -> Array:
        """Quantiles of the scores (K,) that together cover `level` of normal residuals with this covariance."""
        ...

    def half_width(self, radii: Array) -> Array:
        """Half-widths (..., N) at radii (..., K)."""
        ...

    def log_volume(self, radii: Array) -> Array:
        """Log-volume (...) at radii (..., K)."""
        ...


@runtime_checkable
class Spread(Protocol, metaclass=Ability):
    """A forecast with a variance for every sensor."""

    @property
    def variance(self) -> Array: ...


@runtime_checkable
class TellsOneFromOthers(Protocol, metaclass=Ability):
    """A law that says what each reading of a row should be given all others."""

    def given_others(self, y: Array) -> tuple[Array, Array]:
        """Mean and sd of each reading (..., N) given the others; NaN where missing."""
        ...


@runtime_checkable
class NearNormal(Protocol, metaclass=Ability):
    """A forecast that is no normal law, but has one of the same spread."""

    def as_normal(self) -> Law:
        """That law."""
        ...
