"""Files that are damaged, of every kind that commands read: refused by name, or taken and right.

`damaged(seed)` draws damages without end, `outcome` says what became of one. Nothing may raise anything else
than a RiseError, and what is accepted has to be what the file says. `python tests/attack/files.py SEED COUNT`
draws so many and prints what must not be.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench import journal, machine, results, table
from codegen.cache import cached, digest
from codegen.host.program import HostProgram
from codegen.host.text import cuda_text, edited
from codegen.pipeline import assemble
from rise.check.program import check_text, load
from rise.check.specialise import specialise
from rise.cli import main
from rise.embed.definitions import Signature
from rise.errors import RiseError
from rise.files import read_text
from rise.kept import checksum, kept
from rise.normal import data_flow
from rise.syntax import parser
from strategies.default import default
from strategies.search import store
from tests.attack.outcome import Outcome, Verdict, refused

ROOT = Path(__file__).parents[2]
PROGRAM = """// an example: → é
import "prelude.rise"
def scaled = depFun((n: Nat) => fun((xs: n.f32, k: f32) => xs |> map(fun(x => x * k)) |>
  map(fun(y => y + 1))))
def blocks: {n: Nat} -> (4*n).i32 -> n.i32 = fun(xs => xs |> split(4) |> map(reduce(+, 0)))
"""
TABLE = """title = "t"
[[programs]]
file = "p.rise"
definition = "scaled"
operation = "copy"
sizes = [{ n = 64 }, { n = 128 }]
scalars = { k = 1.5 }
baselines = ["cublas"]
limit = "copy"
[[programs.candidates]]
strategy = "default"
settings = { a = ["1", "2"], b = "3" }
"""
LARGE = 3 * 2**30  # bytes, of which none is on the disk


class Kind(Enum):
    """What file is damaged."""

    INPUTS = "arrays"
    DERIVATION = "derivation"
    REMEMBERED = "remembered parameters"
    ENTRY = "cache entry"
    CHECKSUM = "checksum of a cache entry"
    GRAMMAR = "tables of the grammar"
    SOURCE = "program"
    CUDA = "CUDA text"
    TABLE = "table of a benchmark"
    ROWS = "results"
    MACHINE = "description of a machine"
    JOURNAL = "journal"


@dataclass(frozen=True)
class Damage:
    """A file, and what is wrong with it. form: `file`, or what stands in its place."""

    kind: Kind
    how: str
    content: bytes
    form: str = "file"
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.kind.value}, {self.how}, {self.form}, seed {self.seed}: {self.content[:1500]!r}"


# --- whole files ----------------------------------------------------------------------------------------


@cache
def whole(kind: Kind) -> bytes:
    """A file of the kind that nothing is wrong with."""
    match kind:
        case Kind.INPUTS:
            file = io.BytesIO()
            np.savez(file, xs=np.arange(8, dtype=np.float32), k=np.float32(2))
            return file.getvalue()
        case Kind.DERIVATION:
            with folder() as place:
                call("derive", place / "p.rise", "scaled", "--size", "n=8", "--save", place / "d.json")
                return (place / "d.json").read_bytes()
        case Kind.REMEMBERED:
            return b"".join(
                (Path(store.__file__).parent / "remembered.jsonl").read_bytes().splitlines(True)[:3]
            )
        case Kind.ENTRY:
            return bytes(range(256)) * 40
        case Kind.CHECKSUM:

            def entry(path: Path) -> None:
                path.write_bytes(whole(Kind.ENTRY))

            with folder() as place:
                cached(["a"], ".so", entry)
                return (place / "cache" / f"{digest(['a'])}.so.sha256").read_bytes()
        case Kind.GRAMMAR:
            made = parser.saved(parser._lark())
            return checksum(made) + made
        case Kind.SOURCE:
            return PROGRAM.encode()
        case Kind.CUDA:
            return cuda_text(kernels()).encode()
        case Kind.TABLE:
            return TABLE.encode()
        case Kind.ROWS:
            with folder() as place:
                attempt = results.Attempt("c", "d", "f n=64", "rise", "default", "timed", 1.5, 0.1, "r", "")
                results.append(place / "a.csv", [attempt, attempt])
                return (place / "a.csv").read_bytes()
        case Kind.MACHINE:
            limits = {"tflops": 1.0, "gb_s": 2.0}
            return json.dumps({
                "device": "d", "driver": "1", "cuda": "2", "multiprocessors": 3, "max_sm_mhz": 4,
                "l2_bytes": 5, "limits": limits, "versions": {"a": "1"}, "host": "h",
            }).encode()  # fmt: skip
        case Kind.JOURNAL:
            return json.dumps(["f n=64", "rise", "default"]).encode()


@cache
def kernels() -> HostProgram:
    program = data_flow(specialise(check_text(PROGRAM)["scaled"], {"n": 8}))
    made: Any = default()(program)
    return assemble(made.term, "scaled_kernel")


# --- damages --------------------------------------------------------------------------------------------


def flipped(r: random.Random, content: bytes) -> bytes:
    made = bytearray(content)
    for _ in range(r.choice((1, 1, 3, 20))):
        made[r.randrange(len(made))] ^= 1 << r.randrange(8)
    return bytes(made)


def cut(r: random.Random, content: bytes) -> bytes:
    return content[: r.randrange(len(content))]


def without(r: random.Random, content: bytes) -> bytes:
    start = r.randrange(len(content))
    return content[:start] + content[start + r.randint(1, 40) :]


def doubled(r: random.Random, content: bytes) -> bytes:
    start = r.randrange(len(content))
    part = content[start : start + r.randint(1, 60)]
    return content[:start] + part * r.choice((2, 2, 5)) + content[start + len(part) :]


def strange(r: random.Random, content: bytes) -> bytes:
    what = r.choice((
        b"\0", b"\xff\xfe", b"\xef\xbb\xbf", "é→\u2028".encode(), b"\r\n", b"\x0c", b'"', b"}", b"[", b"-1",
        b"1e999", b"9" * 400, b"\xed\xa0\x80", b"/*", b"\\", b"NaN", b"//", b"(" * 300, b"{" * 3000, b",",
    ))  # fmt: skip
    start = r.randrange(len(content) + 1)
    return content[:start] + what + content[start:]


def noise(r: random.Random, content: bytes) -> bytes:
    return r.randbytes(r.choice((0, 1, 10, 1000)))


def other(r: random.Random, content: bytes) -> bytes:
    return whole(r.choice(list(Kind)))


def spliced(r: random.Random, content: bytes) -> bytes:
    second = whole(r.choice(list(Kind)))
    return content[: r.randrange(len(content))] + second[r.randrange(len(second)) :]


def zeroed(r: random.Random, content: bytes) -> bytes:
    start = r.randrange(len(content))
    return content[:start] + bytes(min(512, len(content) - start)) + content[start + 512 :]


WORDS = (
    "map",
    "fun",
    "=>",
    "(",
    ")",
    "n",
    "4*n",
    "0",
    "-1",
    "f32",
    "i8",
    "def",
    "import",
    "|>",
    "..",
    "depFun",
    "[",
    "x",
)


def words(r: random.Random, content: bytes) -> bytes:
    """Some words of a text are others."""
    parts = re.split(r"(\W)", content.decode("utf-8", "surrogateescape"))
    for _ in range(r.choice((1, 2, 5))):
        parts[r.randrange(len(parts))] = r.choice((*WORDS, r.choice(parts), ""))
    return "".join(parts).encode("utf-8", "surrogateescape")


def deep(text: str, levels: int) -> str:
    return text[0] * levels + text[1] * levels


ODD = (
    "1.5", "null", "[1]", '"' + "9" * 5000 + '"', "9" * 5000, "true",
    "{}", "[]", '""', "-1", "1e400", "NaN", "0",
    '{"self": 1}', '{"n": 1.5}', '{"n": null}', '{"n": [1]}', '{"n": true}', '{"n": "x +"}', '{"n": ""}',
    '{"n": 1, "n": 2}', '{"n": -7}', '{"n": "1/0"}', '{"nobody": 3}', '"\\ud800"', '"\\u0000"', "Infinity",
    deep("[]", 100_000),
    '{"a":' * 50_000, '[0, 99999999999999999999]', "[true]", "[-1]", '"map → mapSeq"',
)  # fmt: skip


VALUE = r'(?:(?<=: )|(?<=":))("(?:[^"\\]|\\.)*"|[-\d.]+|\{[^{}]*\}|\[[^\[\]]*\])'


def values(r: random.Random, content: bytes) -> bytes:
    """A value of JSON (or of a line of it) is another one, whatever kind it is."""
    text = content.decode()
    spots = list(re.finditer(VALUE, text))
    spot = r.choice(spots) if spots else None
    start, end = spot.span() if spot else (0, len(text))
    return (text[:start] + r.choice(ODD) + text[end:]).encode("utf-8", "surrogateescape")


def again(r: random.Random, content: bytes) -> bytes:
    """A name of an object of JSON is given twice, or missing."""
    text = content.decode()
    pairs = list(re.finditer(r'"\w+": ?("(?:[^"\\]|\\.)*"|[-\d.]+),', text))
    if not pairs:
        return content * 2
    pair = r.choice(pairs)
    return (text[: pair.start()] + pair[0] * r.choice((0, 2)) + text[pair.end() :]).encode()


def members(r: random.Random, content: bytes) -> bytes:
    """Arrays that are no plain ones, or members that are none."""
    import zipfile

    file = io.BytesIO()
    odd: tuple[Callable[[], Any], ...] = (
        lambda: np.array([None, {}], dtype=object), lambda: np.array(["text"] * 8),
        lambda: np.zeros(8, "V3"),
        lambda: np.zeros(8, [("a", "f4"), ("b", "i4")]), lambda: np.zeros(8, "M8[s]"),
        lambda: np.zeros(8, complex), lambda: np.zeros(8, ">f4"), lambda: np.zeros(0),
        lambda: np.asfortranarray(np.zeros((2, 4), np.float32)),
        lambda: np.zeros((8, 1), np.float32), lambda: np.zeros(8, "V2"), lambda: np.array(np.nan, np.float32),
        lambda: np.zeros(8, np.float64), lambda: np.zeros((1,) * 30, np.float32), lambda: np.zeros(8, bool),
    )  # fmt: skip
    named = {r.choice(("xs", "k", "xs_0", "", "ü", "../xs")): r.choice(odd)() for _ in range(r.randint(1, 3))}
    if r.random() < 0.6:
        try:
            np.savez(file, **named)
        except ValueError:
            np.savez(file, xs=np.zeros(3))
        return file.getvalue()
    one = io.BytesIO()
    np.save(one, np.arange(8, dtype=np.float32))
    head = one.getvalue().replace(
        b"(8,)", r.choice((b"(9,)", b"(-8,", b"(1e9", b"8   ", b"(8,\x00", b"f(),"))
    )
    with zipfile.ZipFile(file, "w", r.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        archive.writestr(
            r.choice(("xs", "xs.npy", "k.npy", "a/b.npy")), r.choice((b"", b"text", head, head[:60]))
        )
        if r.random() < 0.3:
            archive.writestr("xs.npy", one.getvalue())
    return file.getvalue() if r.random() < 0.8 else one.getvalue()


BYTES = (flipped, flipped, cut, without, doubled, strange, noise, other, spliced, zeroed)
JSON = (values, values, values, again)
HOW: dict[Kind, tuple[Callable[[random.Random, bytes], bytes], ...]] = {
    Kind.INPUTS: (*BYTES, members, members, members, members),
    Kind.DERIVATION: (*BYTES, *JSON, *JSON),
    Kind.REMEMBERED: (*BYTES, *JSON, *JSON),
    Kind.ENTRY: BYTES,
    Kind.CHECKSUM: BYTES,
    Kind.GRAMMAR: BYTES,
    Kind.SOURCE: (*BYTES, words, words, words, words),
    Kind.CUDA: (*BYTES, words, words),
    Kind.TABLE: (*BYTES, words, words, words),
    Kind.ROWS: (*BYTES, words, words),
    Kind.MACHINE: (*BYTES, *JSON),
    Kind.JOURNAL: (*BYTES, *JSON),
}
FORMS = ("folder", "fifo", "loop", "device", "absent", "large", "others")
# more of what users write and of what once raised
OFTEN = (Kind.INPUTS, Kind.DERIVATION, Kind.REMEMBERED, Kind.SOURCE, Kind.TABLE)


def damaged(seed: int) -> Iterator[Damage]:
    """Damages without end; the same for the same seed."""
    r = random.Random(seed)
    kinds = (*Kind, *OFTEN)
    while True:
        own = r.getrandbits(32)
        kind = r.choice(kinds)
        if r.random() < 0.08:
            yield Damage(kind, "in its place", whole(kind), r.choice(FORMS), own)
            continue
        how = r.choice(HOW[kind])
        content = how(random.Random(own), whole(kind))
        yield Damage(kind, how.__name__, content, "file", own)


# --- outcomes -------------------------------------------------------------------------------------------


@contextmanager
def folder() -> Iterator[Path]:
    """A folder with a program and a cache of its own."""
    before = os.environ.get("RISE_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="rise-attack-") as name:
        place = Path(name)
        (place / "p.rise").write_text(PROGRAM, encoding="utf-8")
        os.environ["RISE_CACHE_DIR"] = str(place / "cache")
        try:
            yield place
        finally:
            if before is None:
                del os.environ["RISE_CACHE_DIR"]
            else:
                os.environ["RISE_CACHE_DIR"] = before


def put(damage: Damage, path: Path) -> None:
    """The damaged file, or what stands in its place."""
    if path.exists():
        path.unlink()
    match damage.form:
        case "file":
            path.write_bytes(damage.content)
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "loop":
            path.symlink_to(path.name)
        case "device":
            path.symlink_to("/dev/zero")
        case "large":
            with path.open("wb") as file:
                file.truncate(LARGE)
        case "others":
            path.write_bytes(damage.content)
            path.chmod(0o666)


def call(*arguments: object) -> tuple[int, str, str]:
    """Status, output and messages of a command."""
    out, messages = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(messages):
        status = main([str(a) for a in arguments])
    return status, out.getvalue(), messages.getvalue()


def outcome(damage: Damage) -> Outcome:
    """What becomes of it. Time is not limited here: a caller that draws many has to."""
    with folder() as place:
        try:
            return OUTCOMES[damage.kind](damage, place)
        except RiseError as error:
            return refused(error)


def _command(called: tuple[int, str, str], right: Callable[[str], bool]) -> Outcome:
    """Of a command: refused by a code, or right by what it prints."""
    status, out, messages = called
    found = re.search(r"error (R\d{4}): (.*)", messages)
    if status in (1, 2) and found:
        return refused(RiseError(found[1], found[2]))
    if status:
        return Outcome(Verdict.INTERNAL, "", (messages or out)[:300])
    return Outcome(Verdict.RIGHT if right(out) else Verdict.WRONG, "", (messages + out)[-300:])


def _right(holds: bool, detail: str = "") -> Outcome:
    return Outcome(Verdict.RIGHT if holds else Verdict.WRONG, "", detail[:300])


def _inputs(damage: Damage, place: Path) -> Outcome:
    put(damage, place / "in.npz")
    called = call(
        "run", place / "p.rise", "scaled", "--backend", "interpret", "--size", "n=8",
        "--inputs", place / "in.npz", "--out", place / "out.npz",
    )  # fmt: skip

    def right(out: str) -> bool:
        with np.load(place / "in.npz") as given, np.load(place / "out.npz") as made:
            if not {"xs", "k"} <= set(given.files):  # the others are drawn
                return bool(made["result"].shape == (8,))
            wanted = given["xs"] * given["k"] + np.float32(1)
            return np.array_equal(made["result"], wanted, equal_nan=True)

    with np.errstate(all="ignore"):
        return _command(called, right)


def _derivation(damage: Damage, place: Path) -> Outcome:
    put(damage, place / "d.json")
    called = call(
        "derive", place / "p.rise", "scaled", "--size", "n=8", "--replay", place / "d.json", "--check"
    )
    return _command(called, lambda out: "all agree" in out or "\n0 steps" in out)


def _remembered(damage: Damage, place: Path) -> Outcome:
    put(damage, place / "tuned.jsonl")
    for record in store.read(place / "tuned.jsonl"):
        if json.loads(record.line) != json.loads(json.dumps(vars(record))):
            return _right(False, record.line)
        found = store.lookup(record.program, record.target, place / "tuned.jsonl")
        if found is None:
            return _right(False, "it is not found again")
        try:
            store.point_of(found)
        except RiseError as error:
            return refused(error)
    return _right(True)


def _entry(damage: Damage, place: Path) -> Outcome:
    """Whatever is wrong, the content is that which is built."""
    built = []

    def build(path: Path) -> None:
        built.append(path)
        path.write_bytes(whole(Kind.ENTRY))

    first = cached(["a"], ".so", build)
    label = place / "cache" / f"{digest(['a'])}.so.sha256"
    put(damage, label if damage.kind is Kind.CHECKSUM else first)
    same = damage.form == "file" and damage.content == whole(damage.kind)
    again = cached(["a"], ".so", build)
    content = again.read_bytes()
    third = cached(["a"], ".so", build)
    holds = content == whole(Kind.ENTRY) == third.read_bytes() and len(built) == (1 if same else 2)
    return _right(holds, f"built {len(built)} times")


def _grammar(damage: Damage, place: Path) -> Outcome:
    """Tables that are not whole are none."""
    if damage.form in ("fifo", "device", "large"):  # whoever can put it there can change this program
        return _right(True)
    put(damage, place / "grammar.tables")
    found = kept(place / "grammar.tables")
    return _right(found is None or checksum(found) + found == whole(Kind.GRAMMAR))


def _source(damage: Damage, place: Path) -> Outcome:
    put(damage, place / "s.rise")

    def right(out: str) -> bool:
        """Formatting changes nothing, and once is enough."""
        before = [(n, str(Signature(d))) for n, d in load(place / "s.rise").definitions.items()]
        if call("fmt", place / "s.rise")[0]:
            return False
        text = (place / "s.rise").read_bytes()
        after = [(n, str(Signature(d))) for n, d in load(place / "s.rise").definitions.items()]
        call("fmt", place / "s.rise")
        return before == after and text == (place / "s.rise").read_bytes()

    return _command(call("check", place / "s.rise"), right)


def _cuda(damage: Damage, place: Path) -> Outcome:
    """A text of kernels with the right heads is the user's: what it computes is not looked at."""
    put(damage, place / "k.cu")
    made = edited(kernels(), read_text(place / "k.cu"))
    return _right(all(kernel.source == read_text(place / "k.cu") for kernel in made.kernels))


