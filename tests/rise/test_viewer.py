"""The page of derivations and kernels, without a browser and in one where it is installed; lines of CUDA.

`python -m tests.rise.test_viewer` takes the pictures of docs/viewer.md again.
"""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from PIL import Image

from codegen.pipeline import generate
from rewrites.derivation import programs
from rewrites.provenance import makers
from rewrites.result import Success
from rise.check.program import check_text
from rise.check.specialise import specialise
from rise.cli.origins import bodies, explained, is_trivial
from rise.cli.stages import Subject
from rise.cli.viewer import profile
from rise.cli.viewer.banks import cost
from rise.cli.viewer.kernel import _occupancy, kernels
from rise.cli.viewer.nests import nest
from rise.cli.viewer.page import embedded, page
from rise.cli.viewer.story import difference, story
from rise.cli.viewer.traffic import traffic
from rise.errors import UsageError
from rise.expr import Expr, subterms
from rise.normal import data_flow
from rise.pretty import show
from rise.traced import traced
from strategies.core import Strategy
from strategies.default import default
from strategies.matmul.tensor_core import tensor_core
from strategies.search.hardware import for_target
from tests.support.browser import CHROMIUM, picture, seen
from tests.support.lines import coverage, loops, of_program
from tests.support.pages import File, blocks, calls, in_order
from tests.support.pictures import LARGEST, PICTURES, SCHEMES, check_picture
from tests.support.programs import succeeded

SUMS = """def f(n: Nat)(xs: n.i32) =
  xs |> map(x => x * 2) |> map(x => x + 1) |> reduce(+, 0)
"""
PRODUCT = """def f(A: 64.64.f16, B: 64.64.f16) = A |> map(row => B |> transpose |> map(col =>
  zip(row)(col) |> map((a, b) => f32(a) * f32(b)) |> reduce(+, 0)))
"""
ROOT = Path(__file__).parents[2]
LAST = 30
SMALL: dict[str, Any] = {"block": (32, 32, 32), "warp": (16, 16)}


@cache
def product() -> tuple[Subject, Success]:
    chosen = Subject(check_text(PRODUCT, "program.rise")["f"], {})
    return chosen, succeeded(tensor_core(**SMALL)(data_flow(chosen.program)))


@cache
def ending() -> tuple[Expr, Success]:
    """The last steps of a product's derivation, which is long, and the program before them."""
    chosen, success = product()
    wholes = list(programs(data_flow(chosen.program), success))
    return wholes[-LAST - 1], Success(success.term, success.steps[-LAST:])


@cache
def told() -> dict[str, Any]:
    return story("f", *ending())


@cache
def kernel() -> dict[str, Any]:
    return kernels(explained(product()[0], ending()[1]), "sm_80")


def sums() -> tuple[Expr, Success]:
    term = data_flow(specialise(check_text(SUMS)["f"], {"n": 7}))
    return term, succeeded(default()(term))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "sums.rise"
    path.write_text(SUMS)
    return str(path)


# --- programs as text -------------------------------------------------------------------------------------


def rebuilt(told: dict[str, Any], key: str, steps: int) -> list[int]:
    """The lines, or the boxes, after so many steps, as the page puts them together."""
    made = list(told["start"][key])
    for step in told["steps"][:steps]:
        for at, gone, come in step[key]:
            made[at : at + gone] = come
    return made


