"""Names that a kernel's variables must not have: C++'s, CUDA's, and those of the device header."""

from __future__ import annotations

CPP = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template
this thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile
wchar_t while xor xor_eq
"""
CUDA = """
half half2 nv_bfloat16 wmma nvcuda blockIdx threadIdx blockDim gridDim warpSize x y z dim3 float2 float4
"""
LIBRARY = """
min max abs exp log sqrt rsqrt tanh floor sin cos pow fma gamma y0 y1 yn j0 j1 jn expf logf sqrtf rsqrtf
tanhf floorf sinf cosf powf fmaf fmin fmax fabs fminf fmaxf fabsf fmod fmodf main NULL stdin stdout stderr
"""
HEADER = """
output Global Shared Local shared_memory Swizzled swizzled_memory bfloat16 rise_shared_bytes rise_emulation
tf32 to_tf32 from_tf32 fma_bfloat16
scalars truncated rounded_to_odd magnitude quotient_of remainder_of power_of
Bits lane member group Barrier TensorMap Descriptor Swizzle wgmma wgmma_fence wgmma_commit wgmma_wait
barrier_init barrier_expect barrier_wait barrier_arrive barrier_arrive_remote fence_barrier_init
named_barrier bulk_load bulk_load_multicast bulk_store bulk_commit bulk_wait bulk_wait_read
fence_async_shared prefetch_map shared_descriptor further uniform Wgmma Major elect_one
registers_increase registers_decrease cluster_sync cluster_rank store_matrices store_matrices_transposed
start_next_kernel await_previous_kernel
mma volta load_matrices load_matrices_transposed
copy_vector copy_async copy_async_or_zero commit_copies wait_copies
"""

RESERVED = frozenset(f"{CPP} {CUDA} {LIBRARY} {HEADER}".split())
