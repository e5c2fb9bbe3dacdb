"""Where torch is not installed, tests and doctests that need it are passed over; with torch nothing is."""

import pytest

from jointset.support.extras import installed

LACK = ("needs the package torch", "No module named 'torch'")  # what a test that trains ends with where torch is not


def pytest_configure(config):
    """Doctests of modules that import torch are passed over too."""
    config.option.doctest_ignore_import_errors = not installed("torch")


def _passed_over():
    """Where torch is not installed, a test that needs it is skipped; with torch nothing is."""
    try:
        return (yield)
    except Exception as error:
        told = str([error, *(getattr(one, "exc_info", ()) for one in getattr(error, "failures", [error]))])
        if not installed("torch") and any(text in told for text in LACK):
            pytest.skip("torch is not installed: the extra learn")
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup():
    """Fixtures of a test."""
    return (yield from _passed_over())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """A test itself."""
    return (yield from _passed_over())
