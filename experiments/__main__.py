"""``python -m experiments``: compute what is missing, then draw the page."""

import argparse
import sys

from threadpoolctl import threadpool_limits

from experiments import page
from experiments.notebook import RESULTS, Notebook, carry_out
from experiments.sets import Collection
from lab import ROOT
from lab.data import data_folder
from lab.display import console


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="experiments", description="Reproduce the paper; goes on where the last run ended.")
    parser.add_argument("--data", help="folder of the data sets (default: ../shared/data if it is there)")
    parser.add_argument("--quick", action="store_true", help="small samples, into build/paper-quick")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these tables and figures")
    parser.add_argument("--sets", nargs="+", default=[], metavar="NAME", help="these data sets")
    parser.add_argument("--splits", type=int, help="splits per data set (default: 5, quick: 2)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes side by side; times by the clock come last")
    parser.add_argument("--no-page", action="store_true", help="compute, but do not draw the page")
    options = parser.parse_args(arguments)
    names = [module.__name__.rpartition(".")[2] for module in page.MODULES]
    for name in options.only:
        if name not in names:
            sys.exit(f"experiments: --only must name one of {', '.join(names)}. Got {name!r}.")
    chosen = [module for module, name in zip(page.MODULES, names, strict=True) if not options.only or name in options.only]

    collection = Collection(
        data_folder(options.data), options.quick, options.splits or (2 if options.quick else 5), tuple(options.sets)
    )
    base = ROOT / "build" / "paper-quick" if options.quick else None
    notebook = Notebook(base / "results" if base else RESULTS)
    if options.jobs < 1:
        sys.exit(f"experiments: --jobs must be at least 1. Got {options.jobs}.")
    jobs = (job for module in chosen for job in module.jobs(collection, notebook))
    with threadpool_limits(1):  # threads that wait for work of BLAS would count as processor time
        n_done, n_all = carry_out(notebook, jobs, options.jobs)
    console.print(f"{n_done} results computed, {n_all - n_done} of {n_all} were there or left out.", highlight=False)
    if not options.no_page:
        written = page.write(notebook, base or ROOT / "docs")
        console.print(f"Wrote {written.relative_to(ROOT)}.", highlight=False)


if __name__ == "__main__":
    main()
