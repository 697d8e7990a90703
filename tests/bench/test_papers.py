"""The papers' evaluations: every figure has a table, its programs are right, and a page shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import codegen
from bench.figures import read_figure
from bench.formulas import reduction, utilisation
from bench.paper_plots import draw
from bench.papers import NOTHING, Measured, page
from bench.report import markdown
from bench.results import Attempt, Row, append
from bench.search import searched
from bench.table import Candidate, Case, Subject, Table, find, group, restrict
from bench.tolerance import chosen, drop
from codegen.pipeline import assemble
from rise.check.program import load
from rise.check.specialise import specialise
from rise.cli.main import main
from rise.errors import UsageError
from strategies import registry
from strategies.derive import derived
from tests.bench.fakes import table

ROOT = Path(__file__).parents[2]
FIGURES = {
    "000": {18, 19, 20, 21},
    "001": {2, 3, 4},
    "002": {2, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17},
    "003": {3},
}


def test_every_figure_has_its_table() -> None:
    found: dict[str, set[int]] = {}
    for name in group("papers"):
        figure = find(name).figure
        assert figure is not None, name
        found.setdefault(figure.paper, set()).add(int(figure.number.rpartition("Figure ")[2]))
        assert name.startswith(f"papers/{figure.paper}/fig")
    assert found == FIGURES
    assert {n for n in group("papers/002") if "Table I" in find(n).figure.number} == {"papers/002/fig06"}  # type: ignore[union-attr]


def test_quick_sizes_are_few_and_in_the_tables() -> None:
    cases = [restrict(t, t.figure.quick).cases for t in map(find, group("papers")) if t.figure and t.cases]
    assert all(0 < len(of) <= 4 for of in cases)


def test_every_program_of_a_figure_is_typed() -> None:
    subjects = {(s.file.resolve(), s.definition): s for name in group("papers") for s in find(name).subjects}
    programs = {file: load(file) for file, _ in subjects}
    for (file, definition), subject in subjects.items():
        specialise(programs[file][definition], subject.sizes[0])


def candidate(name: str, series: str) -> tuple[Subject, Candidate]:
    subject = find(name).subjects[0]
    return subject, next(each for each in subject.candidates if each.series == series)


COMPILED = [
    ("000/fig19", "m8n8k4, split-K 2", {"m": 64, "n": 64, "k": 64}),
    ("002/fig02", "8×32×16", {"b": 5, "m": 20, "n": 20, "k": 20}),
    ("002/fig04", "32 warps", {"b": 5, "m": 64, "n": 64, "k": 64}),
    ("002/fig08", "3 a block", {"b": 50, "m": 7, "n": 7, "k": 7}),
    ("002/fig13", "v3: by threads", {"b": 50, "m": 5, "n": 5, "k": 5}),
]


@pytest.mark.parametrize(("name", "series", "sizes"), COMPILED)
def test_candidates_of_the_figures_compile(name: str, series: str, sizes: dict[str, int]) -> None:
    subject, given = candidate(f"papers/{name}", series)
    strategy = registry.find(given.strategy).make(dict(given.settings))
    term = specialise(load(subject.file)[subject.definition], sizes)
    assert assemble(derived(term, strategy).term, "figure").kernels


@pytest.mark.parametrize("series", ["naive", "rise"])
def test_versions_of_the_ablation_are_right(series: str) -> None:
    subject, given = candidate("papers/001/fig03", series)
    a, b, c = whole(128, 64), whole(64, 128), whole(128, 128)
    found = emulated(subject, given, {"m": 128, "n": 128, "k": 64}, a, b, c.astype(np.float32))
    assert np.array_equal(found, a.astype(np.float64) @ b + c)


@pytest.mark.parametrize("series", ["naive without tensor cores", "naive with tensor cores"])
def test_naive_products_are_right(series: str) -> None:
    subject, given = candidate("papers/003/fig03", series)
    a, b, c = whole(32, 48), whole(16, 48), whole(32, 16).astype(np.float32)
    factors = np.float32(1.5), np.float32(0.5)
    found = emulated(subject, given, {"m": 32, "n": 16, "k": 48}, a, b, c, *factors)
    assert np.array_equal(found, 1.5 * (a.astype(np.float64) @ b.T) + 0.5 * c)


def whole(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + shape[0]).integers(-3, 4, shape).astype(np.float16)


def emulated(subject: Subject, given: Candidate, sizes: dict[str, int], *inputs: object) -> np.ndarray:
    strategy = registry.find(given.strategy).make(dict(given.settings))
    definition = load(subject.file)[subject.definition]
    result = codegen.compile(definition, strategy, sizes=sizes, backend="emulate")(*inputs)
    return np.asarray(result).astype(np.float64)


# --- pages and plots ----------------------------------------------------------------------------------------


def row(case: Case, kind: str, median: float) -> Row:
    return Row(
        "2026", "a GPU", "abc", case.key, kind, kind, median, median, median, 0.01, 15,
        1000 / median, 100.0, "tensor", 0.5, 1.0, 0.0, 0.0, "", 1980, 600.0,
    )  # fmt: skip


def attempt(case: str, name: str, status: str, median: float = 0.0, reason: str = "") -> Attempt:
    return Attempt("abc", "a GPU", case, "rise", name, status, median, 0.0, "", reason)


def results(folder: Path, name: str, times: dict[str, float], sizes: int = 2) -> Table:
    of = find(f"papers/{name}")
    cases = [Case(s, each) for s in of.subjects for each in s.sizes[:sizes]]
    append(folder / f"{of.name}.csv", [row(case, *time) for case in cases for time in times.items()])
    return of


def test_a_page_without_results_says_so(tmp_path: Path) -> None:
    text = page("papers", tmp_path, "plots")
    computed = sum(find(name).figure.form == "formula" for name in group("papers"))  # type: ignore[union-attr]
    assert text.count(f"\n\n{NOTHING}") == len(group("papers")) - computed
    assert "| 64 | 4 | 5 |" in text  # what paper 002 says of 64 × 64
    assert "![" not in text


def test_a_page_shows_ours_beside_the_papers_figures(tmp_path: Path) -> None:
    results(tmp_path, "000/fig18", {"rise": 10.0, "cublas": 20.0, "m8n8k4, split-K 2": 40.0})
    results(tmp_path, "001/fig03", {"rise": 4.0, "naive": 100.0, "cublas": 3.0}, sizes=1)
    (tmp_path / "001-fig03.svg").write_text("")
    text = page("papers", tmp_path, "plots")
    assert "| rise | cublas | 2.000 | 2.00 | 2.00 | 2 of 2 |" in text
    assert "| m8n8k4, split-K 2 | cublas | 0.500 | 0.50 | 0.50 | 0 of 2 |" in text
    assert "geometric mean 0.985" in text
    assert "| 8192 8192 8192 | 250 | 10 | – | – | – | – | – | 333 |" in text
    assert "Speed-up of `rise` over cublas: 0.75 to 0.75, geometric mean 0.750." in text
    assert "![Figure 3](plots/001-fig03.svg)" in text


def test_the_page_in_the_documentation_is_what_the_results_say() -> None:
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    assert text == page("papers", ROOT / "benchmarks/results/papers", "../benchmarks/results/papers")


def test_the_command_prints_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "papers/001", "--report", str(tmp_path)]) == 0
    assert "### Figure 4" in capsys.readouterr().out
    assert main(["bench", "volta", "--report", str(tmp_path)]) != 0


def test_plots_have_the_form_of_the_papers(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    tables = [results(tmp_path, name, {"rise": 10.0, "cublas": 20.0}) for name in ("000/fig18", "002/fig16")]
    tables += [find(f"papers/{name}") for name in ("001/fig02", "002/fig05", "002/fig06")]
    kernels = [attempt("a", "one", "timed", 10.0), attempt("b", "two", "finalist", 10.0)]
    append(tmp_path / "002-fig06.attempts.csv", kernels)
    written = draw([Measured.of(of, tmp_path) for of in tables], tmp_path)
    names = {"000-fig18", "002-fig05", "002-fig06", "002-fig16"}
    assert {path.name for path in written} == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    assert all(path.stat().st_size > 1000 for path in written)


# --- what the papers compute --------------------------------------------------------------------------------


def test_formulas_give_what_the_paper_states() -> None:
    assert (reduction((64, 64), (16, 16)), reduction((64, 64), (32, 8))) == (4.0, 5.0)
    assert utilisation()["16 × 16 × 16"][4] == 0.0625
    above = [n for n, part in utilisation()["16 × 16 × 16"].items() if part > 0.2512]
    assert min(n for n in above if all(m in above for m in range(n, 17))) > 8


def test_a_tolerance_needs_fewer_kernels() -> None:
    times = {"1": {"a": 10.0, "b": 10.4, "c": 30.0}, "2": {"b": 9.9, "a": 20.0}, "3": {"c": 1.0, "b": 1.1}}
    assert len(set(chosen(times, 0.0).values())) == 3
    five = chosen(times, 0.05)
    assert five == {"1": "b", "2": "b", "3": "c"}
    assert drop(times, five) == pytest.approx(1 - 10 / 10.4)
    assert set(chosen(times, 0.10).values()) == {"b"}


# --- tables, candidates, reports ----------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{}, {"form": "pie"}, {"quick": "1024"}, {"colour": "red"}, {"stated": 3}])
def test_a_wrong_figure_is_refused(wrong: dict[str, object]) -> None:
    right = {"paper": "1", "number": "Figure 1", "stated": "", "instead": "", "form": "rate"}
    read_figure(right)
    with pytest.raises(ValueError, match="figure"):
        read_figure({**right, **wrong} if wrong else {})


def test_a_wrong_figure_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("[figure]\nform = 'rate'", encoding="utf-8")
    with pytest.raises(UsageError, match=r"R0861(.|\n)*x\.toml"):
        find(str(tmp_path / "x.toml"))


def test_candidates_that_cannot_apply_are_not_tried() -> None:
    """Eight stages of 256 rows of A and as many columns of B have no room; where all fit, nothing changes."""
    given = restrict(find("volta_half"), ["128x1536x3840"])
    (subject, *_) = given.subjects
    wide = {"block": "256,256,64", "warp": "128,256", "fragment": "64,256,16", "stages": "8"}
    large = Candidate("tensor_core", tuple(wide.items()))
    asked = replace(given, subjects=(replace(subject, candidates=(*subject.candidates, large)),))
    found = searched(asked, "table", 8, "sm_90a")
    assert found.subjects[0].candidates == subject.candidates
    assert searched(found, "table", 8, "sm_90a") is found


def test_named_series_are_kept_whatever_is_searched() -> None:
    given = restrict(find("papers/001/fig03"), ["8192"])
    found = searched(given, "model", 2, "sm_90a").subjects[0]
    assert found.series == given.subjects[0].series
    assert sum(candidate.series == "rise" for candidate in found.candidates) == 2


def test_a_report_counts_refusals(tmp_path: Path) -> None:
    of = table(tmp_path, "good", baselines=["torch.compile"], sizes=[64, 128])
    cases = [case.key for case in of.cases]
    refused = [attempt(case, f"c{i}", "refused", reason="R0606 no") for case in cases for i in range(50)]
    failed = [
        Attempt("abc", "a GPU", case, "torch.compile", "default", "failed", 0, 0, "", f"at {case}")
        for case in cases
    ]
    text = markdown(of, [], [*refused, *failed])
    assert f"100 candidates were refused; [{of.name}.attempts.csv]({of.name}.attempts.csv) says why." in text
    assert "R0606" not in text
    assert f"* failed: torch.compile `default` (2 times, first: at {cases[0]})" in text
