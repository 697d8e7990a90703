"""Which elements of a tile each lane of a warp holds, as data that printer, emulator and schedules share.

The layout of WMMA fragments is unspecified. The PTX manual specifies those of `mma.sync` (warp-level matrix
fragments); a fragment of several such tiles holds their registers tile by tile. Volta's are the macro-MMAs of
paper 000, composed of m8n8k4 instructions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from codegen.ir.buffers import dimensions, inner_element
from codegen.ir.sizes import nat_text
from rise.errors import TranslationError
from rise.instructions import Family, Shape, family, takes
from rise.nat import Atom, Facts, Nat, NatVariable, constant, quotient, remainder, simplify, variable
from rise.types import Data, Fragment, FragmentKind, Scalar

LANES = 32
LANE, REGISTER = variable("lane"), variable("r")
# the extents of the whole fragment in tiles of 16×8
ROWS, COLUMNS = variable("m"), variable("n")


@dataclass(frozen=True)
class Distribution:
    """Register r of a lane holds the element at (row, column).

    registers: the number of registers per lane
    row, column: in terms of `lane` and `r`
    run:       each aligned group of this many registers holds adjacent elements…
    along_row: … of a row; otherwise of a column
    """

    registers: Nat
    row: Nat
    column: Nat
    run: int
    along_row: bool

    def at(self, lane: Nat, register: Nat) -> tuple[Nat, Nat]:
        places = {NatVariable("lane"): lane, NatVariable("r"): register}
        return self.row.substitute(places), self.column.substitute(places)

    def for_shape(self, rows: int, columns: int, holders: int = LANES) -> Distribution:
        """The distribution of a fragment of rows × columns tiles over `holders` threads."""
        sizes = {NatVariable("m"): constant(rows), NatVariable("n"): constant(columns)}
        registers = self.registers.substitute(sizes)
        facts = Facts().with_range("lane", 0, holders).with_range("r", 0, registers)

        def known(value: Nat) -> Nat:
            return simplify(value.substitute(sizes), facts)

        return Distribution(registers, known(self.row), known(self.column), self.run, self.along_row)


def _div(value: Nat, by: int) -> Nat:
    return quotient(value, constant(by))


def _mod(value: Nat, by: int) -> Nat:
    return remainder(value, constant(by))


def _operand(run: int, depth: int, first: bool) -> Distribution:
    """A (first) or B for elements of 32 / run bits: k varies along the run, tiles along m or n.

    A lane has `run` adjacent elements of k in each half of the depth, and for A in each half of the 16 rows.
    """
    halves, within = (2 if first else 1), run * (2 if first else 1)
    half = 4 * run  # elements of k that the lanes of a row hold together
    registers = within * (depth // half)
    across = _div(LANE, 4) + 8 * halves * _div(REGISTER, registers)
    if first:
        across += 8 * _mod(_div(REGISTER, run), 2)
    along = run * _mod(LANE, 4) + _mod(REGISTER, run)
    if depth > half:
        along += half * _mod(_div(REGISTER, within), 2)
    if first:
        return Distribution(registers * ROWS, across, along, run, along_row=True)
    return Distribution(registers * COLUMNS, along, across, run, along_row=False)


def _accumulator() -> Distribution:
    tile = _div(REGISTER, 4)
    row = 16 * quotient(tile, COLUMNS) + 8 * _mod(_div(REGISTER, 2), 2) + _div(LANE, 4)
    column = 8 * remainder(tile, COLUMNS) + 2 * _mod(LANE, 4) + _mod(REGISTER, 2)
    return Distribution(4 * ROWS * COLUMNS, row, column, 2, along_row=True)


@dataclass(frozen=True)
class Key:
    """What determines a distribution; 0 and None match everything.

    size: bytes of an element; row_major: the layout of an operand in memory (Volta has instructions for each)
    """

    family: Family
    kind: FragmentKind
    size: int = 0
    k: int = 0
    row_major: bool | None = None


# --- Volta ------------------------------------------------------------------------------------------------
# Lanes 4q … 4q+3 and 16+4q … 16+4q+3 are quad-pair q, which computes quarter (q % 2, q / 2) of a 16×16 tile.
# The two quad-pairs that need an element of an operand both hold it.

UPPER_HALF = 4 * _div(LANE, 16)
OF_A, OF_B = 8 * _mod(_div(LANE, 4), 2), 8 * _mod(_div(LANE, 8), 2)


def _volta_operand(first: bool, row_major: bool) -> Distribution:
    """A (first) or B for k = 8, in two instructions; registers hold elements that are adjacent in memory."""
    block = 16 * _div(REGISTER, 8) + (OF_A if first else OF_B) + UPPER_HALF
    if first == row_major:
        across, along = block + _mod(LANE, 4), _mod(REGISTER, 8)
        run = 8
    else:
        across, along = block + _mod(REGISTER, 4), _mod(LANE, 4) + 4 * _mod(_div(REGISTER, 4), 2)
        run = 4
    if first:
        return Distribution(8 * ROWS, across, along, run, along_row=row_major)
    return Distribution(8 * COLUMNS, along, across, run, along_row=row_major)


def _volta_accumulator(size: int) -> Distribution:
    tile = _div(REGISTER, 8)
    row = 16 * quotient(tile, COLUMNS) + OF_A + UPPER_HALF
    column = 16 * remainder(tile, COLUMNS) + OF_B
    if size == 2:
        row, column, run = row + _mod(LANE, 4), column + _mod(REGISTER, 8), 8
    else:
        row += _mod(LANE, 2) + 2 * _mod(_div(REGISTER, 2), 2)
        column += 4 * _mod(_div(REGISTER, 4), 2) + 2 * _mod(_div(LANE, 2), 2) + _mod(REGISTER, 2)
        run = 2
    return Distribution(8 * ROWS * COLUMNS, row, column, run, along_row=True)


def _group_accumulator() -> Distribution:
    """Each warp has 16 of the warpgroup's 64 rows; `lane` is one of the 128 threads."""
    row = 16 * _div(LANE, 32) + 8 * _mod(_div(REGISTER, 2), 2) + _div(_mod(LANE, 32), 4)
    column = 8 * _div(REGISTER, 4) + 2 * _mod(LANE, 4) + _mod(REGISTER, 2)
    return Distribution(4 * COLUMNS, row, column, 2, along_row=True)