def test_the_differences_of_lines_give_the_program_after_every_step() -> None:
    wholes = list(programs(*ending()))
    assert len(wholes) == LAST
    for number in (1, 2, LAST // 2, LAST):
        lines = [told()["table"][line][0] for line in rebuilt(told(), "lines", number)]
        assert "\n".join(lines) == show(wholes[number - 1])
        boxes = [told()["boxes"][box] for box in rebuilt(told(), "boxes", number)]
        assert boxes == [(b.depth, b.kind, b.name, b.extent) for b in nest(wholes[number - 1])]


@pytest.mark.parametrize(("old", "new"), [([], [1]), ([1], []), ([1, 2, 3], [2, 4, 3, 1]), ([5] * 3, [5])])
def test_a_difference_turns_one_list_into_the_other(old: list[int], new: list[int]) -> None:
    made = list(old)
    for at, gone, come in difference(old, new):
        made[at : at + gone] = come
    assert made == new


def test_a_change_is_marked_where_the_step_is() -> None:
    term, success = sums()
    text = story("f", term, success)
    step = text["steps"][0]
    line, column, last, end = step["before"]
    first = text["table"][text["start"]["lines"][line]][0]
    assert (line, last) == (0, 0)
    assert first[column:end] == show(success.steps[0].before)


def test_a_term_is_where_its_text_is() -> None:
    chosen, _ = product()
    shown = traced(chosen.program)
    lines = shown.text.split("\n")
    assert shown.text == show(chosen.program)
    single = [part for part in shown.parts if part.start[0] == part.end[0]]
    assert len(single) > 20
    for part in single:
        written = lines[part.start[0]][part.start[1] : part.end[1]]
        own = {show(part.term), getattr(part.term, "name", "")}
        assert written in own or written.strip("()") in own or not written.isidentifier()


def test_every_name_has_its_type() -> None:
    term, success = sums()
    text = story("f", term, success)
    line, spans = text["table"][text["start"]["lines"][0]]
    types = {line[c : c + length]: text["types"][t] for c, length, t in zip(*(iter(spans),) * 3, strict=True)}
    assert types["xs"] == "7.i32"
    assert types["x"] == "i32"
    assert types["map"] == "(i32 -> i32) -> 7.i32 -> 7.i32"


def test_loops_say_who_runs_them() -> None:
    kinds = {box.name: box.kind for box in nest(product()[1].term)}
    assert kinds["mapBlock"] == "block"
    assert kinds["mapWarp"] == "warp"
    assert kinds["mapThreads"] == "threads"
    assert kinds["reducePipelined"] == "sequential"
    assert kinds["toMem(Shared)"] == "effect"


# --- what made a step -------------------------------------------------------------------------------------


def test_steps_are_listed_under_the_phases_of_their_schedule() -> None:
    steps = product()[1].steps
    assert {step.by[1].partition("(")[0] for step in steps if len(step.by) > 1} == {"by_warps"}
    phases = list(dict.fromkeys(step.by[2] for step in steps if len(step.by) > 2))
    names = [phase.partition("(")[0] for phase in phases]
    assert {"tile_output", "tile_reduction", "warp_tiles", "tensorise"} <= set(names)
    assert names.index("tile_output") < names.index("tile_reduction") < names.index("tensorise")
    assert all(step.by[0].startswith("tensor_core(") for step in steps)


def test_a_combination_is_a_title_only_where_it_is_a_part_of_a_sequence() -> None:
    from rewrites.algorithmic import MAP_FUSION
    from rise.check.program import check_expression
    from strategies.core import top_down, try_

    term = check_expression("fun(xs: 3.f32 => xs |> map(exp) |> map(exp) |> map(exp))")
    fuse: Strategy = try_(top_down(MAP_FUSION))
    (once,) = succeeded(fuse(term)).steps
    assert once.by == ()
    both = succeeded((fuse >> fuse)(term)).steps
    assert [step.by for step in both] == [("try_(top_down(MAP_FUSION))",)] * 2


def test_what_a_module_has_for_itself_is_no_title() -> None:
    from rewrites.algorithmic import MAP_FUSION
    from rise.check.program import check_expression
    from strategies.core import prints_as_call, top_down, try_

    @prints_as_call
    def _private(number: int) -> Strategy:
        return try_(top_down(MAP_FUSION)) >> try_(top_down(MAP_FUSION))

    @prints_as_call
    def public(number: int) -> Strategy:
        return _private(number) >> try_(top_down(MAP_FUSION))

    term = check_expression("fun(xs: 3.f32 => xs |> map(exp) |> map(exp) |> map(exp) |> map(exp))")
    titles = [step.by for step in succeeded(public(4)(term)).steps]
    fused = "try_(top_down(MAP_FUSION))"
    assert titles == [("public(4)", fused)] * 3


# --- the page ---------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Checks that tags close, and collects links and what scripts hold."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.links += [name for name, _ in attributes if name in ("src", "href", "action")]
        if tag not in ("meta", "input"):
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


def test_the_page_has_its_data_and_needs_nothing_else() -> None:
    text = page([told()], kernel())
    found = Page()
    found.feed(text)
    assert found.open == []
    assert found.links == []
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    data = json.loads(found.scripts[0])
    assert len(data["stories"][0]["steps"]) == LAST
    assert data["kernel"]["text"] == kernel()["text"]
    rule = data["stories"][0]["rules"]["pipeline"]
    assert rule["meaning"] == "The loads of the next steps are in flight while a step is computed."
    assert rule["known"].startswith(("proved", "tested"))
    equation = rule["entry"].removesuffix(f" {rule['meaning']}")
    assert f"* {equation}\n" in (ROOT / "docs" / "rules.md").read_text()


def test_no_text_of_a_program_ends_the_script() -> None:
    evil = {"a": "</script><!-- &amp; \u2028"}
    assert "<" not in embedded(evil)
    assert json.loads(embedded(evil)) == evil


def test_a_page_is_small_since_steps_are_differences() -> None:
    steps = len(told()["steps"])
    assert len(embedded(told())) < 2000 * steps
    assert sum(len(json.dumps(step["lines"])) for step in told()["steps"]) < 150 * steps


def test_the_commands_write_the_page(rise: Any, file: str, tmp_path: Path) -> None:
    written, saved = tmp_path / "f.html", tmp_path / "f.json"
    arguments = (
        "derive",
        file,
        "f",
        "--size",
        "n=7",
        "--html",
        str(written),
        "--check",
        "--save",
        str(saved),
    )
    assert rise(*arguments).status == 0
    found = Page()
    found.feed(written.read_text())
    data = json.loads(found.scripts[0])
    assert [step["agrees"] for step in data["stories"][0]["steps"]] == [True, True]
    assert any("reduceSeq" in line for line in data["kernel"]["text"])
    again = tmp_path / "again.html"
    assert rise("view", str(saved), str(saved), "-o", str(again)).status == 0
    found = Page()
    found.feed(again.read_text())
    stories = json.loads(found.scripts[0])["stories"]
    assert len(stories) == 2
    assert [step["by"] for step in stories[0]["steps"]] == [
        step["by"] for step in data["stories"][0]["steps"]
    ]


def test_view_needs_a_name(rise: Any, file: str) -> None:
    called = rise("view", file)
    assert called.status == 2
    assert "R0061" in called.err


# --- lines of CUDA ----------------------------------------------------------------------------------------

HOPPER: dict[str, Any] = {
    "block": (128, 128, 64), "warp": (64, 128), "fragment": (64, 128, 16), "stages": 2,
    "warp_specialised": True, "epilogue": "bulk",
}  # fmt: skip
LOW_LEVEL = {
    "default": (SUMS.replace("(n: Nat)(xs: n.i32)", "(xs: 77.i32)"), default()),
    "warps": (PRODUCT, tensor_core(**SMALL)),
    "warpgroups": (PRODUCT.replace("64", "256"), tensor_core(**HOPPER)),
}


@pytest.mark.parametrize("name", LOW_LEVEL)
def test_lines_come_from_parts_of_the_program(name: str) -> None:
    """`tests/codegen/test_shipped_kernels.py` says so of what the shipped strategies make."""
    text, strategy = LOW_LEVEL[name]
    term = succeeded(strategy(data_flow(check_text(text)["f"].body))).term
    program = of_program(term)
    known, all_ = coverage(program)
    assert all_ >= 4
    assert known >= 0.95 * all_
    named = list(loops(term, program))
    assert named
    assert all(label == primitive for label, primitive in named), named


def test_a_line_names_the_step_that_made_its_term() -> None:
    chosen, success = product()
    made = explained(chosen, success)
    lines = made.text.split("\n")
    (number,) = (n for n, line in enumerate(lines, 1) if "mma_sync(" in line)
    origin = made.of_line(number)
    assert origin is not None
    assert origin.term.startswith("tensorMatMulAdd(")
    step = success.steps[origin.step - 1]
    assert (step.rule, origin.rule) == (origin.rule, step.rule)
    assert "tensorMatMulAdd" in show(step.after)
    assert origin.source.startswith("program.rise:")
    low = show(success.term).split("\n")
    assert low[origin.low[0] - 1][origin.low[1] - 1 :].startswith("tensorMatMulAdd(")
    assert all(made.of_line(n) for n in bodies(made.text) if not is_trivial(lines[n - 1]))


def test_no_term_was_there_before_the_step_that_made_it() -> None:
    chosen, success = product()
    made = makers(data_flow(chosen.program), success)
    parts = [part for part in subterms(success.term) if made.step_of(part)]
    assert len(parts) > 100
    for part in parts:
        before = subterms(success.steps[made.step_of(part) - 1].before)
        assert not any(made.is_same(part, old) for old in before)


def test_a_line_of_a_file_is_explained_as_the_program_explains_it(
    rise: Any, file: str, tmp_path: Path
) -> None:
    cuda = tmp_path / "k.cu"
    of = (file, "f", "--size", "n=7", "--strategy", "default")
    assert rise("compile", *of, "-o", str(cuda), "--lines").status == 0
    lines = cuda.read_text().split("\n")
    number = next(n for n, line in enumerate(lines, 1) if "reduceSeq" in line)
    one, other = rise("explain-line", f"{cuda}:{number}"), rise("explain-line", *of, "--line", str(number))
    assert one.status == other.status == 0
    assert one.out == other.out
    assert "reduceSeq(Local)" in one.out
    assert "made by step" in one.out
    assert f"source: {file}:2:3" in one.out
    found = json.loads(rise("explain-line", f"{cuda}:{number}", "--json").out)
    assert found["origin"]["rule"] in one.out
    assert "no term" in rise("explain-line", f"{cuda}:1").out


def test_a_text_that_was_changed_is_not_explained(rise: Any, file: str, tmp_path: Path) -> None:
    cuda = tmp_path / "k.cu"
    assert rise("compile", file, "f", "--size", "n=7", "-o", str(cuda), "--lines").status == 0
    assert "R0061" in rise("explain-line", str(cuda)).err
    assert "R0061" in rise("explain-line", f"{cuda}:10000").err
    table = Path(f"{cuda}.lines.json")
    cuda.write_text("// mine\n" + cuda.read_text())
    assert "R0062" in rise("explain-line", f"{cuda}:3").err
    table.write_text(table.read_text().replace('"digest"', '"digests"'))
    assert "R0062" in rise("explain-line", f"{cuda}:3").err
    table.unlink()
    assert "R0062" in rise("explain-line", f"{cuda}:3").err


# --- the kernel -------------------------------------------------------------------------------------------


def test_bytes_and_operations_of_a_product_are_those_of_its_tiles() -> None:
    (made,) = explained(*product()).program.kernels
    moved = traffic(made)
    assert moved is not None
    m = n = k = 64
    assert moved.products == 2 * m * n * k
    assert moved.compulsory == 2 * (m * k + k * n) + 4 * m * n
    # of each of the tiles of 32 × 32, rows of A and columns of B are read once
    assert moved.bytes["memory, read"] == (m // 32) * (n // 32) * 2 * (32 + 32) * k
    assert moved.bytes["memory, written"] == 4 * m * n


def test_shared_memory_has_its_buffers_and_slots() -> None:
    (made,) = kernel()["kernels"]
    rings = [buffer for buffer in made["shared"] if buffer["name"].startswith("ring")]
    assert [ring["slots"] for ring in rings] == [3, 3]
    lines = kernel()["text"]
    for buffer in made["shared"]:
        assert buffer["from"] < buffer["until"] <= len(lines)
        assert buffer["name"] in lines[buffer["from"] - 1]
    first, second = rings
    assert first["offset"] + first["bytes"] <= second["offset"]
    assert [lines[n - 1].strip() for n, _ in made["barriers"]] == [text for _, text in made["barriers"]]
    assert any(text == "__syncthreads();" for _, text in made["barriers"])


@pytest.mark.parametrize(
    ("stride", "size", "expected"),
    [(4, 4, (1, 1)), (8, 4, (1, 2)), (128, 4, (1, 32)), (132, 4, (1, 1)), (16, 16, (4, 4)), (0, 4, (1, 1))],
)
def test_wavefronts_follow_from_strides(stride: int, size: int, expected: tuple[int, int]) -> None:
    assert cost([stride * lane for lane in range(32)], size) == expected


PROFILE = {
    "format": "rise profile",
    "version": 1,
    "kernels": {"f_kernel": {"microseconds": 2.5, "metrics": {"warps": 7}, "lines": {"20": 3, "21": 1}}},
}


def test_a_profile_is_shown_with_its_kernel() -> None:
    (made,) = kernels(explained(*product()), "sm_80", profile.read(json.dumps(PROFILE)))["kernels"]
    assert made["profile"] == [["time, µs", 2.5], ["warps", 7]]
    assert [(n, share) for n, _, share in made["hot"]] == [(20, "75.0 %"), (21, "25.0 %")]
    assert made["roofline"]["points"][1] == ["measured", pytest.approx(16.0, rel=0.1), 0.21]


@pytest.mark.parametrize(
    ("target", "size", "expected"),
    [("sm_90a", 32, (32, "blocks")), ("sm_90a", 512, (4, "threads")), ("sm_75", 32, (16, "blocks")),
     ("sm_75", 512, (2, "threads"))],
)  # fmt: skip
def test_a_multiprocessor_has_a_limit_of_threads_and_one_of_blocks(
    target: str, size: int, expected: tuple[int, str]
) -> None:
    text = f"def f(xs: {size}.f32) = xs |> mapThreads(0)(x => x + 1)"
    rows = _occupancy(generate(check_text(text)["f"].body, "f"), for_target(target), [])
    assert tuple(value for _, value in rows) == expected


@pytest.mark.parametrize(
    "damage",
    [
        {"format": "rise"}, {"version": 2}, {"kernels": []}, {"kernels": {"k": 1}},
        {"kernels": {"k": {"microseconds": "1"}}}, {"kernels": {"k": {"lines": {"a": 1}}}},
        {"kernels": {"k": {"metrics": {"a": []}}}},
    ],
)  # fmt: skip
def test_what_is_no_profile_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="not a profile") as caught:
        profile.read(json.dumps({**PROFILE, **damage}))
    assert caught.value.code == "R0060"


def test_a_page_of_sizes_that_are_open_until_launch_has_them_in_its_kernel(
    rise: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Subject] = []

    def told(chosen: Subject, strategy: Strategy) -> Strategy:
        asked.append(chosen)
        return strategy

    for command in ("view.told", "explain_line.told_expected"):
        monkeypatch.setattr(f"rise.cli.{command}", told)
    (tmp_path / "f.rise").write_text("def f(n: Nat)(xs: n.f32) = xs |> map(x => x * 3)")
    given = (str(tmp_path / "f.rise"), "f", "--runtime", "n=4", "--expect", "n=64", "--strategy", "default")
    called = rise("view", *given, "--out", str(tmp_path / "p.html"))
    assert called.status == 0, called.err
    assert "int n_4" in (tmp_path / "p.html").read_text()
    called = rise("explain-line", *given, "--line", "6")
    assert called.status == 0, called.err
    assert [dict(chosen.expected) for chosen in asked] == [{"n": 64}] * 2


# --- the documentation ------------------------------------------------------------------------------------


def test_the_page_of_the_documentation_says_what_happens(
    rise: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manual = ROOT / "docs" / "viewer.md"
    monkeypatch.chdir(tmp_path)
    for shown_file in in_order(manual):
        if isinstance(shown_file, File):
            Path(shown_file.name).write_text(shown_file.content)
    shown = list(calls(manual))
    assert len(shown) >= 7
    for command, expected in shown:
        called = rise(*command.split())
        assert called.status == 0, called.err
        pattern = "(?:.*\n)*?".join(re.escape(part) for part in expected.split("…\n"))
        assert re.search(pattern, called.out + called.err), f"{command}\n{called.out}{called.err}"
    (example,) = blocks(manual, "json")
    assert profile.read(example)["sums_kernel"].lines == {5: 3, 6: 41}


# --- in a browser -----------------------------------------------------------------------------------------

STEPS = """
const at = () => [$("counter").value, document.querySelector(".t.picked")?.textContent ?? ""];
seen.start = at(); press("ArrowRight"); seen.right = at(); seen.marked = 0;
for (let n = 1; n <= length; n += 1) { go(n); seen.marked += document.querySelectorAll("ins").length; }
press("End"); seen.end = at(); press("ArrowLeft"); seen.left = at(); press("Home"); seen.home = at();
press("/"); seen.focus = document.activeElement.id;
$("filter").value = "loadonce"; $("filter").dispatchEvent(new Event("input"));
seen.found = $("found").textContent; press("Escape", $("filter")); seen.cleared = $("found").textContent;
$("slider").value = 5; $("slider").dispatchEvent(new Event("input"));
seen.slider = at(); 
seen.hash = location.hash;
const name = [...document.querySelectorAll("#panes .k")].find((word) => word.textContent === "map");
const box = name.getBoundingClientRect();
name.dispatchEvent(new MouseEvent("mousemove", {bubbles: true, clientX: box.left + 2, clientY: box.top + 4}));
seen.type = $("tip").textContent;
openRules("pipeline"); seen.rule = document.querySelector("#rules .found").textContent; $("drawer").close();
look("kernel"); const line = kernel.text.findIndex((text) => text.includes("mma_sync("));
fromLine(line); seen.card = $("origin").textContent;
const term = document.querySelector("#low .picked"); seen.term = term.textContent;
fromTerm(Number(term.dataset.n) - 1, term.textContent.indexOf("tensorMatMulAdd"));
seen.lines = [...document.querySelectorAll("#cuda .picked")].map((row) => row.textContent).join();
"""


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_keys_and_clicks_do_what_the_page_says(tmp_path: Path) -> None:
    found = seen(page([told()], kernel()), STEPS, tmp_path)
    count = LAST
    assert found["errors"] == []
    assert found["start"][0] == found["home"][0] == f"0 of {count}"
    assert found["right"][0] == f"1 of {count}"
    assert found["right"][1].startswith("1")
    assert found["marked"] > 0
    assert (found["end"][0], found["left"][0]) == (f"{count} of {count}", f"{count - 1} of {count}")
    assert found["focus"] == "filter"
    assert re.fullmatch(rf"\d+ of {count} steps", found["found"])
    assert found["cleared"] == ""
    assert (found["slider"][0], found["hash"]) == (f"5 of {count}", "#step=5")
    assert found["type"].startswith("map : (")
    assert found["rule"].startswith("pipeline:")
    assert "tensorMatMulAdd(" in found["card"]
    assert "made by step" in found["card"]
    assert "tensorMatMulAdd(" in found["term"]
    assert "mma_sync(" in found["lines"]


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_two_derivations_begin_where_they_differ(tmp_path: Path) -> None:
    other = json.loads(json.dumps(told())) | {"name": "g"}
    other["steps"][3]["parameters"] = {"n": 3}
    script = 'seen.at = $("counter").value; seen.about = $("about").textContent;'
    script += 'seen.panes = document.querySelectorAll("#panes .pane").length;'
    found = seen(page([told(), other]), script, tmp_path)
    assert found["errors"] == []
    assert found["at"].startswith("4 of ")
    assert "the same up to step 3" in found["about"]
    assert found["panes"] == 2


VIEWS = {
    "derivation": "go(17)",
    "kernel": 'look("kernel"); fromLine(kernel.text.findIndex((text) => text.includes("mma_sync(")));',
}


def taken(view: str, scheme: str, folder: Path) -> Image.Image:
    return picture(page([told()], kernel()), VIEWS[view], folder, scheme == "dark")


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("view", VIEWS)
def test_the_page_is_light_or_dark_as_its_reader_prefers(tmp_path: Path, view: str) -> None:
    light, dark = (taken(view, scheme, tmp_path) for scheme in SCHEMES)
    check_picture(light, "light")
    check_picture(dark, "dark")


def test_the_pictures_of_the_documentation_are_small_and_show_the_page() -> None:
    text = (PICTURES.parent / "viewer.md").read_text(encoding="utf-8")
    for name in (f"{view}-{scheme}.png" for view in VIEWS for scheme in SCHEMES):
        assert f"(pictures/{name})" in text
        assert (PICTURES / name).stat().st_size < LARGEST
        check_picture(Image.open(PICTURES / name), "dark" if "dark" in name else "light")
    others = [*PICTURES.glob("panel-*.png"), *PICTURES.glob("vscode-*.png")]
    assert len([*PICTURES.iterdir()]) == len(VIEWS) * len(SCHEMES) + len(others)


@pytest.mark.parametrize("colour", ["white", "black"])
def test_a_blank_picture_would_be_noticed(colour: str) -> None:
    with pytest.raises(AssertionError, match="nothing is shown"):
        check_picture(Image.new("RGB", (64, 64), colour), "light" if colour == "white" else "dark")


def test_two_thousand_steps_of_three_hundred_lines_are_a_few_megabytes() -> None:
    """The page of a derivation that is ten times as long as any of ours."""
    lines = [(f"|> map(x_{n} => x_{n} + {n})", (7, 3, 0, 14, 3, 0)) for n in range(300)]
    steps = [
        {**told()["steps"][0], "lines": [[n % 300, 1, [n * 7 % 300]]], "boxes": [], "before": [0, 0, 0, 9]}
        for n in range(2000)
    ]
    long = {**told(), "table": lines, "start": {"lines": list(range(300)), "boxes": []}, "steps": steps}
    assert len(page([long])) < 3_000_000


def take_pictures() -> None:
    PICTURES.mkdir(exist_ok=True)
    for view in VIEWS:
        for scheme in SCHEMES:
            with TemporaryDirectory() as folder:
                taken(view, scheme, Path(folder)).save(PICTURES / f"{view}-{scheme}.png", optimize=True)


if __name__ == "__main__":
    take_pictures()
