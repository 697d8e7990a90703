"""Wrong variants of the library's rules: what goes wrong, and both sides."""

FOLD = "reduceSeq(Local)(fun(acc, x => f(acc, x)), z)"
DOT = "map(fun((w, x) => w * x)) |> reduce(+, 0)"
OUTER = "ws |> map(fun(a => us |> map(fun(b => a * b))))"

WRONG = (
    (
        "columns of blocks left where they are",
        "xs |> transpose |> split(n)",
        "xs |> map(fun(r => r |> split(n))) |> transpose",
    ),
    (
        "rows joined before they are swapped",
        "xs |> join |> transpose",
        "xs |> transpose |> join |> transpose",
    ),
    ("blocks cut across rows", "xs |> join |> split(n)", "xs |> transpose |> join |> split(n)"),
    (
        "a nest rotated into another",
        "zip(xs)(zip(ys)(zs))",
        "zip(zip(xs)(ys))(zs) |> map(fun(((x, y), z) => (x, (z, y))))",
    ),
    (
        "a scan of blocks that counts its own block",
        "xs |> scan(op, z)",
        "xs |> split(n) |> fun(bs => zip(bs |> map(fun(b => b |> reduce(op, z))) |> scan(op, z))(bs))"
        " |> map(fun((s, b) => b |> scan(op, z) |> map(fun(x => op(s, x))))) |> join",
    ),
    (
        "a loop over blocks that starts anew in each",
        "xs |> scanSeq(fun(x, acc => f(x, acc)), z)",
        "xs |> split(n) |> map(fun(b => b |> scanSeq(fun(x, acc => f(x, acc)), z))) |> join",
    ),
    ("a scan with its operands swapped", "xs |> scan(op, z)", "xs |> scanSeq(fun(x, acc => op(x, acc)), z)"),
    (
        "inner folds from the start",
        f"xs |> {FOLD}",
        "xs |> split(n)"
        " |> reduceSeq(Local)(fun(acc, b => b |> reduceSeq(Local)(fun(a, x => f(a, x)), z)), z)",
    ),
    (
        "a first step that is done twice",
        f"xs |> {FOLD}",
        "xs |> reduceSeq(Local)(fun(acc, x => f(acc, x)), f(z, idx(0)(xs)))",
    ),
    (
        "padding with one constant for two",
        "xs |> padCst(l, r)(y) |> padCst(m, n)(z)",
        "xs |> padCst(l + m, r + n)(z)",
    ),
    (
        "a constant that is not mapped",
        "xs |> padCst(l, r)(neg(z)) |> map(fun(x => neg(x)))",
        "xs |> map(fun(x => neg(x))) |> padCst(l, r)(neg(z))",
    ),
    ("the head dropped for the tail", "xs |> map(f)", "xs |> padEmpty(p) |> map(f) |> drop(p)"),
    (
        "an order in place of its inverse",
        "xs |> reorder(n, f, g) |> reorder(n, g, f) |> map(h)",
        "xs |> reorder(n, f, g) |> map(h) |> reorder(n, f, g)",
    ),
    (
        "an inverse for the order",
        "xs |> reorder(n, f, g)",
        "xs |> gather(generate(fun(i => i)) |> reorder(n, g, f))",
    ),
    (
        "choices not brought into order",
        "generate(fun(i => select(c(i))(xs |> map(f))(xs |> map(g))))",
        "xs |> map(fun(x => generate(fun(i => select(c(i))(f(x))(g(x))))))",
    ),
    (
        "an initial value in every lane",
        "xs |> reduceSeq(Local)(fun(acc, x => acc + x), z)",
        "xs |> asVector(n) |> reduceSeq(Local)(fun(acc, v => acc + v), vectorFromScalar(z))"
        " |> fun(s => generate(fun((i: Idx[1]) => s)) |> asScalar |> reduce(+, 0))",
    ),
    (
        "weights of rows for columns",
        f"zip({OUTER} |> join)(xs |> join) |> {DOT}",
        f"zip(us)(xs |> map(fun(r => zip(ws)(r) |> {DOT}))) |> {DOT}",
    ),
    ("a row for a column", "idx(i)(xs |> transpose)", "idx(i)(xs)"),
    (
        "elements dealt and not collected",
        "xs |> map(f)",
        "xs |> split(n) |> transpose |> map(fun(c => c |> map(f))) |> join",
    ),
    (
        "scans lifted and not turned back",
        "xs |> map(fun(r => r |> scanSeq(fun(x, acc => f(x, acc)), z)))",
        "xs |> transpose |> scanSeq(fun(c, accs => zip(c)(accs) |> map(fun((x, acc) => f(x, acc)))),"
        " generate(fun(i => z)))",
    ),
    (
        "branches of the second component swapped",
        "select(c)((x, y))((u, v))",
        "(select(c)(x)(u), select(c)(v)(y))",
    ),
    (
        "vectors of every n-th element",
        "xs |> map(f) |> asVector(n)",
        "xs |> split(m) |> transpose |> join |> asVector(n) |> map(fun(v => mapVec(f)(v)))",
    ),
    (
        "windows swapped with their elements",
        "xs |> map(fun(r => r |> slide(n, m))) |> slide(k, l)",
        "xs |> slide(k, l) |> map(fun(w => w |> transpose |> map(fun(r => r |> slide(n, m)))))",
    ),
    ("windows taken from the end", "xs |> slide(n, m) |> take(t + 1)", "xs |> drop(d) |> slide(n, m)"),
    ("a part of a fold forgotten", f"concat(xs)(ys) |> {FOLD}", f"ys |> {FOLD}"),
    (
        "a lane's number for all",
        "asScalar(xs) |> asVector(n)",
        "xs |> asScalar |> split(m) |> transpose |> join |> asVector(n)",
    ),
    ("the second for the first of equals", "(xs |> map(f), xs |> map(g))", "(xs |> map(f), xs |> map(f))"),
)
