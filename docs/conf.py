"""How Sphinx makes the site of these pages: `make docs`.

What is not here as a page is made first, into `generated/`: the gallery, the reference of Python's names, the
meanings of error codes, and the pages of the repository's root. Nothing on the site comes from a network.
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

from building import contents, docstrings, pages  # noqa: E402

from rise import __version__  # noqa: E402

project = "RISE"
author = "The RISE developers"
release = version = __version__
html_title = "RISE"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
root_doc = "index"
default_role = "literal"

myst_heading_anchors = 4
# kernels are shown with `…` in place of lines, which no lexer of CUDA knows
suppress_warnings = ["misc.highlighting_failure"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_use_type_comments = False
# unions and function types that have a name are shown by it
autodoc_type_aliases = {
    name: name for name in ("Expr", "Type", "Data", "Rewrite", "Predicate", "Result", "NatLike", "Strategy")
}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["building/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "friendly"
pygments_dark_style = "native"


def setup(app):
    """Pages are generated before Sphinx looks for them; texts are adapted when it reads them."""
    pages.write_all(DOCS / "generated")
    app.connect("source-read", contents.adapt)
    app.connect("autodoc-process-docstring", docstrings.adapt)
