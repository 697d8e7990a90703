// What most kernels use of the emulator's templates, compiled once, too: arrays and numbers of usual types, and what
// warps do with usual fragments. What these call is not compiled with a text either.
#pragma once

#include "launch.hpp"
#include "mma.hpp"
#include "wmma.hpp"

#ifdef RISE_INSTANCE
#define RISE_USUAL(T)                                    \
  RISE_INSTANCE Reference<T>;                            \
  RISE_INSTANCE Pointer<T>;                              \
  RISE_INSTANCE Pointer<const T>;                        \
  RISE_INSTANCE Parameter<Pointer<T>>;                   \
  RISE_INSTANCE Parameter<Pointer<const T>>;             \
  RISE_INSTANCE LocalElement<T, UninitialisedLocal>;     \
  RISE_INSTANCE LocalElement<T, UninitialisedFragment>;  \
  RISE_INSTANCE LocalPointer<T, UninitialisedLocal>;     \
  RISE_INSTANCE LocalPointer<T, UninitialisedFragment>;

#define RISE_PRODUCTS(A, B) \
  RISE_INSTANCE Product<usual::Sums, const A, const B, const usual::Sums>;

namespace rise_emulation {
RISE_USUAL(float)
RISE_USUAL(__half)
RISE_USUAL(int)

namespace usual {
using namespace nvcuda::wmma;
using Sums = fragment<accumulator, 16, 16, 16, float>;
using Rows = fragment<matrix_a, 16, 16, 16, half, row_major>;
using RowsTransposed = fragment<matrix_a, 16, 16, 16, half, col_major>;
using Columns = fragment<matrix_b, 16, 16, 16, half, col_major>;
using ColumnsTransposed = fragment<matrix_b, 16, 16, 16, half, row_major>;
using WarpSums = mma::fragment<accumulator, 16, 8, 16, float>;
using WarpRows = mma::fragment<matrix_a, 16, 8, 16, half>;
using WarpColumns = mma::fragment<matrix_b, 16, 8, 16, half>;
}  // namespace usual

RISE_INSTANCE Whole<usual::Sums>;
RISE_INSTANCE Whole<usual::Rows>;
RISE_INSTANCE Whole<usual::RowsTransposed>;
RISE_INSTANCE Whole<usual::Columns>;
RISE_INSTANCE Whole<usual::ColumnsTransposed>;
RISE_PRODUCTS(usual::Rows, usual::Columns)
RISE_PRODUCTS(usual::Rows, usual::ColumnsTransposed)
RISE_PRODUCTS(usual::RowsTransposed, usual::Columns)
RISE_PRODUCTS(usual::RowsTransposed, usual::ColumnsTransposed)

RISE_INSTANCE Product<usual::WarpSums, const usual::WarpRows, const usual::WarpColumns, const usual::WarpSums>;
RISE_INSTANCE Matrices<half, 4, false, UninitialisedFragment>;
RISE_INSTANCE Matrices<half, 4, true, UninitialisedFragment>;
RISE_INSTANCE Matrices<half, 2, false, UninitialisedFragment>;
RISE_INSTANCE Matrices<half, 2, true, UninitialisedFragment>;
RISE_INSTANCE Copied<8, half>;
RISE_INSTANCE Copied<4, float>;
}  // namespace rise_emulation

#undef RISE_USUAL
#undef RISE_PRODUCTS
#endif
