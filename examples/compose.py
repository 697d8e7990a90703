"""A schedule of one's own, composed from rules and combinators, and run on the products of gemm.rise.

python examples/compose.py
"""

from pathlib import Path

from codegen.execute import available_backend, execute
from codegen.pipeline import generate
from rewrites.algorithmic import MAP_FUSION, REDUCE_SEQ_MAP
from rewrites.lowering import MAP_GLOBAL, MAP_SEQ, REDUCE_SEQ
from rewrites.result import Failure
from rise.check.compare import compare, tolerance
from rise.check.program import check_text, load
from rise.check.specialise import inputs_of, specialise
from rise.expr import Expr
from rise.interpret import call, random_inputs
from rise.normal import data_flow
from rise.pretty import show
from strategies.core import Strategy, everywhere, normalize, seq, top_down

# `a >> b` is one after the other, `a | b` is the first that applies
fuse: Strategy = normalize(MAP_FUSION)
to_threads: Strategy = top_down(MAP_GLOBAL.with_sizes(d=0))
sequential: Strategy = everywhere(REDUCE_SEQ) >> normalize(REDUCE_SEQ_MAP) >> everywhere(MAP_SEQ)

one_row_a_thread: Strategy = seq(fuse, to_threads, sequential)


def show_and_run(title: str, program: Expr) -> bool:
    """Derives a kernel, runs it, and compares with what the program means."""
    result = one_row_a_thread(data_flow(program))
    if isinstance(result, Failure):
        print(f"{title}: {result.story()}")
        return False
    print(f"{title}: {', '.join(step.rule for step in result.steps)}\n{show(result.term)}")
    backend = available_backend()
    if backend is None:
        print("there is no C++ compiler and no GPU to run it\n")
        return True
    inputs = random_inputs(inputs_of(program), seed=0, exact=False)
    found = execute(generate(result.term, "composed"), inputs, backend)
    verdict = compare(found, call(program, *inputs), tolerance(program))
    print(f"{backend}: {verdict}\n")
    return verdict.agrees


NORMS = """
def norms(m: Nat, n: Nat)(xs: m.n.f32) =
  xs |> map(row => row |> map(x => x * x) |> reduce(+, 0)) |> map(s => sqrt(s))
"""


def main() -> bool:
    """Two programs, one schedule."""
    norms = check_text(NORMS)["norms"]
    product = load(Path(__file__).parent / "gemm.rise")["matmul"]
    return all(
        [
            show_and_run("norms of rows", specialise(norms, {"m": 64, "n": 40})),
            show_and_run("A * B", specialise(product, {"m": 32, "n": 24, "k": 16})),
        ]
    )


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
