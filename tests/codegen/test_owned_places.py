"""Elements at places that they own, whatever indices say, and as many first elements as data say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.execute import available_backend, execute
from codegen.lower.views import WRITING, Path, Sizes, index_of
from codegen.pipeline import generate
from rise.errors import TranslationError
from rise.interpret import call
from tests.rewrites.soundness import where_defined
from tests.support.kernels import kernel, lowered
from tests.support.programs import program

pytestmark = pytest.mark.skipif(available_backend() is None, reason="there is no C++ compiler")
ADD = "fun(x => x + 1)"
# by who writes: 12 rows of 5, one after the other, by threads, blocks, and through shared memory
ROWS = {
    "a loop": f"mapSeq(mapSeq({ADD}))",
    "threads": f"mapThreads(mapSeq({ADD}))",
    "blocks": f"mapBlock(mapThreads({ADD}))",
    "persistent blocks": f"mapBlockPersistent(0, 2)(mapThreads({ADD}))",
    "through shared memory": f"mapBlock(fun(r => r |> mapThreads({ADD}) |> toMem(Shared)"
    " |> reorder(5, natFun(i => 4 - i), natFun(i => 4 - i)) |> mapThreads(fun(x => x))))",
}
ROWS_OF = "fun((o: 7.Idx[12], p: 12.Idx[7], xs: 12.5.f32) => xs |> {} |> scatterBy(o)(p))"
FIRST_OF = "fun((c: 1.Idx[13], xs: 12.5.f32) => xs |> {} |> prefix(idx(0)(c)))"
FIRST_OF_EACH = "fun((c: 12.Idx[6], xs: 12.5.f32) => xs |> {} |> prefixes(c))"


def compared(text: str, *inputs: NDArray[Any], written: bool = False) -> None:
    """written: whether what nothing defines may be"""
    wanted = np.asarray(call(program(text), *inputs))
    found = np.asarray(execute(kernel(text), list(inputs), "emulate"))
    np.testing.assert_array_equal(where_defined(wanted, found), wanted)
    assert written or np.isnan(found[np.isnan(wanted)]).all()


def numbers(seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).integers(-9, 9, (12, 5)).astype(np.float32)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_an_element_is_written_where_it_belongs_and_owns_the_place(rows: str, seed: int) -> None:
    """The indices contradict each other: several elements belong to one place, and some own none."""
    draw = np.random.default_rng(seed)
    owners, places = draw.integers(0, 12, 7), draw.integers(0, 7, 12)
    places[owners[:3]] = range(3)
    compared(ROWS_OF.format(rows), owners.astype(np.int32), places.astype(np.int32), numbers(seed))


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_no_indices_make_two_threads_write_to_one_place(rows: str) -> None:
    """All elements belong to each place, and all places have the same owner."""
    for place, owner in [(3, 0), (0, 11)]:
        owners, places = np.full(7, owner, np.int32), np.full(12, place, np.int32)
        compared(ROWS_OF.format(rows), owners, places, numbers(place))


@pytest.mark.parametrize("count", [0, 1, 2, 7, 11, 12])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_as_many_elements_as_data_say_are_computed(rows: str, count: int) -> None:
    compared(FIRST_OF.format(rows), np.array([count], np.int32), numbers(count))


@pytest.mark.parametrize("rows", [ROWS["threads"], ROWS["through shared memory"]])
def test_as_many_elements_of_each_row_as_data_say_are_computed(rows: str) -> None:
    """What nothing defines may be written."""
    counts = np.random.default_rng(len(rows)).permutation(np.arange(12) % 6).astype(np.int32)
    compared(FIRST_OF_EACH.format(rows), counts, numbers(1), written=True)


@pytest.mark.parametrize("rows", ["blocks", "persistent blocks", "through shared memory"])
def test_blocks_whose_elements_are_undefined_compute_nothing(rows: str) -> None:
    """The condition is around all that a block does: in the text, before its threads."""
    source = kernel(FIRST_OF.format(ROWS[rows])).source
    assert source.count("< count") == 1
    assert source.index("< count") < source.index("xs_[")


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_owners_may_be_stored_as_rows_of_a_matrix(rows: str) -> None:
    """What owns a place is read by two indices, both of which the place decides."""
    text = ROWS_OF.replace("o: 7.Idx[12]", "o: 4.2.Idx[12]").replace("scatterBy(o)", "scatterBy({})")
    text = text.replace("7", "8").format(rows, "o |> transpose |> join")
    draw = np.random.default_rng(5)
    owners, places = draw.integers(0, 12, (4, 2)).astype(np.int32), draw.integers(0, 8, 12).astype(np.int32)
    places[owners.T.reshape(-1)[:3]] = range(3)
    compared(text, owners, places, numbers(7))


def test_rows_of_pairs_are_put_at_their_places() -> None:
    text = (
        "fun((o: 5.Idx[6], p: 6.Idx[5], xs: 6.(f32, f32)) =>"
        " xs |> mapThreads(fun((x, y) => (y, x))) |> scatterBy(o)(p))"
    )
    owners, places = np.array([5, 0, 1, 1, 2], np.int32), np.array([1, 2, 4, 0, 0, 0], np.int32)
    pairs = np.arange(6, dtype=np.float32), np.arange(10, 16, dtype=np.float32)
    wanted, found = (
        call(program(text), owners, places, pairs),
        execute(kernel(text), [owners, places, pairs], "emulate"),
    )
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(np.asarray(other), np.asarray(one))


def test_default_computes_elements_in_parallel() -> None:
    text = (
        "fun((o: 7.Idx[12], p: 12.Idx[7], xs: 12.f32, c: Idx[13]) =>"
        f" xs |> map({ADD}) |> prefix(c) |> scatterBy(o)(p))"
    )
    assert "blockIdx" in generate(lowered(text), "f").source


def test_without_the_owner_a_scatter_by_data_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeded fault: the place alone does not tell threads apart."""

    def forgotten(sizes: Sizes, path: Path, _: int) -> Path:
        index, *rest = path
        return (sizes.element(0, ("snd", index)), *rest)

    monkeypatch.setitem(WRITING, "scatterBy", forgotten)
    with pytest.raises(TranslationError, match="its indices are data"):
        generate(program(ROWS_OF.format(ROWS["threads"])), "f")


def test_an_owner_of_another_place_is_no_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeded fault: owners[0] is asked, wherever the element is put."""

    def wrong(sizes: Sizes, path: Path, _: int) -> Path:
        index, *rest = path
        place = sizes.element(0, ("snd", index))
        sizes.same(index_of(index), sizes.element(0, ("fst", sizes.element(0, ("snd", index_of(index) * 0)))))
        return (place, *rest)

    monkeypatch.setitem(WRITING, "scatterBy", wrong)
    with pytest.raises(TranslationError, match="its indices are data"):
        generate(program(ROWS_OF.format(ROWS["threads"])), "f")
