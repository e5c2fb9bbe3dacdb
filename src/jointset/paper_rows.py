"""Methods as rows of the paper: with the wraps that it names, and under the names that it prints."""

from __future__ import annotations

from typing import NamedTuple

from jointset.catalogue import TABLE
from jointset.contracts import Method
from jointset.errors import require_known

GIBBS, ZAFFRAN = "Gibbs and Candes 2021", "Zaffran et al. 2022"
RULES = {"aci": ("ACI", GIBBS), "agaci": ("AgACI", ZAFFRAN)}  # wraps with a row of their own in the paper


class Entry(NamedTuple):
    """One row of the comparison: a method, or a method with a wrap, as the paper has it.

    name: ours, `METHOD[+WRAP]` · paper: its name in the paper · mean: where the centre comes from · covariance: what
    gives the set its shape · tuned: how settings are chosen · adaptive: the online rule · needs: `graph` or
    `time stamps` · reference. Tuned, adaptive and needs may be empty.
    """

    name: str
    paper: str
    mean: str
    covariance: str
    tuned: str
    adaptive: str
    needs: str
    reference: str


def _entries(method: Method) -> list[Entry]:
    """The rows of a method: alone, and with each wrap that the paper names."""
    plain = (method.mean, method.covariance, method.tuned)
    needs = ", ".join(method.needs)
    found = [Entry(method.name, method.paper, *plain, method.adaptive, needs, method.reference)]
    for wrap, paper in method.wraps.items():
        rule, reference = RULES.get(wrap, (wrap, method.reference))
        found.append(Entry(f"{method.name}+{wrap}", paper, *plain, rule, needs, reference))
    return found


CATALOGUE = tuple(entry for method in TABLE.values() for entry in _entries(method))


def entry(name: str) -> Entry:
    """The row of a name.

    >>> entry("group+agaci").paper
    'AgACI-GroupCGIF'
    """
    known = {one.name: one for one in CATALOGUE}
    require_known(name, known, f"no row {name!r} in the catalogue")
    return known[name]


def row_in_paper(name: str) -> str:
    """The name of the row in the paper's tables, which have one for both graph filters.

    >>> row_in_paper("gnf-node+aci"), row_in_paper("static")
    ('gnf+aci', 'static')
    """
    base, plus, wrap = name.partition("+")
    return ((TABLE[base].printed_as if base in TABLE else "") or base) + plus + wrap


def methods_of_row(row: str, protocol: str) -> tuple[str, ...]:
    """Our names for a row of the paper's tables; in protocol `table` the one behind its tables comes first.

    >>> methods_of_row("gnf+aci", "table"), methods_of_row("gnf", "text")
    (('gnf-node+aci', 'gnf+aci'), ('gnf', 'gnf-node'))
    """
    base, plus, wrap = row.partition("+")
    shared = tuple(name for name, method in TABLE.items() if method.printed_as == base)
    names = (*shared, base) if protocol == "table" else (base, *shared)
    return tuple(name + plus + wrap for name in names)
