"""One plain sentence for every audit: what its numbers mean for someone who has to trust the set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from jointset.audits.dependence import Season
from jointset.audits.theory_coverage import bernstein_interval
from jointset.errors import some

HARMLESS = 0.023  # points of coverage the paper finds between plug-in and train-fit
MISSED = 0.03  # a coverage this far below the target has missed it
SLOW = -0.25  # power of m_eff above which errors fall too slowly
BEYOND = (
    1.75  # errors over those foreseen that are too large: at most 5 % of stationary series of 1,551 scores have them
)
SETTLED = 0.03  # a width that moves by less than this share has settled
DELTA = 0.1  # the coverage band holds with probability 1 - DELTA, as in `JointPredictor.trust`


def steps_to_forget(rate: float, share: float = 0.01) -> float:
    """Steps after which a difference is down to this share of itself; infinite where nothing is forgotten.

    >>> round(steps_to_forget(0.46), 1)
    5.9
    """
    if not 0.0 < rate < 1.0:
        return 0.0 if rate <= 0.0 else math.inf
    return math.log(share) / math.log(rate)


def band(alpha: float, m_eff: float) -> float:
    """Half-width of the band of long-run coverage with this many independent scores, at 90 % confidence (Bernstein).

    >>> round(band(0.1, 310), 3)
    0.045
    """
    low, high = bernstein_interval(alpha, m_eff, DELTA, clip=False)
    return (high - low) / 2


def effective_size(m: int, m_eff: float, alpha: float) -> str:
    """What a calibration block is worth.

    >>> effective_size(3427, 310.2, 0.1)
    'calibration of 3,427 steps is worth about 310 independent ones; expect coverage 0.90 ± 0.05'
    """
    if not m_eff > 0:
        return f"calibration of {m:,} steps: all hits or none, so that nothing can be said on their dependence"
    told = f"calibration of {m:,} steps is worth about {m_eff:,.0f} independent ones"
    return f"{told}; expect coverage {1 - alpha:.2f} ± {band(alpha, m_eff):.2f}"


def size_sweep(sizes: Sequence[int], errors: Sequence[float], exponent: float, ratio: float) -> str:
    """Whether a longer calibration errs less, as the root of its effective size says.

    >>> size_sweep([500, 1000, 2000], [0.02, 0.014, 0.01], -0.5, 1.04)[-70:]
    '(as m_eff^-0.50, 1.0 times what tau_int says of them): as it should be'
    """
    ends = " and ".join(f"{errors[i]:.3f} at m = {sizes[i]:,}" for i in (0, -1))
    told = f"shares of hits of m scores err by {ends}"
    told += f" (as m_eff^{exponent:.2f}, {ratio:.1f} times what tau_int says of them)"
    if exponent <= SLOW and ratio <= BEYOND:
        return f"{told}: as it should be"
    return f"{told}: scores change over these rows, a longer calibration helps less than its length says"


def seasons(season: Mapping[str, Season]) -> str:
    """What repeats with the clock; empty where nothing does.

    >>> seasons({"daily": Season(24, 0.5, True), "weekly": Season(168, 0.2, False)})
    'repeat every day (correlation 0.50 at lag 24)'
    """
    names = {"daily": "day", "weekly": "week"}
    clear = [(names[name], one) for name, one in season.items() if one.clear]
    told = [f"every {name} (correlation {one.correlation:.2f} at lag {one.lag})" for name, one in clear]
    return f"repeat {' and '.join(told)}" if told else ""


def integrated_time(
    tau: float, automatic: float, lags: int, season: Mapping[str, Season] = MappingProxyType({})
) -> str:
    """How long a hit or a miss lasts, and whether they repeat with the clock."""
    if tau != tau:
        return "all hits or none: there is no dependence to measure"
    repeats = seasons(season)
    if max(tau, automatic) < 1.5:
        if repeats:
            return (
                f"hits and misses {repeats}; from step to step they hardly depend (tau_int {tau:.1f} over {lags} lags)"
            )
        return f"hits and misses come almost independently (tau_int {tau:.1f} over {lags} lags)"
    told = f"hits and misses come in runs: {tau:.1f} steps are worth one (tau_int over {lags} lags)"
    told = f"{told}; {automatic:.0f} once longer memory is counted" if automatic > 1.5 * tau else told
    return f"{told}; they {repeats}" if repeats else told


def clock(words: str, joint: float) -> str:
    """What a share over all hides.

    >>> clock("by the hour 31 % at 05 h to 100 % at 02 h", 0.901)
    '90.1 % of the rows were inside over all, but by the hour 31 % at 05 h to 100 % at 02 h'
    """
    if words:
        return f"{100 * joint:.1f} % of the rows were inside over all, but {words}"
    return f"no hour and no weekday differs from the {100 * joint:.1f} % over all by more than chance explains"


def rate(name: str, value: float, what: str, forgotten: float) -> str:
    """How fast something is forgotten: its rate, and the step from which on it is below 1 % (NaN: it never is).

    >>> rate("rho_dG", 0.46, "a wrong state", 6)
    'a wrong state is below 1 % after 6 steps and shrinks to 46 % a step (rho_dG 0.460)'
    """
    if value != value:
        return f"{what}: no rate can be fitted ({name} is not defined here)"
    if forgotten != forgotten:
        return f"{what} is not forgotten ({name} {value:.3f}): start it as calibrated only"
    steps = f"{forgotten:.0f} step{'s' * bool(forgotten != 1)}"
    return f"{what} is below 1 % after {steps} and shrinks to {100 * value:.0f} % a step ({name} {value:.3f})"


def contraction(name: str, value: float, what: str, forgotten: float, apart: int, pairs: int, steps: int) -> str:
    """As `rate`, from coupled pairs of which some may have stayed apart."""
    if not apart:
        return rate(name, value, what, forgotten)
    told = f"{apart} of {pairs} wrong starts still show after {steps} steps"
    if apart < pairs / 2:
        return f"{told}, the others are forgotten: there is a second resting place; start it as calibrated only"
    return f"{told}: the filter does not forget; start it as calibrated only"


def observability(p5: float, p50: float, verdict: str) -> str:
    """Whether the state shows in the output.

    >>> observability(0.06, 0.4, "weak-quotient")
    'some directions of the state hardly show within ten steps (p5 0.06 of p50 0.40): harmless while they stay unseen'
    """
    if verdict == "O3":
        return f"every direction of the state shows in the laws within ten steps (p5 {p5:.2f}): nothing hides"
    told = f"some directions of the state hardly show within ten steps (p5 {p5:.2f} of p50 {p50:.2f})"
    return f"{told}: harmless while they stay unseen"


def hits(rho: float, fitted: int, season: Mapping[str, Season] = MappingProxyType({})) -> str:
    """How hits decorrelate, and whether they repeat with the clock."""
    if rho != rho:
        return "all hits or none: there is no dependence to measure"
    if seasons(season):
        return f"hits and misses {seasons(season)}: no rate of decay can be read from the lags"
    if fitted == 0:
        return "hits at neighbouring steps are uncorrelated as far as the data can tell"
    steps = math.ceil(steps_to_forget(rho, 0.1))
    return f"a hit says {100 * rho:.0f} % as much a step later: after {steps} steps a tenth is left (rho_ind {rho:.2f})"


def sensitivity(laws: float, scores: float) -> str:
    """Whether the rates depend on how they are measured; the paper says by at most 0.02 and 0.005."""
    told = f"over the grids of settings rho_dG moves by {laws:.3f} and rho_score by {scores:.3f}"
    return f"{told}: {'the rates can be relied on' if max(laws, scores) <= 0.05 else 'read them as orders of size'}"


def theory(sigma: float, trace: float, weighted: float) -> str:
    """What the closed forms say."""
    steps = math.ceil(steps_to_forget(sigma))
    told = f"the slowest mode keeps {100 * sigma:.0f} % a step (sigma_1 {sigma:.3f}), 1 % is left after {steps} steps"
    return f"{told}; over 50 steps a typical start forgets at {weighted:.3f} (rho_M0), an isotropic one at {trace:.3f}"


def lipschitz(p50: float, p95: float, p99: float) -> str:
    """How strongly scores react to the state."""
    tail = "heavy tail: at 1 % of the steps a small error in the state moves the score a lot"
    calm = "no heavy tail"
    told = f"a state off by 0.1 moves the root score by {0.1 * p50:.3f} at a typical step, by {0.1 * p95:.3f} at 5 %"
    return f"{told}; {tail if p99 > 5.0 * p95 else calm} (p99 {p99:.2f})"


def spectrum(condition: float, tail: float, margin: float, near: float) -> str:
    """How round the ellipsoids are, and how far from degenerate."""
    told = f"the longest axis of the set is {math.sqrt(condition):.1f} times the shortest (condition {condition:.3g}"
    told += f", 99 % of the steps below {tail:.3g})" if tail > 1.01 * condition else ")"
    if margin != margin:
        return told
    if near > 0.01:
        return f"{told}; {100 * near:.0f} % of the variances sit near their floor: scores may explode there"
    return f"{told}; the smallest eigenvalue is {margin:,.3g} times the floor"


def trace_ratio(ratio: float) -> str:
    """Whether the law is too wide or too narrow as a whole.

    >>> trace_ratio(0.5)
    'errors are 2.00 times the variance the filter predicts: its law is too narrow, the radius makes up for it'
    """
    if 0.9 <= ratio <= 1.1:
        return f"the filter predicts its own errors well: predicted over realised variance {ratio:.2f}"
    if ratio < 1:
        words = "its law is too narrow, the radius makes up for it"
        return f"errors are {1 / ratio:.2f} times the variance the filter predicts: {words}"
    return (
        f"the filter predicts {ratio:.2f} times the variance it then sees: its law is too wide, the radius shrinks it"
    )


def plug_in(reused: float, fresh: float, width: float, alpha: float) -> str:
    """What fitting the covariance on the calibration block costs: coverage with it, with train-fit, width difference.

    >>> plug_in(0.838, 0.913, -0.16, 0.1)[-48:]
    'it reaches 0.838, train-fit 0.913, of 0.90 asked'
    """
    joint, target = reused - fresh, 1 - alpha
    sign = "lower" if joint < 0 else "higher"
    told = f"a covariance from the calibration block itself gives coverage {abs(100 * joint):.1f} points {sign}"
    told += f" than one from training (width {width:+.2f})"
    if max(reused, fresh) < target - MISSED:
        return f"{told}; neither reaches {target:.2f} ({reused:.3f}, {fresh:.3f}): the test rows differ"
    if joint < -HARMLESS or reused < target - MISSED:
        return f"{told}: it reaches {reused:.3f}, train-fit {fresh:.3f}, of {target:.2f} asked"
    return f"{told}: reusing the block is harmless here"


def pit(n: int, passing: int, distance: float, causes: Sequence[str], shapes: Sequence[str]) -> str:
    """How many sensors have the right law."""
    told = f"{passing} of {n} sensors have the right predictive law (median KS distance {distance:.2f})"
    kinds = [kind for kind in shapes if kind]
    parts = [f"law {kind} at {kinds.count(kind)}" for kind in sorted(set(kinds) - {"other"}, key=kinds.count)[::-1]]
    zf, rg = (sum(cause == name for cause in causes) for name in ("ZF", "RG"))
    parts += [f"readings stuck at one value at {zf}"] if zf else []
    parts += [f"off by the hour of day at {rg}"] if rg else []
    return f"{told}: {', '.join(parts)}" if parts else told


def settled(settings: Sequence[int], widths: Sequence[float], used: int) -> bool | None:
    """Whether the width has settled at the warm-up in use; None where no longer one could be tried.

    >>> settled([1, 50, 200], [3.2, 3.04, 3.03], 50), settled([1, 50], [3.2, 3.0], 50)
    (True, None)
    """
    at = _nearest(settings, used)
    moves = [abs(width / widths[at] - 1.0) for width in widths[at + 1 :]]
    return max(moves) <= SETTLED if moves else None


def warmup(settings: Sequence[int], widths: Sequence[float], used: int) -> str:
    """Whether the warm-up matters: what the first steps cost, and whether the width still moves after it.

    >>> warmup([1, 25, 50, 100, 200], [3.19, 3.05, 3.04, 3.03, 3.03], 50)
    'without a warm-up the sets are 4.9 % wider; from t0 = 50 to 200 the width moves by 0.3 %: 50 is enough'
    """
    at, enough = _nearest(settings, used), settled(settings, widths, used)
    cost = widths[0] / widths[at] - 1.0
    change = f"{100 * abs(cost):.1f} % {'narrower' if cost < 0 else 'wider'}" if abs(cost) >= 5e-4 else "as wide"
    told = f"without a warm-up the sets are {change}"
    if enough is None:
        return f"{told}; too few rows to say whether {used} is enough"
    moves = max(abs(width / widths[at] - 1.0) for width in widths[at:])
    told += f"; from t0 = {settings[at]} to {settings[-1]} the width moves by {100 * moves:.1f} %"
    return f"{told}: {used} is {'enough' if enough else 'too short'}"


def _nearest(settings: Sequence[int], used: int) -> int:
    return min(range(len(settings)), key=lambda i: abs(settings[i] - used))


def left_out(sensors: Sequence[str]) -> str:
    """The end of a sentence that names sensors an audit had to do without."""
    return f"; left out, too few readings: {some(sensors)}" if sensors else ""


def rank(settings: Sequence[float], widths: Sequence[float], volumes: Sequence[float]) -> str:
    """From which rank the volume no longer falls; widths alone cannot tell, since a tilted set has wider bounds.

    >>> rank([0, 1, 4], [2.9, 3.1, 3.7], [0.1, -0.2, -0.49])
    'rank 4 is enough: 0.59 nats a sensor less volume than rank 0 (within 0.02 of the best), at width 3.70 against 2.90'
    """
    enough = next(i for i, volume in enumerate(volumes) if volume <= min(volumes) + 0.02)
    gain = volumes[0] - volumes[enough]
    told = f"{gain:.2f} nats a sensor less volume than rank {settings[0]} (within 0.02 of the best)"
    return f"rank {settings[enough]} is enough: {told}, at width {widths[enough]:.2f} against {widths[0]:.2f}"
