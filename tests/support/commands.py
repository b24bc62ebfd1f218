"""The commands, run in this process."""

from typer.testing import CliRunner

from a1gm.cli.app import app

RUNNER = CliRunner()


def run(*arguments, code=0):
    """Run a command line; its exit code must be the expected one."""
    done = RUNNER.invoke(app, list(map(str, arguments)))
    assert done.exit_code == code, (done.output, done.stderr, done.exception)
    return done
