"""Numbers, words and tables as HTML."""

import pytest

from rankplane.report import markup


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "+0.00"),
        (-0.0001, "+0.00"),
        (0.0012, "+0.001"),
        (-0.0012, "\N{MINUS SIGN}0.001"),
        (1.236, "+1.24"),
        (-20, "\N{MINUS SIGN}20.00"),
    ],
)
def test_numbers_with_a_sign(value, shown):
    assert markup.signed(value) == shown


def test_counts_shares_and_lists_in_words():
    assert [markup.rows(count) for count in (0, 1, 12345)] == ["0 rows", "1 row", "12,345 rows"]
    assert markup.percent(0.125, 1) == "12.5\N{NO-BREAK SPACE}%"
    assert [markup.listed(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    assert markup.listed(["a", "b"], "or") == "a or b"


def test_small_columns_are_left_out_by_the_largest_of_all_lists():
    kept = markup.worth_showing([("a", 5.0), ("b", 0.02)], [("c", -10.0), ("d", 0.1)], [])
    assert kept == [[("a", 5.0)], [("c", -10.0), ("d", 0.1)], []]


def test_what_users_wrote_is_escaped():
    hostile = '<script>"x" & y</script>'
    for made in (
        markup.html_table(hostile, ["a"], [["1", "2"]]),
        markup.section(hostile, "content", note=hostile),
        markup.bullets([hostile]),
        markup.boundary_name(hostile, hostile),
    ):
        assert "<script>" not in made
        assert "&lt;script&gt;" in made


def test_cells_that_are_made_already_stay():
    made = markup.html_table("caption", ["name", "value"], [["row", markup.cell("1", "note", 0.5)], ["other", "2"]])
    assert '<th scope="row">row</th><td class="note" style="--s:0.500">1</td>' in made
    assert '<th scope="row">other</th><td>2</td>' in made
