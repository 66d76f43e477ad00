"""How Sphinx builds the site. ``make docs`` runs it, offline, with warnings as errors, and checks the links of the result."""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from site_parts import methods_of_sklearn  # noqa: E402

project = "rankplane"
release = version = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
copyright = "the rankplane authors"
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "site_parts",
]
templates_path = ["_templates"]
toc_object_entries_show_parents = "hide"
smartquotes = False  # types such as {'hinge', 'squared_hinge'} are to be copied

# Headings get the anchors that code hosts give them, so that the pages work in both places.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autosummary_generate = True
autosummary_context = {"methods_of_sklearn": methods_of_sklearn()}
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # numpydoc's sections have the types
autodoc_member_order = "bysource"
autodoc_mock_imports = ["dask", "distributed", "pyspark"]  # large, and not needed to read docstrings
numpydoc_show_class_members = False  # the template of classes lists them
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/",
    "within_subsection_order": "site_parts.BySubject",
    "backreferences_dir": "generated/examples",
    "doc_module": ("rankplane",),
    "reference_url": {"rankplane": None},
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "plot_gallery": True,
    "abort_on_example_error": False,
    "image_srcset": ["2x"],
    "remove_config_comments": True,
    "notebook_extensions": set(),
}

html_theme = "pydata_sphinx_theme"
html_title = "rankplane"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_domain_indices = False
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Only the gallery and the API reference have pages below them to list at the side.
html_sidebars = {page.stem: [] for page in [*HERE.glob("*.md")]}
