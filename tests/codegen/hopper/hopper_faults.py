"""Faults of kernels for the Hopper machine: what is wrong, and how the emulator has to call it."""

from __future__ import annotations

from tests.codegen.hopper.hopper_kernels import Fault

WAIT_FULL = "barrier_wait(full + s, i / 2 % 2);"
WAIT_EMPTY = "barrier_wait(empty + s, (i / 2 + 1) % 2);"
EXPECT = "barrier_expect(full + s, 16384);"
INIT_EMPTY = "barrier_init(empty + s, 1);"
WAIT_PRODUCT = "wgmma_wait<0>(acc);"
STORE_END = "bulk_wait_read<0>();"
FREE = "if (threadIdx.x % 128 == 0) { barrier_arrive(empty + s); }"
LOAD_A = "bulk_load(a + s * 4096, A, full + s, i * 64, row);"
B_TILE = "shared_descriptor(b + s * 4096, 16, 1024, Swizzle::B128)"
CHUNK = "(j % 4 * 2 + lane / 16) ^ (line % 8)"

# of ring(320, stages=2)
RING = [
    Fault("full is not waited for", WAIT_FULL, ";", "R0916", "bulk copy"),
    Fault(
        "full is waited for in the other phase",
        WAIT_FULL,
        "barrier_wait(full + s, (i / 2 + 1) % 2);",
        "R0916|R0917|R0926",
    ),
    Fault("empty is not waited for", WAIT_EMPTY, ";", "R0907|R0916|R0919|R0921|R0926"),
    Fault(
        "empty is waited for in the other phase",
        WAIT_EMPTY,
        "barrier_wait(empty + s, i / 2 % 2);",
        "R0917",
        r"parity 0 of the mbarrier at byte \d+: 0 phases ended, 0 of 1 arrivals",
    ),
    Fault(
        "more bytes are expected than come",
        EXPECT,
        "barrier_expect(full + s, 16384 + 4096);",
        "R0917",
        "1 of 1 arrivals, 4096 bytes missing",
    ),
    Fault(
        "fewer bytes are expected than come",
        EXPECT,
        "barrier_expect(full + s, 16384 - 16);",
        "R0921",
        "more than",
    ),
    Fault(
        "a box does not start at a multiple of 16 bytes",
        LOAD_A,
        "bulk_load(a + s * 4096, A, full + s, i * 64 + 4, row);",
        "R0922",
        "not a multiple of 16",
    ),
    Fault(
        "bytes of one copy only are expected", EXPECT, "barrier_expect(full + s, 8192);", "R0916|R0921|R0926"
    ),
    Fault(
        "more arrivals than there are", INIT_EMPTY, "barrier_init(empty + s, 2);", "R0917", "1 of 2 arrivals"
    ),
    Fault(
        "each warp frees",
        FREE,
        "if (threadIdx.x % 32 == 0) barrier_arrive(empty + s);",
        "R0907|R0916|R0919|R0921|R0926",
    ),
    Fault(
        "a warpgroup frees twice",
        FREE,
        FREE.replace("barrier_arrive(empty + s);", "barrier_arrive(empty + s); barrier_arrive(empty + s);"),
        "R0921|R0926",
    ),
    Fault("barriers are not fenced", "fence_barrier_init();", ";", "R0920", "fence_barrier_init is missing"),
    Fault(
        "barriers are not handed over",
        "__syncthreads();",
        ";",
        "R0921",
        "nothing orders it after|no initialised",
    ),
    Fault(
        "accumulators are written after the fence",
        "wgmma_fence();",
        "acc[0] = 0.0f;",
        "R0920",
        "wgmma_fence is missing",
    ),
    Fault("products are not waited for", WAIT_PRODUCT, ";", "R0918|R0919"),
    Fault(
        "accumulators are read early",
        WAIT_PRODUCT,
        "if (acc[0] > 0) wgmma_wait<0>(acc);",
        "R0918",
        "reads element 0",
    ),
    Fault("operands are freed early", WAIT_PRODUCT, FREE + " wgmma_wait<0>(acc);", "R0907|R0919|R0926"),
    Fault("products are not committed", "wgmma_commit();", ";", "R0918|R0919"),
    Fault(
        "stores to shared memory are not fenced",
        "fence_async_shared();",
        ";",
        "R0920",
        "fence_async_shared is missing",
    ),
    Fault(
        "the warpgroup does not meet before the store", "named_barrier(1 + group, 128);", ";", "R0907|R0904"
    ),
    Fault("the store is not waited for", STORE_END, ";", "R0924", "bulk_wait_read"),
    Fault(
        "the box is written while it is stored", STORE_END, "mine[0] = acc[0]; bulk_wait_read<0>();", "R0919"
    ),
    Fault("another stride", B_TILE, B_TILE.replace("1024", "512"), "wrong"),
    Fault(
        "another swizzle", B_TILE, B_TILE.replace("B128", "B64"), "R0922", "swizzle of 64 bytes.*one of 128"
    ),
    Fault("a box that is not aligned", LOAD_A, LOAD_A.replace("4096,", "4096 + 64,"), "R0912"),
    Fault("rows are not swizzled", CHUNK, "j % 4 * 2 + lane / 16", "wrong"),
    Fault(
        "a part of a warpgroup gives registers back",
        "registers_decrease<40>();",
        "if (threadIdx.x < 96) registers_decrease<40>();",
        "R0917|R0910",
    ),
]

