import pytest

from rankplane.inputs.reading import InputError
from rankplane.training import parsing


@pytest.mark.parametrize(("given", "expected"), [(None, None), ("1-2", (1, 2)), ("3", (3, 3)), (" 2 - 5 ", (2, 5))])
def test_ngrams(given, expected):
    assert parsing.ngram_range(given) == expected


@pytest.mark.parametrize("given", ["", "0-1", "2-1", "1,2", "a", "1-2-3", "-1", "1.5"])
def test_bad_ngrams(given):
    with pytest.raises(InputError, match=r"ngrams must be a smallest and a largest length, such as 1-2. Got"):
        parsing.ngram_range(given)


def test_weights_of_ranks():
    assert parsing.class_weight(None, [1, 2]) is None
    assert parsing.class_weight("balanced", [1, 2]) == "balanced"
    assert parsing.class_weight("2=3, 1.0=0.5", [1, 2]) == {2: 3.0, 1: 0.5}
    assert parsing.class_weight("a=b=2,none=1", ["a=b", "none"]) == {"a=b": 2.0, "none": 1.0}
    for given, order in (("3=1", [1, 2]), ("1=2,1.0=3", [1, 2]), ("1.0=2", ["1", "2"])):
        with pytest.raises(InputError, match=r"class_weight must name ranks of 1, 2, each once. Got"):
            parsing.class_weight(given, order)


@pytest.mark.parametrize("given", ["", "1", "1=", "=2", "1=0", "1=-1", "1=inf", "1=nan", "1=x", "1=2,1=3", "1=2,", "Balanced"])
def test_bad_weights(given):
    with pytest.raises(InputError, match="class_weight must be balanced, or different ranks with positive numbers"):
        parsing.weights_by_name(given)
