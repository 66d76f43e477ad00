"""What the site needs beyond Sphinx and its extensions: the order of the gallery, links that leave docs/, and formulas."""

import inspect
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxTranslator
from sphinx.util.typing import ExtensionMetadata

import rankplane

# Pages that are beside docs/ on a code host are pages of the site too.
OUTSIDE = {"SECURITY.md": "security.md", "ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md"}


class BySubject:
    """The order of the gallery: from the first picture to special cases."""

    ORDER = (
        "decision_regions",
        "csv_to_report",
        "choosing_c",
        "probabilities",
        "explaining",
        "skewed_ranks",
        "kernels",
        "chinese_and_korean",
    )

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> int:
        example = Path(name).stem
        return self.ORDER.index(example) if example in self.ORDER else len(self.ORDER)


def methods_of_sklearn() -> dict[str, list[str]]:
    """By class, the public methods that scikit-learn wrote. Their docstrings refer to pages that this site does not have."""
    classes = {name: value for name in rankplane.__all__ if inspect.isclass(value := getattr(rankplane, name))}
    return {
        name: [
            method
            for method in dir(found)
            if not method.startswith("_") and str(getattr(getattr(found, method), "__module__", "")).startswith("sklearn.")
        ]
        for name, found in classes.items()
    }


def point_inside(app: Sphinx, page: str, source: list[str]) -> None:
    """Links to files beside docs/ become links to the pages that include them."""
    for outside, inside in OUTSIDE.items():
        source[0] = source[0].replace(f"](../{outside}", f"]({inside}")


def point_inside_included(app: Sphinx, path: Path, page: str, content: list[str]) -> None:
    """The same for files beside docs/ that a page includes. The option ``relative-docs`` of the directive takes ``docs/`` away."""
    for outside, inside in OUTSIDE.items():
        content[0] = content[0].replace(f"]({outside}", f"](docs/{inside}")


# Formulas as MathML, which browsers draw themselves: MathJax would be fetched from another host.
def visit_inline_math(translator: SphinxTranslator, node: nodes.math) -> None:
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_math_block(translator: SphinxTranslator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    app.connect("source-read", point_inside)
    app.connect("include-read", point_inside_included)
    app.add_html_math_renderer("mathml", (visit_inline_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
