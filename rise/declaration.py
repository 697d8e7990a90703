"""What a primitive is: name, scheme in RISE notation, a line of meaning, and its denotation.

A declaration is the only thing the checker, the printer and the interpreter know of a primitive; its
translation to imperative code stands in `codegen/lower/primitives/`, in the file of the same name.

A *family* of primitives has parameters of the host, numbers and texts that a program writes and that
no inference finds: `makeArray(3)` takes three values, `makeArray(4)` four. Its declaration computes the
signature from them; a member is a declaration as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rise.errors import ScopeError
from rise.type_classes import TypeClass
from rise.types import Argument, Scheme

Denotation = Callable[..., Any]
# the scheme that a signature writes, with the defaults of its explicit parameters
ReadScheme = Callable[[str, Mapping[str, Argument]], Scheme]
HostValue = int | str


@dataclass(frozen=True)
class HostParameter:
    """A parameter of a family. With a default it may be left out."""

    name: str
    type: type[int] | type[str]
    default: HostValue | None = None


@dataclass(frozen=True, eq=False)
class Declaration:
    """A primitive.

    signature:   its type scheme in RISE notation; of a family, in words
    denotation:  what it means to the interpreter
    read_scheme: the parser of signatures, called when a program first uses the primitive
    infix:       the operator that stands for it
    defaults:    for explicit parameters that a program may leave out
    lowers:      the primitive that this one is a way of executing (`mapSeq` is `map`)
    elementwise: it is for numbers, not for arrays
    operands:    the class that the types of an elementwise one have to be in
    view:        it only rearranges what its arguments give (a map does so if its function does), so it
                 may be repeated at no cost
    group:       the module that declares it
    example:     a closed expression, and its value as `rise.interpret.notation` writes it
    host:        the parameters of a family; `given` has their values in a member
    """

    name: str
    signature: str
    meaning: str
    denotation: Denotation
    read_scheme: ReadScheme
    infix: str | None = None
    defaults: tuple[tuple[str, Argument], ...] = ()
    lowers: str | None = None
    elementwise: bool = False
    operands: TypeClass = TypeClass.NUMBER
    view: bool = False
    group: str = ""
    example: tuple[str, str] = ("", "")
    host: tuple[HostParameter, ...] = ()
    given: tuple[HostValue, ...] = ()
    member_signature: Callable[..., str] | None = None
    members: dict[tuple[HostValue, ...], Declaration] = field(default_factory=dict, repr=False)

    @property
    def is_family(self) -> bool:
        return bool(self.host) and not self.given

    @property
    def written(self) -> str:
        """The name with the arguments of the host: `makeArray(3)`."""
        values = [v for p, v in zip(self.host, self.given, strict=False) if v != p.default]
        shown = [f'"{value}"' if isinstance(value, str) else str(value) for value in values]
        return f"{self.name}({', '.join(shown)})" if shown else self.name

    @cached_property
    def scheme(self) -> Scheme:
        """Raises R0206 for a family, whose members only have one."""
        if self.is_family:
            raise self.incomplete()
        return self.read_scheme(self.signature, dict(self.defaults))

    def member(self, *given: HostValue) -> Declaration:
        """The one primitive of a family with these arguments: the same object for the same arguments.

        Raises R0204 where there is no such member.
        """
        if given not in self.members:
            if self.member_signature is None:
                raise self.incomplete()
            signature = self.member_signature(*given)
            self.members[given] = replace(self, signature=signature, given=given, member_signature=None)
        return self.members[given]

    def incomplete(self) -> ScopeError:
        """The error that its arguments are missing."""
        needed = [p for p in self.host if p.default is None]
        form = ", ".join(f'"{p.name}"' if p.type is str else p.name for p in needed)
        message = f"`{self.name}` is given a {' and a '.join(_NOUNS[p.type] for p in needed)}: "
        return ScopeError("R0206", f"{message}`{self.name}({form})`", None, f"as in `{self.example[0]}`")


_NOUNS = {int: "number", str: "text"}
