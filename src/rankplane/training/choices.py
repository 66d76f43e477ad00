"""The options of training, checked before any work is done."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankplane import modelfile
from rankplane.inputs.reading import InputError
from rankplane.inputs.schema import Inputs
from rankplane.options import AUTO, DECISIONS, TrainingOptions, named
from rankplane.prediction.decisions import is_by_shares
from rankplane.solver.kernels import GAMMA_KERNELS, gamma_of
from rankplane.text import TextVectorizer
from rankplane.text.settings import PRESETS, SEGMENTERS, resolve
from rankplane.training import parsing
from rankplane.validation import MAX_SEED, MAX_THREADS, check_n_jobs

TEXT_OPTIONS = ("preset", "ngrams", "analyzer", "segmenter")
SKEWED = ("auto", "none", "log")
KERNEL_ROWS = 10_000  # with more, a kernel takes too long
GAMMA_FACTORS = (1 / 16, 1 / 4, 1.0)  # times gamma="scale"; texts need smaller values at a large C


def check_one_of(name: str, value: str | None, choices: Collection[str]) -> None:
    if value not in (None, *choices):
        raise InputError(f"{named(name)} must be one of {', '.join(choices)}. Got {value}.")


def n_threads(jobs: int | None) -> int:
    """The number of threads; -1 stands for all cores that the process may use."""
    if jobs == 0 or (jobs or 1) > MAX_THREADS:
        rule = f"a number of threads, at most {MAX_THREADS}, or -1 for all cores"
        raise InputError(f"{named('jobs')} must be {rule}. Got {jobs}.")
    return check_n_jobs(jobs)


@dataclass(frozen=True)
class Choices(TrainingOptions):
    """The options with their checks, which need heavy imports."""

    def check(self) -> None:
        """Refuse invalid options, whatever the table."""
        self.check_listed()
        self.check_numbers()
        self.check_together()
        parsing.weights_by_name(self.class_weight)
        resolve(self.vectorizer().get_params(deep=False))  # raises if the segmenter is not installed

    def check_listed(self) -> None:
        listed: dict[str, Collection[str]] = {"decision": DECISIONS}
        listed |= {"model": (*modelfile.MODELS, AUTO), "preset": (*PRESETS, AUTO)}
        listed["kernel"] = (AUTO, "linear", *GAMMA_KERNELS)
        listed["skewed"] = SKEWED
        listed |= {"segmenter": SEGMENTERS}
        for name, choices in listed.items():
            check_one_of(name, getattr(self, name), choices)

    def check_numbers(self) -> None:
        rules = {
            "holdout": (0 <= self.holdout < 1, "at least 0 and below 1"),
            "C": (self.C is None or 0 < self.C < np.inf, "a positive number"),
            "seed": (0 <= self.seed <= MAX_SEED, f"a number from 0 to {MAX_SEED}"),
            "compact": (self.compact is None or 0 <= self.compact < np.inf, "a non-negative number"),
            "gamma": (self.gamma is None or 0 < self.gamma < np.inf, "a positive number"),
        }
        for name, (is_kept, rule) in rules.items():
            if not is_kept:
                raise InputError(f"{named(name)} must be {rule}. Got {getattr(self, name)}.")
        n_threads(self.jobs)

    def check_together(self) -> None:
        """Refuse options that exclude each other."""
        if self.is_self_tuned:
            own = [name for name in ("C", "kernel", "gamma", "compact") if getattr(self, name) != getattr(TrainingOptions(), name)]
            if own:
                rule = f"must be left out with {named('model', self.model)}, which chooses its parameters itself"
                raise InputError(f"{named(own[0])} {rule}. Got {getattr(self, own[0])}.")
            if self.class_weight is not None and self.decision == "ranker":
                raise InputError(f"{named('class_weight')} multiplies costs, which {named('decision', 'ranker')} does not have.")
        if self.kernel not in ("auto", "linear") and not self.may_have_kernel:
            raise InputError(f"{named('kernel')} must be linear with {named('model', self.model)}. Got {self.kernel}.")
        if self.kernel in ("auto", "linear") and self.gamma is not None:
            kernels = named("kernel", GAMMA_KERNELS[0])
            raise InputError(f"{named('gamma')} needs a kernel that has one: {kernels} or {' or '.join(GAMMA_KERNELS[1:])}.")
        if self.kernel not in ("auto", "linear") and self.compact is not None:
            raise InputError(f"{named('compact')} rounds column weights, which only {named('kernel', 'linear')} has.")
        if self.class_weight is not None and is_by_shares(self.decision):
            decision = named("decision", self.decision)
            raise InputError(f"{named('class_weight')} has no effect with {decision}: leave one of them out.")
        if self.segmenter is not None and "word" not in parsing.analyzers(self.analyzer, self.ngrams):
            raise InputError(f"{named('segmenter')} finds words, which {named('analyzer', self.analyzer)} does not use.")

    @property
    def is_self_tuned(self) -> bool:
        """Whether the model has no C, and a kernel of its own."""
        return self.model != AUTO and "C" in modelfile.MODELS[self.model].without

    @property
    def may_have_kernel(self) -> bool:
        return self.model == AUTO or "kernel" not in modelfile.MODELS[self.model].without

    def settled(self, skewed: str, kernel: str) -> "Choices":
        """The options with these in place of ``auto``."""
        return replace(
            self,
            skewed=skewed if self.skewed == "auto" else self.skewed,
            kernel=kernel if self.kernel == "auto" and not self.is_self_tuned else self.kernel,
        )

    def check_for(self, inputs: Inputs) -> None:
        """Refuse options that do not apply to the features."""
        if self.skewed == "log" and inputs.kind != "table":
            raise InputError(f"{named('skewed', 'log')} applies to the columns of a table only.")
        if self.is_self_tuned and (inputs.text or inputs.kind == "text"):
            raise InputError(f"{named('model', self.model)} needs the columns of a table, few and dense; it does not take texts.")
        asked = [name for name in TEXT_OPTIONS if getattr(self, name) != getattr(Choices(), name)]
        if asked and not inputs.text:
            raise InputError(f"{named(asked[0])} applies to texts only: name their columns by {named('text')}.")

    def vectorizer(self, **options: Any) -> TextVectorizer:
        ranges = parsing.analyzers(self.analyzer, self.ngrams)
        [(analyzer, ngrams), *others] = ranges.items()
        options |= {"analyzer": ranges} if others else {"analyzer": analyzer, "ngram_range": ngrams}
        options |= {"segmenter": self.segmenter, "n_jobs": self.jobs}
        return TextVectorizer(preset="default" if self.preset == AUTO else self.preset, **options)

    @property
    def are_features_open(self) -> bool:
        """Whether the features of texts are to be chosen by measurement."""
        given = (self.analyzer, self.ngrams, self.segmenter)
        return self.preset == AUTO and self.kernel == "linear" and all(option is None for option in given)

    @property
    def is_model_open(self) -> bool:
        return self.model == AUTO and self.kernel == "linear"

    def gammas(self, X: Any) -> list[float] | None:
        """Values of gamma to try: the given one, or some around gamma="scale"."""
        if self.kernel == "linear":
            return None
        return [gamma_of("scale", X) * factor for factor in GAMMA_FACTORS] if self.gamma is None else [self.gamma]
