"""The documentation site: `make docs` builds it into site/, strictly and offline.

Sphinx rather than MkDocs Material, whose end of life is announced: autosummary gives
every public name a page and sphinx-gallery runs the examples, so that nothing of the
site is code of our own. Furo brings light, dark and phone, and loads nothing from
outside; the search works from a folder on disk.
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

from docutils import nodes

import a1gm

sys.path.insert(0, str(Path(__file__).parent))
import ways_in

warnings.simplefilter("error", a1gm.exceptions.A1gmWarning)  # of an example

project = "a1gm"
author = "The a1gm developers"
copyright = "the a1gm developers, BSD-3-Clause"
version = release = a1gm.__version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_templates", "gallery/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
nitpicky = False

# Markdown
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]

# Every public name on a page of its own
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
numpydoc_show_class_members = False
autodoc_typehints = "none"
# An example that draws has its picture below it
numpydoc_use_plots = True
plot_include_source = True
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 100)]
plot_rcparams = {"savefig.bbox": "tight"}

# Examples
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": ".",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "capture_repr": (),
    "show_signature": False,
    "thumbnail_size": (440, 300),
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
    "remove_config_comments": True,
}

# Look
html_theme = "furo"
html_title = "a1gm"
html_copy_source = False
html_show_search_summary = False  # fetched page by page, which a folder does not allow
html_show_sphinx = False
highlight_language = "none"  # of blocks that name none: commands and messages
copybutton_prompt_text = r">>> |\.\.\. |\.\.\.$"
copybutton_prompt_is_regexp = True
html_static_path = ["_static"]
html_css_files = ["site.css"]
pygments_style, pygments_dark_style = "default", "github-dark"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0f766e",
        "color-brand-content": "#0f766e",
    },
    "dark_css_variables": {
        "color-brand-primary": "#5eead4",
        "color-brand-content": "#5eead4",
        "plot-filter": "invert(0.93) hue-rotate(180deg)",
    },
}


def setup(app):
    """Mend what Markdown, which a code host shows too, cannot say."""
    app.connect("source-read", insert_ways)
    app.connect("doctree-read", show_pictures, priority=400)  # before they are copied
    app.connect("doctree-read", trim_examples)
    app.connect("doctree-resolved", link_names)
    app.connect("autodoc-process-signature", hide_arguments)


def insert_ways(app, docname, source):
    """Insert the table of ways in and their options, made from the signatures."""
    if docname == "api":
        source[0] = source[0].replace("<!-- ways -->", ways_in.table())


def show_pictures(app, doctree):
    """Show pictures for the theme of the site, and those of the examples named."""
    for html in list(doctree.findall(nodes.raw)):
        if not html.astext().startswith("<picture>"):
            continue
        dark, light = re.findall(r' src(?:set)?="(?:docs/)?([^"]*)"', html.astext())
        alt = re.search(r' alt="([^"]*)"', html.astext())[1]
        looks = ("only-light", light), ("only-dark", dark)
        images = [nodes.image(uri=uri, alt=alt, classes=[look]) for look, uri in looks]
        html.replace_self(images)
    for code in list(doctree.findall(nodes.literal)):
        if found := re.fullmatch(r"examples/(\w+)\.py", code.astext()):
            uri = f"/gallery/images/sphx_glr_{found[1]}_001.png"
            alt, looks = f"What {found[0]} draws", ["sphx-glr-single-img"]
            place = code.parent.parent.index(code.parent) + 1
            picture = nodes.image(uri=uri, alt=alt, classes=looks)
            code.parent.parent.insert(place, picture)


def trim_examples(app, doctree):
    """Take away the blank line with which an example ends for doctest."""
    for block in doctree.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip()
        block.children = [nodes.Text(block.rawsource)]


def link_names(app, doctree, docname):
    """Link names that are written as code, `a1gm.fit(X)`, to their pages."""
    pages = app.env.get_domain("py").objects
    for code in list(doctree.findall(nodes.literal)):
        if isinstance(code.parent, nodes.reference | nodes.title):
            continue
        text = code.astext()
        name = re.match(r"[\w.]*", text)[0]
        if text.startswith("examples/"):
            page, place = f"gallery/{Path(text).stem}", ""
        elif name[:1].isupper() or name.startswith(("a1gm.", "paper.", "plot.")):
            name = name.removeprefix("a1gm.")
            found = pages.get(f"a1gm.{name}") or pages.get(f"a1gm.exceptions.{name}")
            page, place = (found.docname, f"#{found.node_id}") if found else ("", "")
        else:
            continue
        if page not in ("", docname):
            uri = app.builder.get_relative_uri(docname, page)
            link = nodes.reference(refuri=uri + place, internal=True)
            code.replace_self(link)
            link += code


def hide_arguments(app, what, name, obj, options, signature, annotation):
    """Leave out the arguments of classes that are not made by hand."""
    if what == "class" and "Made by" in (obj.__doc__ or ""):
        return "", None
    return None
