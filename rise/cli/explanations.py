"""What each error code means and what helps: the table behind `rise explain`."""

from __future__ import annotations

from collections.abc import Mapping

# codes in the order of the stages: 00 files and calls, 01 syntax, 02 names and kinds, 03 types,
# 04 sizes, 05 evaluation, 06 rewriting, 07 translation, 08 compilation and launch, 09 emulation
EXPLANATIONS: Mapping[str, str] = {
    "R0001": "A file cannot be read: it does not exist, is a directory, or is not readable.",
    "R0002": "A program file is not UTF-8 text.",
    "R0003": "The command line has an unknown command or option, or an option a value it does not take.",
    "R0004": "An output file cannot be written.",
    "R0005": "`--size` and `--set` take NAME=VALUE, each name once: `--size m=128 n=64`.",
    "R0006": "Inputs, results or temporaries do not fit into memory. Choose smaller sizes.",
    "R0007": "The file of `--inputs` is not an npz file of plain arrays. `numpy.savez` writes one.",
    "R0008": "An array of `--inputs` has a name that is not a parameter of the program. The two parts of a "
    "pair `p` are called `p_0` and `p_1`.",
    "R0009": "A cubin is binary. Write it to a file with `-o`.",
    "R0010": "`--strategy` names no strategy, or `--load` no module. `rise strategies` lists strategies.",
    "R0011": "`--set` names a parameter that the strategy does not have. `rise strategies` lists them.",
    "R0012": "`--set` gives a parameter a value of another type. Tuples are written `128,128,64`.",
    "R0013": "A kernel runs on the backend `cuda` or `emulate`.",
    "R0014": "Expressions are nested too deeply, by some hundreds of levels. Define parts of the program "
    "under names of their own.",
    "R0015": "A program is read from a regular file, or from the standard input as `/dev/stdin`, of at most "
    "16 MiB.",
    "R0016": "An import leads out of the folder of the program that was named. It may lead to that folder "
    "and below, to the library, and to the folders that `--import-path DIR` names.",
    "R0017": "`--target` names no GPU architecture. The message lists them.",
    "R0018": "The program calls C functions, which have all permissions of the user, and it is not below the "
    "working directory. Read it, and run it with `--allow-foreign`; or run it where it is.",
    "R0019": "The program calls C functions, which `--no-foreign` forbids. `--backend interpret` "
    "runs such programs by the denotations of their functions, without C.",
    "R0020": "`--check=field` is for programs of sums and products of their inputs, which are polynomials. "
    "Other operations, such as a maximum or a division, are compared by `--check`.",
    "R0021": "`--check=field` needs whole numbers that nothing on the way to the result rounds. Here sums "
    "are too long, or products too many, for the types that hold them. Smaller sizes leave room for larger "
    "numbers.",
    "R0022": "`codegen.compile` takes a definition, a strategy that has been called with its parameters, a "
    "mapping of sizes and, for spills, `refuse` or `allow`.",
    "R0031": "The cost model has no figures of a GPU for this target.",
    "R0032": "The search space has no parameters of this strategy. `rise tune` searches those of "
    "`tensor_core`, and of strategies that declare which values are tried (`rise strategies NAME`).",
    "R0033": "A line of a file of remembered parameters is damaged, or of another version. Each line is an "
    "object of JSON, written by `rise tune`.",
    "R0034": "The cost model ranks products of matrices whose sizes are numbers, of elements that the tensor "
    "cores of the target multiply, and this program is none.",
    "R0035": "No candidate became a correct kernel: the reasons are listed with their parameters.",
    "R0040": "A name cannot be changed as an editor asked: nothing that a program names stands there, the "
    "new name is none, or it would mean something else at some place.",
    "R0041": "The command needs a package that is not installed. The hint names the extra that brings it.",
    "R0050": "Python finds another project's package under the name of one of ours: `rewrites`, "
    "`strategies`, `codegen` or `bench`. Install rise-lang into an environment of its own.",
    "R0060": "The file of `--profile` is not a profile of kernels. docs/viewer.md shows one.",
    "R0061": "The command works on one definition of a program, whose name stands behind the file; the "
    "message lists those that the file has. `rise view` and `rise explain-line` also take what another "
    "command wrote: a saved derivation, a CUDA text with its lines.",
    "R0062": "The file that says where the lines of a CUDA text come from is missing, damaged, or of another "
    "text. `rise compile … -o F.cu --lines` writes it.",
    "R0063": "An editor asked for a part of the panel in a form that the compiler does not know. The "
    "extension and the compiler are probably of different versions.",
    "R0101": "The text is not a program: something else is expected where the caret stands.",
    "R0102": "The text ends, or a bracket closes, before the construct is complete.",
    "R0103": "A character that no program contains.",
    "R0104": "A bracket or a comment is opened and not closed.",
    "R0105": "A number is longer than any that means something: none may have more than 400 characters.",
    "R0199": "An internal error of the formatter, which has written nothing. Please report it.",
    "R0150": "Python asks whether a value of a program is true, by `if`, `and` or `a < b < c`. `select` "
    "chooses between values; `&`, `or_` and `~` connect truth values.",
    "R0151": "Python goes through a value of a program, or asks for its length. `map`, `reduce`, `scan` go "
    "through arrays; `a, b = pair` takes a pair apart.",
    "R0152": "A Python object that means nothing in a program: a NumPy array, a list, None, a slice.",
    "R0153": "A Python function that is to be part of a program returns nothing.",
    "R0154": "A parameter is used outside of the Python function that it belongs to.",
    "R0155": "An operator of Python that means something else in programs: `|` applies, `//` is for sizes.",
    "R0156": "A Python function cannot be part of a program: it has no fixed list of parameters, or is one "
    "of Python's own.",
    "R0157": "A definition in Python is stated wrongly: its name, the annotation of a parameter, its sizes.",
    "R0158": "A value of a program has no such attribute; it has `fst` and `snd`.",
    "R0159": "Python or NumPy needs the number that a value of a program will be. Casts are `f32(x)`.",
    "R0201": "A name that no definition, parameter or primitive has.",
    "R0202": "A type, size or kind that is not known.",
    "R0203": "A value stands where a type or a size is needed, or the other way round.",
    "R0204": "A type is written in another form than it has, `Array[n, t]`, or a foreign function is none of "
    "C: its name, the number of its parameters, a body whose brackets are not balanced.",
    "R0205": "A definition, a list of parameters or a pattern gives two values or two sizes the same name.",
    "R0206": "A primitive or a definition takes a size, a type or a memory, as in `split(32)`, and it is "
    "missing.",
    "R0207": "Two primitives are declared under one name.",
    "R0208": "There is no such kind: kinds are Nat, DataType, AddressSpace, FragmKind, Nat2Nat, Layout.",
    "R0209": "The file has no definition of that name.",
    "R0210": "Files import each other in a circle.",
    "R0211": "A file, or what it imports, defines a name twice.",
    "R0212": "The imported file is neither beside the importing one nor in the library.",
    "R0213": "A definition mentions itself or a later one. Programs have no recursion: `reduce`, `scan` and "
    "`iterate` repeat.",
    "R0214": "A size is divided by zero.",
    "R0301": "Two types have to be equal and are not: what the context expects, and what stands there.",
    "R0302": "A type would have to contain itself, as in `x => x(x)`.",
    "R0303": "Arrays and pairs hold data, not functions.",
    "R0304": "Something that is not a function is applied, or a function is given too many arguments.",
    "R0305": "A number stands where the context needs another type than a number.",
    "R0306": "A number with a fraction stands where an integer or an index is needed.",
    "R0307": "A number is beyond the range of its type.",
    "R0308": "`+`, `<`, `exp` … are for single numbers. `map` applies them to the elements of an array. A "
    "definition that uses them on a type variable asks that the type be one of numbers.",
    "R0309": "A function written in place has more or fewer parameters than its place wants. A list of "
    "parameters in parentheses, `(x, y) => …`, takes a pair apart where one argument is wanted.",
    "R0310": "A pattern `(x, y)` takes a pair apart, and its value is not a pair.",
    "R0311": "The type of something outside of a function depends on a size that only the function knows, as "
    "in `iterate(k)(depFun((l: Nat) => …))`, where elements may not depend on l.",
    "R0401": "A size is not a multiple of what it is divided by: `split(32)` needs 32 | n.",
    "R0402": "Two sizes have to be equal and are not, or not whatever the sizes are that they are made of.",
    "R0403": "The program does not determine a size. Annotate the type, or give the size explicitly.",
    "R0404": "A size would be negative, as that of `drop(5)` on 3 elements, or an index is beyond the end.",
    "R0405": "The sizes that a definition abstracts over must be known in order to run or to compile it: "
    "by `--size m=128`, or by inputs.",
    "R0406": "`--size` names something that is not a size of the definition.",
    "R0407": "A size is a natural number.",
    "R0408": "The definition abstracts over a type or a memory, for which nothing can be given on the "
    "command line. Define a function in which it is fixed.",
    "R0409": "Two inputs have shapes that contradict each other.",
    "R0410": "A size is either a number, `--size`, or open until the kernel is launched, `--runtime`.",
    "R0411": "A size is too large to be computed: a power with too many digits or too large an exponent, "
    "or a product of sums with too many terms. Sizes are at most 2^40 in the end.",
    "R0412": "A program cannot be run because a type in it has too many parts: a pair of pairs of pairs …, "
    "each with itself, doubles with every step.",
    "R0413": "A program cannot be run because it is too large with every definition in place of its name. "
    "Definitions that use each other twice double with every step.",
    "R0501": "An input has another shape than its type says.",
    "R0502": "An input has elements of another type. Nothing is converted silently.",
    "R0503": "An index is outside of its array.",
    "R0504": "A number cannot be converted to the wanted type.",
    "R0505": "A program is given more or fewer inputs than it has parameters.",
    "R0506": "A program is evaluated before its sizes and types are known.",
    "R0507": "An input is not data: a function, a list, or a pair instead of an array.",
    "R0508": "A free identifier has no value.",
    "R0509": "An operation is not defined on a type, as a remainder on floats may be.",
    "R0510": "Two elements are put at one place: an index of `scatter` repeats, or the functions of "
    "`reorder` are no permutation and its inverse.",
    "R0511": "An input of type tf32 has more than its 10 bits of fraction. Nothing is rounded silently: take "
    "the input as f32, and round it where the program says so, `tf32(x)`.",
    "R0516": "Two definitions cannot be compared: they differ in type or in the number of sizes, or no sizes "
    "were found that both of them take. `assert_equivalent` compares them at the sizes that it is given.",
    "R0517": "Proofs need the solver z3, which is not installed: `pip install 'rise-lang[proofs]'`. Listings "
    "and comparisons by tests do without it.",
    "R0601": "The two sides of a rewrite rule differ in type. The rule cannot be declared.",
    "R0602": "The right side of a rule mentions a name that its left side does not bind.",
    "R0603": "A rule is given a parameter that it does not have.",
    "R0604": "A tile of a strategy does not divide the tile around it.",
    "R0605": "The instructions have no fragment of this shape.",
    "R0606": "A strategy does not apply to the program. The message names the rule that came closest, the "
    "reason, and the place in the source.",
    "R0607": "A step of a saved derivation does not apply to the program, which has changed, or the rule "
    "has. The message says at which step, and why; derive the program anew.",
    "R0608": "The file of `--replay` is not a derivation. `rise derive --save` writes one.",
    "R0609": "A parameter of a strategy has a value that it cannot have. `rise strategies` says what it is.",
    "R0610": "Two rules are declared under one name: a derivation could not say which one it means.",
    "R0621": "A schedule needs more threads, registers or shared memory than a block has. The message names "
    "the parameter, and the hint a value that would do.",
    "R0630": "Python code of your own raised an exception: a strategy, a rule or its condition, a primitive "
    "or its translation. The message has the file and the line, and what was raised.",
    "R0631": "A strategy or a rule of your own returns something else than a Success or a Failure, or what "
    "is to be a strategy is none.",
    "R0632": "A rule of your own makes a term of another type than the one that it is applied to.",
    "R0640": "A sketch of `rise search` cannot be read, or it names a size that the program does not have. "
    "docs/guided-search.md says what sketches are.",
    "R0641": "A guided search is given no rules, or a set of rules that does not exist.",
    "R0699": "An internal error: a rule made a term that is not well typed. Please report it.",
    "R0701": "A low-level program must say how each result is written: by a loop (`mapSeq`) or in parallel.",
    "R0702": "A result that is read later must be stored: `toMem(Local)`, `toMem(Shared)`.",
    "R0703": "Nothing is allocated implicitly: a map that computes, and whose result is read later, needs "
    "`toMem`.",
    "R0704": "The primitive has no translation: lower it by a rule first (`map` to `mapSeq`).",
    "R0705": "Registers are private: only the workers that wrote a value in Local memory can use it.",
    "R0706": "A fragment belongs to a whole warp: use it inside `mapWarp` and outside `mapLane`.",
    "R0707": "A write race: two parallel workers write the same location.",
    "R0710": "A fragment is loaded from memory. Store a computed tile first.",
    "R0711": "A fragment is loaded from a tile with contiguous rows or columns. If its layout is "
    "unspecified, as for WMMA, it must be stored to a tile that is entirely inside its array.",
    "R0713": "The sizes of arrays in shared memory and registers, and the shapes of fragments, must be known "
    "when the kernel is compiled: give them with `--size`. Only arrays in global memory may have run-time "
    "sizes.",
    "R0714": "A block has at most 1024 threads. Choose fewer warps or threads, with larger tiles for each.",
    "R0715": "Values of this type, such as functions, cannot be stored.",
    "R0716": "The block needs more shared memory than there is. Choose smaller tiles.",
    "R0717": "Shared memory is allocated per block, outside the maps over threads.",
    "R0718": "Warps would have to synchronise inside a map over warps. End that map first.",
    "R0719": "Levels nest in one order: block, warp, lane; or block, thread. Grids and blocks have three "
    "dimensions, `mapBlock(0)` to `mapBlock(2)`.",
    "R0720": "The step of a reduction updates its accumulator in place, so it may read only the element that "
    "it writes.",
    "R0721": "A fragment is loaded from tiles of different layouts.",
    "R0722": "Inputs of kernels are data, not functions.",
    "R0723": "The result of a kernel is data; if it is a function, an input is missing.",
    "R0724": "A vector access, or an asynchronous copy, moves 4, 8 or 16 adjacent bytes at an aligned "
    "address. Choose width and layout so that rows are multiples of the width.",
    "R0725": "The load of `reducePipelined` must be a function literal that says what is copied into Shared "
    "memory, such as `x => copyAsync(x)`.",
    "R0726": "An intermediate result that is too large for each thread to keep must be computed by the whole "
    "grid before any of it is read, in a kernel of its own. `toMem(Global)` outside all maps and folds makes "
    "one; inside them each iteration would need its own kernel.",
    "R0727": "Registers and shared memory end with a kernel: store what two kernels use in global memory, "
    "`toMem(Global)`.",
    "R0728": "A size inside the program, such as that of an `iterate`, must be a natural number for all "
    "values of its variables, and this could not be proved.",
    "R0730": "Swizzled memory permutes 16-byte chunks within rows of 32, 64 or 128 bytes. The rows of an "
    "array must be multiples of that, and WMMA cannot read it, because it needs a leading dimension.",
    "R0731": "A bulk copy moves a box: a part of an array in global memory whose rows are contiguous in the "
    "array and start at multiples of 16 bytes, in a pipeline with at least 2 stages. Zeros may only be "
    "behind the end of the array. Threads must copy a tile that is computed or has another layout.",
    "R0732": "A wgmma multiplies tiles in shared memory whose rows are contiguous along k, 128 bytes long, "
    "and swizzled. Transpose the operand in memory, or use fragments of `mma.sync`.",
    "R0733": "Blocks of a cluster run concurrently and can access each other's shared memory. All blocks of "
    "a kernel are in clusters of one size, at most 8, in dimension 0: mapBlock(0) inside mapCluster(0).",
    "R0734": "A warp-specialised pipeline says how many warpgroups load and how many compute. The latter are "
    "the extent of the kernel's mapWarpGroup, and the same in all pipelines of a kernel.",
    "R0735": "One thread starts a bulk store: one of the block, or of each warpgroup or warp in a map over "
    "them. In a map over threads or lanes every thread would start it. Use `bulkStore` outside these maps.",
    "R0736": "In a warp-specialised pipeline a slot is released only after the products of the next element "
    "have started, so that element needs another slot: with one slot there is a deadlock. Use 2 stages or "
    "more.",
    "R0737": "WMMA moves tiles as a whole: they start at multiples of 32 bytes, with rows that are multiples "
    "of 16 bytes apart. Use wider fragments, or those of `mma.sync`, whose tiles are moved by lanes.",
    "R0738": "Products of a warpgroup work on registers, which have no addresses: a loop over fragments "
    "has to be unrolled. In another loop the compiler lets each product wait for the one before. Use "
    "mapSeqUnroll or reduceSeqUnroll for loops over fragments.",
    "R0739": "The slots of a ring are numbered on from one execution of its pipeline to the next, so all "
    "executions by one block have equally many elements. A fold that skips elements by the number of the "
    "tile belongs into a block of its own for each tile, or into a pipeline by roles.",
    "R0740": "Sizes are so large that an index, or an intermediate result in its computation, exceeds 64 "
    "bits: no memory holds such arrays.",
    "R0741": "Elements of `Idx[n]` are stored in 32 bits, which hold indices below 2^31. Store larger ones "
    "as numbers, i64.",
    "R0742": "Loads and stores of fragments and boxes take the leading dimension, and the corner of a box, "
    "in 32 bits. For longer rows, use a schedule without them.",
    "R0743": "Distributed memory is the shared memory of all blocks of a cluster: an array in it has one "
    "element for each block, which this block writes and all blocks read, in maps over these blocks.",
    "R0744": "`skewed` puts the last products of a step behind the first products of the next one. It is "
    "for a step of reduceRoleSplit that starts products, computes with their results and multiplies these, "
    "whose first and last products have nothing in common, and each its own operand in the ring.",
    "R0745": "The copy engine moves whole chunks of 16 bytes. So a run, adjacent elements that start "
    "anywhere in an array, has the same offset from a 16-byte boundary in shared memory. Its buffer is for "
    "runs of one array with one offset, and instructions that need aligned fragments cannot read it.",
    "R0747": "`inTurn` lets the warpgroups of a block start the products of their steps one after the other: "
    "while one multiplies, another one computes. It is for steps, `inTurn(…)` or `skewed(inTurn(…))`, of a "
    "reduceRoleSplit by two or more warpgroups that compute.",
    "R0799": "An internal error of code generation. Please report it.",
    "R0801": "Emulation compiles the kernel for the host, by the command that the variable CXX names, or "
    "else by g++ or clang++, and it was not found.",
    "R0802": "The C++ compiler rejects the kernel. If this compiler printed the kernel, please report that.",
    "R0803": "An input has elements of another type than the kernel takes; nothing is converted silently.",
    "R0804": "An input has another shape than the kernel is compiled for.",
    "R0805": "An input is not stored row by row. `numpy.ascontiguousarray` makes a copy that is.",
    "R0806": "An input is not what a kernel takes: an array, a number, or a tuple of two of these for pairs.",
    "R0807": "Data of this type cannot be passed to a kernel.",
    "R0808": "A kernel is given more or fewer inputs than it has.",
    "R0809": "Only one of the two arrays of an input of pairs is given.",
    "R0810": "The command called as compiler reports success, but has made no file. Nothing of it is kept. "
    "The variables CXX and CUDA_HOME say which compilers are called.",
    "R0811": "The compiled text of a kernel cannot be loaded, usually because a foreign function is called "
    "and has no body. The emulator lacks functions that only GPUs have.",
    "R0820": "There is no CUDA compiler: install the extra `cuda`, or a CUDA toolkit.",
    "R0821": "The CUDA compiler rejects the kernel. The target may lack an instruction that it uses.",
    "R0822": "There is no GPU that pycuda can use.",
    "R0827": "cuBLAS, which a benchmark compares with, failed.",
    "R0828": "cuBLAS, which a benchmark compares with, is not installed.",
    "R0829": "A kernel of a benchmark left parts of its result unwritten.",
    "R0830": "A kernel of a benchmark computed something else than the library.",
    "R0831": "The driver cannot capture or replay a CUDA graph, with which a benchmark times small kernels.",
    "R0832": "The compiler spills registers to memory, which is slow. Give each thread less work, by smaller "
    "tiles or more threads, or allow spills: `spills='allow'`, `--spills allow`.",
    "R0833": "The CUDA driver refuses a call; the message has the driver's name for the reason.",
    "R0834": "An array is not in the memory that the kernel uses: it is on the host, on another GPU, or on a "
    "GPU while the kernel runs in the emulator. Nothing is copied silently.",
    "R0835": "The kernel moves several elements at once, so the address of the array must be a multiple of "
    "their bytes.",
    "R0836": "A result overlaps an input, or another result. Kernels read and write in an unspecified order, "
    "so all results need memory of their own.",
    "R0837": "An array must not be used as it is: it is read-only and would be written, has a mask, requires "
    "a gradient, or contradicts the protocol by which it is passed.",
    "R0838": "The result is an array of the inputs' library, which cannot allocate new ones. Pass one with "
    "`out=`.",
    "R0839": "The CUDA text of `--cuda` is not a kernel of the program: its entry point or its parameters "
    "differ.",
    "R0840": "A kernel for run-time sizes computes indices in int, or in long long if necessary, and all "
    "intermediate results must be in range. For a larger size, compile the kernel for this size.",
    "R0841": "A grid has at most 2^31 - 1 blocks in x, and 65535 in y and in z. If sizes are known, a kernel "
    "that needs more is refused when it is compiled.",
    "R0842": "A NumPy number or array for a parameter of type tf32 has more than its 10 bits of fraction. "
    "Nothing is rounded silently: take it as f32, and round it in the program, `tf32(x)`.",
    "R0843": "An input of type Idx[n], or an element of it, is not in the range 0 to n - 1. This is checked "
    "for NumPy numbers and arrays, but not for arrays in the memory of a GPU.",
    "R0851": "The wgmmas do not overlap: something accesses their accumulators between start and wait, or "
    "there are too few registers. That is slow; the compiler's remark says where.",
    "R0852": "Producer warps do not release registers to the consumers, because the compiler does not know "
    "how many there are: the kernel may hang. The launch bounds must give the number of threads.",
    "R0860": "`rise bench` names no table. Without a name it lists them; a file's name ends in `.toml`.",
    "R0861": "A table of benchmarks is illegal: an unknown key, operation or baseline, ill-formed sizes or "
    "settings, or an input without a value.",
    "R0862": "`--case` or `--only` of `rise bench` names something that the table does not have.",
    "R0863": "cublasLt proposes no algorithm for a product, for example for misaligned rows.",
    "R0864": "The folder has results of another version of the benchmark. Choose another one: `--out`.",
    "R0865": "A kernel of a benchmark does not terminate: it is deadlocked, or very slow.",
    "R0866": "The separate kernels that a benchmark compares with need rows of whole vectors.",
    "R0867": "Plots are drawn by matplotlib: install the extra `plot`.",
    "R0868": "`--cluster` hands work out by Dask's `distributed`: install the extra `cluster`.",
    "R0869": "No Dask scheduler answers at the address of `--cluster`, or it stopped answering. Rerun the "
    "command to resume: what was measured before is kept.",
    "R0880": "A tensor map, by which bulk copies address an array on a GPU, has up to five dimensions, and "
    "strides that are multiples of 16 bytes.",
    "R0881": "The box of a tensor map has at most 256 elements in each dimension, rows of a multiple of 16 "
    "bytes, and with a swizzle rows of exactly its width.",
    "R0882": "The layout of an array differs from its tensor map.",
    "R0883": "The driver refuses to encode a tensor map.",
    "R0884": "Tensor cores of Hopper GPUs have no wgmma of this shape, these types or this layout.",
    "R0901": "In the emulator: an argument does not fit its parameter, or overlaps another one.",
    "R0902": "In the emulator: a read out of bounds.",
    "R0903": "In the emulator: a write out of bounds, or any use out of bounds of a local array.",
    "R0904": "In the emulator: a read of uninitialised global or shared memory.",
    "R0905": "In the emulator: a read of a local array's element that the thread has not written.",
    "R0906": "In the emulator: a use of a fragment that a lane has not written.",
    "R0907": "In the emulator: a race between threads of one block. A barrier is missing.",
    "R0908": "In the emulator: a race between blocks.",
    "R0909": "In the emulator: a barrier that only some threads of the block reach.",
    "R0910": "In the emulator: a warp collective that only some lanes reach, or with different operands.",
    "R0911": "In the emulator: a leading dimension that tile loads and stores do not support.",
    "R0912": "In the emulator: a misaligned tile or array.",
    "R0913": "In the emulator: a thread that does not terminate. Its loops take many times the steps of the "
    "program's loops, or a function that it calls has an endless loop. RISE_EMULATION_STEPS=n allows n.",
    "R0914": "In the emulator: a grid, a block or shared memory beyond the limits of GPUs.",
    "R0915": "In the emulator: undefined arithmetic, such as signed overflow or division by zero.",
    "R0916": "In the emulator: a use of the target of an asynchronous copy that its thread has not waited "
    "for.",
    "R0917": "In the emulator: a deadlock. Threads wait for each other, or for bytes that never arrive.",
    "R0918": "In the emulator: a use of registers that a pending wgmma uses.",
    "R0919": "In the emulator: a write to shared memory that a pending wgmma or bulk store reads.",
    "R0920": "In the emulator: a missing proxy fence between accesses of threads and of asynchronous units.",
    "R0921": "In the emulator: an illegal use of an mbarrier, such as more arrivals than its count.",
    "R0922": "In the emulator: an operand that does not fit, such as a descriptor with another swizzle.",
    "R0923": "In the emulator: setmaxnreg in the wrong direction.",
    "R0924": "In the emulator: a block that may exit while a copy, or another block, uses its shared memory.",
    "R0925": "In the emulator: a kernel that overlaps with the previous one in the stream uses global memory "
    "before it has waited for that one.",
    "R0926": "In the emulator: an arrival, a wait or a copy's bytes at an mbarrier, or a thread at a named "
    "barrier, that could count for another phase under another thread order.",
    "R0927": "In the emulator: a block that exits in the middle of an mbarrier's phase, because a count of "
    "arrivals or bytes is wrong.",
}
