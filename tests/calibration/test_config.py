"""Bad options are refused in one line that names the option."""

import numpy as np
import pytest

from jointset.calibration import ACI, ECI, PID, SAOCP, SFOGD, AgACI, Decaying, DtACI, Split, Window, calibration
from jointset.errors import InputError


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Split(alpha=1.0), "alpha must lie strictly between 0 and 1"),
        (lambda: ACI(gamma=-1.0), "gamma must be 0 or more"),
        (lambda: ACI(gamma=float("nan")), "gamma must be 0 or more"),
        (lambda: ACI(clip=(0.2, 0.9)), "clip must be None or an interval"),
        (lambda: ACI(clip=(0.9, 0.05)), "clip must be None or an interval"),
        (lambda: ACI(pool="sliding"), "pool must be one of frozen, rolling"),
        (lambda: ACI(pool="rolling"), "rolling pool needs lookback"),
        (lambda: ACI(lookback=-1), "lookback must be 0 or more"),
        (lambda: ACI(quantile="median"), "quantile must be one of conformal, linear, higher"),
        (lambda: ACI(momentum=1.0), "momentum must lie in"),
        (lambda: AgACI(gammas=()), "at least one step size"),
        (lambda: AgACI(gammas=(0.1, -0.1)), "gammas must be 0 or more"),
        (lambda: AgACI(ceiling=float("inf")), "ceiling must be a positive finite radius"),
        (lambda: AgACI(rates="fast"), "rates must be one of doubling, range, variance"),
        (lambda: AgACI().start(np.empty(0)), "AgACI needs a finite calibration score, or a ceiling"),
        (lambda: DtACI(sigma=2.0), "sigma must lie in"),
        (lambda: DtACI(eta_lookback=0), "eta_lookback must be"),
        (lambda: DtACI(tolerance=0.0), "tolerance must lie"),
        (lambda: PID(lr=-0.1), "lr must be 0 or more"),
        (lambda: PID(C_sat=0.0), "C_sat must be positive"),
        (lambda: PID(burnin=0), "burnin must be 1 score or more"),
        (lambda: PID(scorecaster="arima"), "scorecaster must be None or 'theta'"),
        (lambda: SFOGD(scale=0.0), "scale must be a positive finite radius"),
        (lambda: SAOCP(lifetime=0), "lifetime must be 1 step or more"),
        (lambda: Decaying(epsilon=0.6), "epsilon must lie in"),
        (lambda: ECI(form="fast"), "form must be one of plain, cutoff, integral"),
        (lambda: Window(newest=64), "newest must lie in [1, shortest)"),
        (lambda: Window(gamma=-0.1), "gamma must be 0 or more"),
        (lambda: Window(longest=10), "longest must be at least shortest"),
        (lambda: Window(every=0), "every must be 1 score or more"),
        (lambda: Window(threshold=0.0), "threshold must be positive"),
        (lambda: calibration("magic"), "unknown calibration 'magic': choose one of split, aci, agaci, dtaci, pid"),
        (lambda: calibration("split", gamma=0.1), "calibration 'split' has no option gamma: it takes alpha"),
    ],
)
def test_refused_in_one_line(make, words):
    with pytest.raises(InputError) as error:
        make()
    assert words in str(error.value)
    assert "\n" not in str(error.value)
