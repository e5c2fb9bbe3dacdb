"""The command line, put together from `jointset.commands`."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import jointset
from jointset.commands.audit import audit_command
from jointset.commands.bench import bench_command
from jointset.commands.data import data_app
from jointset.commands.doctor import doctor_command
from jointset.commands.fit import fit_command
from jointset.commands.impute import impute_command
from jointset.commands.methods import methods_command
from jointset.commands.predict import predict_command
from jointset.commands.replay import replay_command
from jointset.commands.report import report_command
from jointset.commands.sensors import sensors_command
from jointset.commands.serve import serve_command
from jointset.commands.simulate import demo_command, generate_command
from jointset.commands.store import store_app
from jointset.commands.stream import stream_command
from jointset.commands.tables import tables_command
from jointset.errors import InputError
from jointset.terminal import flowing, tell_warnings

UsageError: Any = typer.BadParameter.__base__  # of the click that typer uses, which may be its own


class Commands(TyperGroup):
    """Commands that answer bad input with one line on stderr and exit code 2."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what stands before the command."""
        with usage_in_a_line(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; with --debug the traceback is shown instead."""
        try:
            with usage_in_a_line(ctx):
                return super().invoke(ctx)
        except (InputError, OSError) as error:
            closed = isinstance(error, OSError) and error.errno == errno.EPIPE  # the reader of our output has gone
            if closed or ctx.params.get("debug"):
                raise
            typer.echo(f"error: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(2) from None


@contextmanager
def usage_in_a_line(ctx: Any) -> Iterator[None]:
    """Answer a wrong option or argument with one line on stderr and exit code 2."""
    try:
        yield
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        path = ctx.command_path if error.ctx is None else error.ctx.command_path
        said = " ".join(error.format_message().rstrip(".").split())
        typer.echo(f"error: {said} ({path} --help lists what there is)", err=True)
        raise typer.Exit(2) from None


COMMANDS: dict[str, dict[str, Callable[..., None]]] = {  # as `jointset --help` groups them
    "First steps": {"demo": demo_command, "generate": generate_command, "doctor": doctor_command},
    "Your readings": {
        "fit": fit_command,
        "predict": predict_command,
        "stream": stream_command,
        "report": report_command,
        "impute": impute_command,
        "sensors": sensors_command,
    },
    "Comparing and auditing": {
        "methods": methods_command,
        "bench": bench_command,
        "tables": tables_command,
        "audit": audit_command,
    },
    "A service": {"serve": serve_command, "replay": replay_command},
}

app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False)
for panel, commands in COMMANDS.items():
    for name, command in commands.items():
        app.command(name, help=flowing(command.__doc__), rich_help_panel=panel)(command)
app.add_typer(data_app, name="data", rich_help_panel="Comparing and auditing")
app.add_typer(store_app, name="store", rich_help_panel="A service")
for info in (*data_app.registered_commands, *store_app.registered_commands):
    info.help = flowing(info.callback.__doc__)


def main() -> None:
    """Entry point of `jointset`."""
    tell_warnings()
    app()


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"jointset {jointset.__version__}")
        raise typer.Exit


@app.callback()
def everywhere(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Joint prediction sets for networks of sensors: one calibrated set for the whole next reading."""
