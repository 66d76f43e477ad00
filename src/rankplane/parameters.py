"""Checks of the parameters of a model, of each alone and of their combinations."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from rankplane import validation
from rankplane.solver.kernels import GAMMA_KERNELS, KERNELS, is_linear

LOSSES = ("hinge", "squared_hinge", "logistic")
LARGEST_SOFT_EPSILON = 40.0  # whose exponential squared is still a number in single precision
KERNELS_WITH = {"gamma": GAMMA_KERNELS, "degree": ("poly",), "coef0": ("poly", "sigmoid")}
Check = Callable[[str, Any], Any]


def one_of(choices: Sequence[str]) -> Check:
    return lambda name, value: validation.check_choice(name, value, choices)


def or_none(check: Check) -> Check:
    return lambda name, value: value is None or check(name, value)


CHECKS: dict[str, Check] = {
    "C": validation.check_positive,
    "C1": or_none(validation.check_positive),
    "C2": or_none(validation.check_positive),
    "epsilon": validation.check_non_negative,
    "loss": one_of(LOSSES),
    "ranker": one_of(("ordered", "nearest")),
    "form": one_of(("planes", "thresholds")),
    "solver": one_of(("dcd2", "dcd1")),
    "fit_intercept": validation.check_bool,
    "coupling": validation.check_strength,
    "tol": or_none(validation.check_positive),
    "max_iter": or_none(validation.check_count),
    "shrinking": validation.check_bool,
    "probability": validation.check_bool,
    "verbose": validation.check_non_negative,
    "kernel": lambda name, value: callable(value) or validation.check_choice(name, value, KERNELS),
    "gamma": validation.check_gamma,
    "degree": validation.check_non_negative,
    "coef0": validation.check_number,
    "cache_size": validation.check_positive,
    "ard": validation.check_bool,
    "n_inducing": or_none(validation.check_count),
    "n_restarts": validation.check_non_negative_count,
}


def check_parameters(model: Any) -> None:
    """Refuse values that are invalid, or do not apply to the kernel."""
    parameters: dict[str, Any] = model.get_params(deep=False)
    for name, value in parameters.items():
        if name in CHECKS:
            CHECKS[name](name, value)
    if parameters.get("loss") == "logistic" and parameters.get("epsilon", 0) > LARGEST_SOFT_EPSILON:
        raise ValueError(f"epsilon must be at most 40 with loss='logistic'. Got {parameters['epsilon']!r}.")
    check_applicable(parameters, inspect.signature(type(model)).parameters)


def check_applicable(parameters: dict[str, Any], signature: Any) -> None:
    """Parameters that the kernel does not have must be left at their defaults."""
    if "kernel" not in parameters:
        return
    kernel = parameters["kernel"]
    for name, kernels in KERNELS_WITH.items():
        default, value = signature[name].default, parameters[name]
        if kernel not in kernels and value != default:
            raise ValueError(
                f"{name} must be left at {default!r} unless kernel is {' or '.join(map(repr, kernels))}. "
                f"Got {value!r} with kernel={kernel!r}."
            )
    if is_linear(kernel):
        return
    for name, only in (("solver", "dcd2"), ("column_weight", None), ("coupling", 0)):
        value = parameters.get(name, only)
        if not (value is only or (isinstance(value, str | int | float) and value == only)):
            raise ValueError(f"{name} must be {only!r} with a kernel. Got {value!r} with kernel={kernel!r}.")
