"""Options that commands share."""

import inspect

from rankplane.cli.options import completed_by, reads_files
from rankplane.inputs.reading import Dialect


def test_a_command_that_reads_files_has_the_options_in_the_place_of_the_dialect():
    @reads_files
    def command(files: list[str], dialect=None, as_json: bool = False):
        """What it does."""
        return lambda: (files, dialect, as_json)

    assert list(inspect.signature(command).parameters) == ["files", "delimiter", "encoding", "format", "limit", "as_json"]
    assert command.__doc__ == "What it does."
    given = {"delimiter": ";", "encoding": "latin-1", "format": "csv", "limit": 3}
    assert command(files=["a"], as_json=True, **given)() == (["a"], Dialect(";", "latin-1", "csv", 3), True)


def test_completion_is_by_the_beginning():
    complete = completed_by(("mae", "macro_mae", "mse"))
    assert complete("ma") == ["mae", "macro_mae"]
    assert complete("x") == []
