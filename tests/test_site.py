"""The site of docs/: what `make docs` makes of the pages. Sphinx itself runs there, and not here."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from rewrites.library import places
from rise.cli.explanations import EXPLANATIONS
from rise.cli.rules import escaped
from tests.support.pages import blocks

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *DOCS.rglob("*.md")]


def building(module: str) -> Any:
    """A module of what builds the site, which is in no package."""
    sys.path.insert(0, str(DOCS))
    try:
        return import_module(f"building.{module}")
    finally:
        sys.path.remove(str(DOCS))


# --- contents ---------------------------------------------------------------------------------------


def listed(page: Path) -> set[Path]:
    """The pages that a list of links has, as the site reads it."""
    tables = "".join(building("contents").tables_of_contents(page.read_text(encoding="utf-8")))
    entries = re.findall(r"^(?!```|:)(\S+)$", tables, re.MULTILINE)
    return {(page.parent / f"{entry}.md").resolve() for entry in entries}


def test_every_page_is_in_the_table_of_contents_once() -> None:
    index, tutorials = DOCS / "index.md", DOCS / "tutorials" / "index.md"
    pages = {path for path in DOCS.rglob("*.md") if "generated" not in path.parts}
    assert listed(index) | listed(tutorials) | {index} == pages
    assert not listed(index) & listed(tutorials)


def test_the_sections_go_from_the_start_to_the_internals() -> None:
    tables = list(building("contents").tables_of_contents((DOCS / "index.md").read_text(encoding="utf-8")))
    captions = [re.findall(":caption: (.*)", table)[0] for table in tables]
    assert captions == ["Get started", "Guides", "Reference", "Internals"]
    assert set(building("contents").GENERATED) <= set(captions)


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("python", "(running.md#arrays)", "(running.md#arrays)"),
        ("tutorials/index", "(../install.md)", "(../install.md)"),
        ("python", "(../examples/gemm.rise)", "(path:../examples/gemm.rise)"),
        ("tutorials/index", "(../../examples/gemm.rise)", "(path:../../examples/gemm.rise)"),
        ("python", "(../CONTRIBUTING.md)", "(generated/contributing.md)"),
        ("python", "(https://example.org/a.md)", "(https://example.org/a.md)"),
        ("python", "(#types)", "(#types)"),
    ],
)
def test_a_link_leads_to_the_same_on_the_site(page: str, link: str, expected: str) -> None:
    assert building("contents").with_links(f"[text]{link}", page) == f"[text]{expected}"


def test_an_image_stays_an_image() -> None:
    image = "![Figure 16](../benchmarks/results/papers/002-fig16.svg)"
    assert building("contents").with_links(image, "papers") == image


def test_a_page_of_the_root_links_into_the_site() -> None:
    made = building("contents").with_links("[a](docs/codegen.md)", "generated/contributing", folder=".")
    assert made == "[a](../codegen.md)"


# --- generated pages --------------------------------------------------------------------------------


def test_an_example_is_shown_with_type_result_derivation_and_kernel() -> None:
    page = building("gallery").page("sharing.rise")
    definitions = re.findall(r"^def (\w+)", (ROOT / "examples" / "sharing.rise").read_text("utf-8"), re.M)
    for name, entry in zip(definitions, page.split("\n## ")[1:], strict=True):
        assert entry.startswith(f"{name}\n")
        assert f"```rise\ndef {name}" in entry
        assert f"```rise\n{name} : " in entry
        assert "result : " in entry
        assert re.search(r"Lowered by `default`.* in \d+ steps?\.", entry)
        assert "__global__ void" in entry


def test_every_example_has_its_page_in_the_gallery() -> None:
    gallery = building("gallery")
    index = gallery.index()
    assert all(f"]({Path(file).stem}.md)" in index for file in gallery.files())
    assert {file for file, _ in gallery.SCHEDULES} <= set(gallery.files())


def test_every_code_is_on_the_page_of_errors() -> None:
    page = building("errors").page()
    assert re.findall(r"^### (R\d{4})$", page, re.MULTILINE) == sorted(EXPLANATIONS)
    assert "error R0301" in page


def test_every_rule_is_on_the_page_of_rules() -> None:
    laws = building("laws")
    parts = list(laws.section("loops"))
    names = [escaped(name) for name, (file, _) in places().items() if file == "loops"]
    assert [part[4:] for part in parts if part.startswith("### ")] == names
    assert all("declared in rewrites.loops" in part for part in parts if part.startswith("```"))


# --- the reference of names -------------------------------------------------------------------------

OURS = ("rise", "rewrites", "strategies", "codegen")


def imported() -> Iterator[tuple[str, str]]:
    """What the Python of all pages imports from our packages; constants are rules, which have a page."""
    for page in PAGES:
        for block in blocks(page, "python"):
            for node in ast.walk(ast.parse(re.sub(r"^# →.*", "", block, flags=re.MULTILINE))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
                    yield from ((str(node.module), alias.name) for alias in node.names)


def test_the_reference_has_every_name_that_pages_import() -> None:
    found = {(m, name) for m, name in imported() if not name.isupper() and m != "rise.ops"}
    assert len(found) > 20
    assert found - building("api").documented() == set()


def test_every_name_of_the_reference_is_documented() -> None:
    silent = [
        f"{module}.{name}"
        for module, name in sorted(building("api").documented())
        if not inspect.getdoc(getattr(import_module(module), name))
    ]
    assert silent == []


def test_docstrings_become_lists_of_parameters() -> None:
    lines = ["Does `x*y`*.", "", "sizes: of a program", "       by name", "name:  its own", "Raises R0001."]
    assert building("docstrings").adapted(lines) == [
        r"Does ``x*y``\*.",
        "",
        ":param sizes: of a program",
        "       by name",
        ":param name: its own",
        "",
        "Raises R0001.",
        "",
    ]


# --- the check of a built site ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ('<a href="b.html#here">b</a> <a href="https://example.org">away</a>', None),
        ('<img src="https://example.org/a.png">', "fetches https://example.org/a.png"),
        ('<script src="//example.org/a.js"></script>', "fetches //example.org/a.js"),
        ('<link rel="stylesheet" href="http://example.org/a.css">', "fetches http://example.org/a.css"),
        ('<a href="c.html">c</a>', "links to c.html: there is no such file"),
        ('<a href="b.html#there">b</a>', "links to b.html#there: there is no such place on the page"),
    ],
)
def test_what_is_wrong_with_a_site_is_told(tmp_path: Path, page: str, complaint: str | None) -> None:
    (tmp_path / "a.html").write_text(page, encoding="utf-8")
    (tmp_path / "b.html").write_text('<p id="here">b</p>', encoding="utf-8")
    found = list(building("check").complaints(tmp_path))
    assert found == ([] if complaint is None else [f"a.html {complaint}"])


def test_a_style_that_comes_from_a_network_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>a</p>", encoding="utf-8")
    (tmp_path / "a.css").write_text('@import url("https://example.org/b.css");', encoding="utf-8")
    assert list(building("check").complaints(tmp_path)) == ["a.css fetches https://example.org/b.css"]


def test_an_empty_site_is_told(tmp_path: Path) -> None:
    assert list(building("check").complaints(tmp_path)) == [f"there is no page in {tmp_path}"]
