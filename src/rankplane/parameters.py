"""What the parameters of a model may be, each on its own and beside the others."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from rankplane import validation
from rankplane.solver.kernels import GAMMA_KERNELS, KERNELS, is_linear

LOSSES = ("hinge", "squared_hinge")
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
    "solver": one_of(("dcd2", "dcd1")),
    "fit_intercept": validation.check_bool,
    "tol": validation.check_positive,
    "max_iter": validation.check_count,
    "shrinking": validation.check_bool,
    "probability": validation.check_bool,
    "verbose": validation.check_non_negative,
    "kernel": lambda name, value: callable(value) or validation.check_choice(name, value, KERNELS),
    "gamma": validation.check_gamma,
    "degree": validation.check_non_negative,
    "coef0": validation.check_number,
    "cache_size": validation.check_positive,
}


def check_parameters(model: Any) -> None:
    """Refuse a value that a parameter cannot have, or not with this kernel."""
    parameters: dict[str, Any] = model.get_params(deep=False)
    for name, value in parameters.items():
        if name in CHECKS:
            CHECKS[name](name, value)
    check_applicable(parameters, inspect.signature(type(model)).parameters)


def check_applicable(parameters: dict[str, Any], signature: Any) -> None:
    """A parameter that the kernel does not have must be left at its default."""
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
    for name, only in (("solver", "dcd2"), ("column_weight", None)):
        value = parameters.get(name, only)
        if not (value is only or (isinstance(value, str) and value == only)):
            raise ValueError(f"{name} must be {only!r} with a kernel. Got {value!r} with kernel={kernel!r}.")