def _group_operand(run: int, depth: int) -> Distribution:
    """A in registers: each warp has 16 rows, like A of `mma.sync`; `lane` is one of the 128 threads."""
    places = _operand(run, depth, first=True)
    lane: dict[Atom, Nat] = {NatVariable("lane"): _mod(LANE, LANES)}
    row = places.row.substitute(lane) + 16 * _div(LANE, LANES)
    return replace(places, row=row, column=places.column.substitute(lane))


def _column(tiles: Nat, holder: Nat) -> Distribution:
    """One element for each row of an accumulator that a thread holds, two of each 16."""
    row = 16 * holder + 16 * _div(REGISTER, 2) + 8 * _mod(REGISTER, 2) + _div(_mod(LANE, LANES), 4)
    return Distribution(2 * tiles, row, constant(0), 1, along_row=False)


TABLE: dict[Key, Distribution] = {
    **{
        Key(Family.MMA, kind, size, k): _operand(4 // size, k, kind is FragmentKind.A)
        for kind in (FragmentKind.A, FragmentKind.B)
        for size, k in ((2, 8), (2, 16), (1, 32), (4, 8))
    },
    Key(Family.MMA, FragmentKind.ACCUMULATOR): _accumulator(),
    Key(Family.MMA, FragmentKind.COLUMN): _column(ROWS, constant(0)),
    Key(Family.WGMMA, FragmentKind.ACCUMULATOR): _group_accumulator(),
    Key(Family.WGMMA, FragmentKind.COLUMN): _column(constant(1), _div(LANE, LANES)),
    **{
        Key(Family.WGMMA, FragmentKind.A, size, k): _group_operand(4 // size, k)
        for size, k in ((2, 16), (1, 32), (4, 8))
    },
    **{
        Key(Family.VOLTA, kind, 2, 8, row_major): _volta_operand(kind is FragmentKind.A, row_major)
        for kind in (FragmentKind.A, FragmentKind.B)
        for row_major in (True, False)
    },
    **{Key(Family.VOLTA, FragmentKind.ACCUMULATOR, size): _volta_accumulator(size) for size in (2, 4)},
}
# the tile to which the registers of one instruction belong: rows and columns
TILES = {Family.MMA: (16, 8), Family.VOLTA: (16, 16), Family.WGMMA: (64, 8)}
# the number of threads that hold a fragment together
HOLDERS = {Family.WGMMA: 128}
# a width of accumulators that only families with a known layout have: columns stand beside any of theirs
BESIDE_COLUMNS = 24
# the lanes that hold a row are those whose numbers differ in these bits only
SAME_ROW = (1, 2)
# … in these families; Volta's quad-pairs, and lanes of which nothing is specified, hold rows otherwise
ROWS_BY_QUADS = frozenset({Family.MMA, Family.WGMMA})


def shape_of(fragment: Fragment) -> tuple[Nat, Nat, Nat]:
    """The shape (m, n, k) of the product to which a fragment belongs."""
    match fragment.kind:
        case FragmentKind.A:
            return fragment.rows, fragment.other, fragment.columns
        case FragmentKind.B:
            return fragment.other, fragment.columns, fragment.rows
        case FragmentKind.COLUMN:
            return fragment.rows, constant(BESIDE_COLUMNS), fragment.other
        case _:
            return fragment.rows, fragment.columns, fragment.other


def known_shape(fragment: Fragment) -> Shape:
    m, n, k = (size.value for size in shape_of(fragment))
    if m is None or n is None or k is None:
        raise TranslationError("R0713", f"the shape of `{fragment}` is not known at compile time")
    return m, n, k


def family_of(fragment: Fragment) -> Family | None:
    return family(known_shape(fragment))


@lru_cache(maxsize=1 << 10)
def distribution(fragment: Fragment, row_major: bool = True) -> Distribution | None:
    """How a fragment is distributed over lanes, for operands of that layout; None if unspecified."""
    shape = known_shape(fragment)
    found = family(shape)
    if found is None or found is Family.WMMA:
        return None
    size = fragment.element.bytes if isinstance(fragment.element, Scalar) else 0
    kind, (m, n, k) = fragment.kind, shape
    if kind in (FragmentKind.A, FragmentKind.B) and not takes(shape, str(fragment.element)):
        raise TranslationError("R0715", f"the hardware does not have the fragment `{fragment}`")
    for key, general in TABLE.items():
        sizes = key.size in (0, size) and key.k in (0, k)
        if key.family is found and key.kind is kind and sizes and key.row_major in (None, row_major):
            rows, columns = TILES[found]
            return general.for_shape(m // rows, n // columns, HOLDERS.get(found, LANES))
    if found is Family.WGMMA:
        return None  # B stays in shared memory
    raise TranslationError("R0715", f"the hardware does not have the fragment `{fragment}`")


def registers_of(fragment: Fragment) -> int:
    """The number of elements that a thread holds; 0 if it is not known."""
    places = distribution(fragment)
    return (places.registers.value or 0) if places is not None else 0


def _strips(accumulator: Fragment) -> int:
    """How many strips of rows the registers of an accumulator are, one after the other."""
    found = family_of(accumulator)
    return known_shape(accumulator)[0] // TILES[found][0] if found in TILES else 1


def row_register(accumulator: Fragment, register: Nat) -> Nat:
    """The register of a column that holds the row of an accumulator's register: two for each strip."""
    within, strips = _mod(_div(register, 2), 2), _strips(accumulator)
    if strips == 1:
        return within
    return 2 * quotient(register, constant(4 * (known_shape(accumulator)[1] // 8))) + within


@dataclass(frozen=True)
class Regrouped:
    """Where the registers of an accumulator are in its operands, one after the other, and the reverse.

    Both hold their strips of rows (16 of a warp, 64 of a warpgroup) one after the other; an operand has
    `narrow` registers of a strip, and the accumulator `wide` ones.
    """

    narrow: Nat
    wide: Nat

    def of_accumulator(self, operand: Nat, register: Nat, facts: Facts) -> Nat:
        """The register of the accumulator that is this one of an operand."""
        strip, own = quotient(register, self.narrow, facts), remainder(register, self.narrow, facts)
        return self.wide * strip + self.narrow * operand + own

    def of_operand(self, register: Nat, facts: Facts) -> tuple[Nat, Nat]:
        """The operand, and its register, that is this one of the accumulator."""
        strip, own = quotient(register, self.wide, facts), remainder(register, self.wide, facts)
        return (
            quotient(own, self.narrow, facts),
            self.narrow * strip + remainder(own, self.narrow, facts),
        )


@lru_cache(maxsize=1 << 6)
def regrouped(accumulator: Fragment, operand: Fragment) -> Regrouped | None:
    """The registers of an accumulator as those of operands; None where other threads hold the elements."""
    sums, tile, family = distribution(accumulator), distribution(operand), family_of(accumulator)
    width = operand.columns.value
    if sums is None or tile is None or family is None or not width:
        return None
    strips = _strips(accumulator)
    count, own = sums.registers.value or 0, tile.registers.value or 0
    if not own or own * ((accumulator.columns.value or 0) // width) != count:
        return None
    found = Regrouped(constant(own // strips), constant(count // strips))

    def same(lane: int, register: int) -> bool:
        part, at = found.of_operand(constant(register), Facts())
        row, column = tile.at(constant(lane), at)
        return sums.at(constant(lane), constant(register)) == (row, column + width * part)

    lanes = range(HOLDERS.get(family, LANES))
    return found if all(same(lane, register) for lane in lanes for register in range(count)) else None


def extents(type_: Data) -> tuple[Nat, ...]:
    """The extents of an array, where the registers of a fragment count as one dimension."""
    sizes = dimensions(type_)
    inner = inner_element(type_)
    places = distribution(inner) if isinstance(inner, Fragment) else None
    return sizes if places is None else (*sizes, places.registers)


def emulated() -> str:
    """The distributions in C++ for the emulator. Key: family, kind, bytes, k, layout (row 1, column 2)."""
    return _emulated(tuple(TABLE.items()))


@lru_cache(maxsize=1)
def _emulated(table: tuple[tuple[Key, Distribution], ...]) -> str:
    """Every kernel that is emulated is compiled with this text."""
    lines = ["namespace rise_emulation {", "template <int, int, int, int, int> struct Places;"]
    families, kinds = [Family.MMA, Family.VOLTA], list(FragmentKind)
    for key, one in table:
        if key.family not in families:
            continue
        numbers = (families.index(key.family), kinds.index(key.kind) + 1, key.size, key.k)
        layout = {None: 0, True: 1, False: 2}[key.row_major]
        lines += _struct(", ".join(map(str, (*numbers, layout))), one)
    return "\n".join([*lines, "}", ""])


def _struct(parameters: str, one: Distribution) -> list[str]:
    def function(name: str, parameters: str, value: Nat) -> str:
        return f"  static constexpr int {name}({parameters}) {{ return {nat_text(value)}; }}"

    return [
        f"template <> struct Places<{parameters}> {{",
        function("registers", "int m, int n", one.registers),
        function("row", "int m, int n, int lane, int r", one.row),
        function("column", "int m, int n, int lane, int r", one.column),
        "};",
    ]
