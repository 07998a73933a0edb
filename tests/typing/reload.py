"""What a generation carries along is made by `carry` alone, and a compiler reads through what it is given."""

from collections.abc import Sequence
from pathlib import Path

from zcpolicy import Program, Resolver
from zcpolicy.reload.carried import Carried, carry
from zcpolicy.reload.generations import Generations
from zcpolicy.reload.sources import PolicySource


def made(resolver: Resolver) -> int:
    Carried()  # error: Too few arguments for "Carried" || Expected 1 more positional argument
    return carry(resolver).generation


def altered(carried: Carried) -> None:
    carried.generation = 7  # error: Cannot assign to final attribute "generation" || "generation" is declared as Final


def compiles(layers: Sequence[Path]) -> Program:
    raise OSError


def starts(resolver: Resolver) -> Generations:
    return Generations.start(PolicySource.of_layers(["a"]), compiles, "state", make=lambda _p, _n, _f: resolver)  # error: incompatible type "Callable[[Sequence[Path]], Program]" || Function accepts too few positional parameters; expected 2 but received 1


async def went_well(generations: Generations) -> bool:
    done = await generations.reload()
    return done.is_new  # error: has no attribute "is_new" || Cannot access attribute "is_new" for class "Failure"