CLUSTER_LOAD = (
    "bulk_load_multicast(b + s * 4096 + cluster_rank() * 2048, B, full + s, 3, i * 64, "
    "column + cluster_rank() * 32);"
)
FREE_BOTH = (
    "if (threadIdx.x % 128 == 0) { for (int rank = 0; rank < 2; rank++) "
    "barrier_arrive_remote(empty + (i - 1) % 2, rank); }"
)

# of ring(320, stages=2, consumers=2, cluster=2, deep=True)
CLUSTER = [
    Fault(
        "a block leaves early",
        "// nobody arrives here any more\n  cluster_sync();",
        ";",
        "R0924",
        "cluster_sync is missing",
    ),
    Fault(
        "barriers are handed over in the block only",
        "// all barriers are there\n  cluster_sync();",
        "__syncthreads();",
        "R0921",
    ),
    Fault(
        "only the own block is told",
        FREE_BOTH,
        FREE_BOTH.replace("rank < 2", "rank < 1"),
        "R0917|R0921|R0919|R0907|R0926",
    ),
    Fault(
        "the other block is not sent its part",
        CLUSTER_LOAD,
        CLUSTER_LOAD.replace(" 3,", " 1 << cluster_rank(),"),
        "R0917",
        "bytes missing",
    ),
    Fault(
        "empty after half of the arrivals",
        "barrier_init(empty + s, 4);",
        "barrier_init(empty + s, 2);",
        "R0907|R0916|R0919|R0921|R0926",
    ),
    Fault(
        "registers beyond the pool",
        "registers_increase<240>();",
        "registers_increase<248>();",
        "R0917",
        "for 248 registers each, 64 are free",
    ),
    Fault(
        "registers are given back by taking",
        "registers_decrease<24>();",
        "registers_increase<24>();",
        "R0923",
    ),
    Fault("a product is waited for too late", "wgmma_wait<1>();", "wgmma_wait<2>();", "R0919"),
    Fault("accumulators are not handed back", "wgmma_wait<0>(acc);", "wgmma_wait<0>();", "R0918"),
    Fault("accumulators are touched between products", "wgmma_fence();", "wgmma_fence(acc);", "R0918"),
]

FENCE = "wgmma_fence(d, registers);"
COMMIT = "wgmma_commit();"
TILE = "shared_descriptor(b, 16, 1024, Swizzle::B128)"
WAIT_LOAD = "barrier_wait(full, 0);"

# of product(64, in_registers=True)
REGISTERS = [
    Fault("no fence at all", FENCE, ";", "R0920", "wgmma_fence is missing: .* has executed none"),
    Fault(
        "registers of A are written early",
        "wgmma_wait<0>(d, registers);",
        "registers[0] = half(0); wgmma_wait<0>(d, registers);",
        "R0918",
        "writes element 0",
    ),
    Fault("an operand is written early", COMMIT, "b[0] = half(1); wgmma_commit();", "R0919", "writes byte"),
    Fault(
        "an operand is written without a fence",
        WAIT_LOAD,
        "barrier_wait(full, 0); if (threadIdx.x == 0) b[0] = half(1); __syncthreads();",
        "R0920",
        "fence_async_shared is missing",
    ),
    Fault(
        "an operand is written without a barrier",
        WAIT_LOAD,
        "barrier_wait(full, 0); if (threadIdx.x == 0) b[0] = half(1); fence_async_shared();",
        "R0907|R0919",
    ),
    Fault(
        "a barrier is made twice",
        "barrier_init(full, 1);",
        "barrier_init(full, 1); barrier_init(full, 1);",
        "R0921",
        "twice",
    ),
    Fault(
        "a barrier is written to",
        WAIT_LOAD,
        "barrier_wait(full, 0); a[4096 + 4096] = half(0);",
        "R0921",
        "belongs to an mbarrier",
    ),
    Fault(
        "one warp commits something else",
        COMMIT,
        "if (warp < 3) wgmma_commit(); else wgmma_fence();",
        "R0910",
        "of its warpgroup",
    ),
    Fault("sums start from nothing", "step > 0", "true", "R0905", "register 0 of"),
    Fault("a descriptor beyond shared memory", TILE, f"{TILE} + 4096", "R0902|R0904"),
]