def _table(damage: Damage, place: Path) -> Outcome:
    put(damage, place / "t.toml")
    found = table.find(str(place / "t.toml"))
    right = all(
        isinstance(case.key, str) and all(isinstance(n, int) for n in case.sizes.values())
        for case in found.cases
    ) and all(isinstance(str(c), str) for s in found.subjects for c in s.candidates)
    table.restrict(found, limit=1)
    return _right(right)


def _rows(damage: Damage, place: Path) -> Outcome:
    put(damage, place / "a.csv")
    for attempt in results.read_attempts(place / "a.csv"):
        if not isinstance(attempt.median_us, float) or not isinstance(attempt.reason, str):
            return _right(False, str(attempt))
    return _right(True)


def _machine(damage: Damage, place: Path) -> Outcome:
    put(damage, place / "m.json")
    return _right(isinstance(str(machine.read(place / "m.json")), str))


def _journal(damage: Damage, place: Path) -> Outcome:
    put(damage, place / "j.json")
    running = journal.Journal(place / "j.json").running()
    return _right(running is None or all(isinstance(each, str) for each in running))


OUTCOMES: dict[Kind, Callable[[Damage, Path], Outcome]] = {
    Kind.INPUTS: _inputs, Kind.DERIVATION: _derivation, Kind.REMEMBERED: _remembered, Kind.ENTRY: _entry,
    Kind.CHECKSUM: _entry, Kind.GRAMMAR: _grammar, Kind.SOURCE: _source, Kind.CUDA: _cuda, Kind.TABLE: _table,
    Kind.ROWS: _rows, Kind.MACHINE: _machine, Kind.JOURNAL: _journal,
}  # fmt: skip
