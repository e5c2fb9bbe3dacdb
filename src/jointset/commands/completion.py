"""What a shell offers after TAB: methods, cells, data sets, words; in a list, after every comma."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Completion = Callable[[str], list[str]]


def one_of(*words: str) -> Completion:
    """Those of some words that begin so.

    >>> one_of("ellipsoid", "box")("b")
    ['box']
    """
    return lambda incomplete: _beginning(incomplete, words)


recipes = one_of("fast", "paper", "sharp")
devices = one_of("cpu", "cuda")
protocols = one_of("text", "table", "fit")


def listed(known: Completion) -> Completion:
    """The same for the last item of a comma-separated list; what the list has already is not offered again.

    >>> listed(one_of("fit", "text", "table"))("table,t")
    ['table,text']
    """

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{word}" for word in known(last) if word not in before.split(",")]

    return complete


def methods_known(incomplete: str) -> list[str]:
    """Names of methods that begin so, and after a plus sign the rules they can have.

    >>> methods_known("kalman-"), methods_known("quick+dt")
    (['kalman-tuned'], ['quick+dtaci', 'quick+dtaci-tail'])
    """
    from jointset.calibration import FORMS, RULES
    from jointset.catalogue import METHODS

    method, plus, _ = incomplete.partition("+")
    return _beginning(incomplete, (f"{method}+{rule}" for rule in (*RULES, *FORMS)) if plus else METHODS)


def bench_methods(incomplete: str) -> list[str]:
    """Methods of a benchmark: names and groups."""
    from jointset.bench.names import GRID, METHOD_GROUPS

    return list(dict.fromkeys([*methods_known(incomplete), *_beginning(incomplete, (*METHOD_GROUPS, GRID))]))


def bench_cells(incomplete: str) -> list[str]:
    """Cells of a benchmark: those of the groups, the groups, and data sets with all their sensors."""
    from jointset.bench.names import CELL_GROUPS

    cells = (name for names in CELL_GROUPS.values() for name in names)
    return list(dict.fromkeys([*_beginning(incomplete, (*cells, *CELL_GROUPS)), *data_known(incomplete)]))


def rules_known(incomplete: str) -> list[str]:
    """Calibration rules that begin so.

    >>> rules_known("sp")
    ['split', 'split-tail']
    """
    from jointset.calibration import FORMS, RULES

    return _beginning(incomplete, (*RULES, *FORMS))


def audits_known(incomplete: str) -> list[str]:
    """Audits that begin so.

    >>> audits_known("rho_D")
    ['rho_DL']
    """
    from jointset.audits.questions import AUDITS

    return _beginning(incomplete, AUDITS)


def tables_known(incomplete: str) -> list[str]:
    """Tables of results that begin so.

    >>> tables_known("win")
    ['windows']
    """
    from jointset.bench.tables import NAMES

    return _beginning(incomplete, NAMES)


def data_known(incomplete: str) -> list[str]:
    """Data sets that begin so.

    >>> data_known("e")
    ['elec', 'elec-uci', 'ett']
    """
    from jointset.datasets.registry import names

    return _beginning(incomplete, names())


def _beginning(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]
