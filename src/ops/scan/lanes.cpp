// A scan by a pointwise kernel of two operands, in the order that scan.cpp states. A kernel computes 16 lanes at a
// time, whatever it is given: so 16 pieces are scanned side by side, a lane each. A piece is a block of a line; the
// next piece is that of the neighbouring line or, where lines have no neighbours, the next block.
#include <algorithm>
#include <memory>

#include "core/parallel.h"
#include "ops/scan/scan.h"
#include "run/kernels.h"
#include "run/visit.h"

namespace strata::eager {

namespace {

constexpr int64_t kLanes = 16;

struct Pieces {
  int64_t outer, length, inner, block;  // a piece has `block` elements, but for the last of a line
  int64_t blocks() const { return (length + block - 1) / block; }
  int64_t count() const { return outer * blocks() * inner; }
  int64_t longest() const { return std::min(block, length); }
  int64_t number(int64_t piece) const { return piece / inner % blocks(); }  // in its line
  int64_t size(int64_t piece) const { return std::min(block, length - number(piece) * block); }
  int64_t start(int64_t piece) const {
    return (piece / inner / blocks() * length + number(piece) * block) * inner + piece % inner;
  }
};

// W: a word of the elements' size.
template <class W>
class LaneScan {
 public:
  explicit LaneScan(const StrataKernelEntry& combine) : combine_(combine) {}

  void run(const W* in, W* out, const Pieces& p) const {
    scan_pieces(in, out, p);
    if (p.blocks() == 1) return;
    std::unique_ptr<W[]> totals(new W[p.count()]);
    for (int64_t piece = 0; piece < p.count(); ++piece)
      totals[piece] = out[p.start(piece) + (p.size(piece) - 1) * p.inner];
    scan_pieces(totals.get(), totals.get(), {p.outer, p.blocks(), p.inner, p.blocks()});
    add_before(totals.get(), out, p);
  }

 private:
  // Each piece by itself; `to` may be `from`.
  void scan_pieces(const W* from, W* to, const Pieces& p) const {
    on_tiles(p, [&](int64_t first, int64_t lanes, W* tile) {
      read(from, first, lanes, p, tile);
      for (int64_t i = 1; i < p.longest(); ++i) {
        W* row = tile + i * kLanes;
        combine(row - kLanes, row, 1);
      }
      write(tile, first, lanes, p, to);
    });
  }

  // before (op) element, with the total up to the block before.
  void add_before(const W* totals, W* out, const Pieces& p) const {
    on_tiles(p, [&](int64_t first, int64_t lanes, W* tile) {
      W before[kLanes] = {};
      for (int64_t l = 0; l < lanes; ++l)
        if (p.number(first + l) > 0) before[l] = totals[first + l - p.inner];
      read(out, first, lanes, p, tile);
      combine(before, tile, p.longest());
      for (int64_t l = 0; l < lanes; ++l)
        if (p.number(first + l) > 0) write(tile + l, first + l, 1, p, out);
    });
  }

  template <class F>
  void on_tiles(const Pieces& p, F f) const {
    const int64_t tiles = (p.count() + kLanes - 1) / kLanes, size = p.longest() * kLanes;
    parallel_for(0, tiles, std::max<int64_t>(1, 16384 / size), [&](int64_t begin, int64_t end) {
      std::unique_ptr<W[]> tile(new W[size]());  // lanes and places of no piece are numbers, too
      for (int64_t t = begin; t < end; ++t) f(t * kLanes, std::min(kLanes, p.count() - t * kLanes), tile.get());
    });
  }

  // row = left (op) row, for `count` rows of lanes.
  void combine(W* left, W* rows, int64_t count) const {
    char* const ptr[] = {reinterpret_cast<char*>(rows), reinterpret_cast<char*>(left), reinterpret_cast<char*>(rows)};
    const int64_t row = kLanes * sizeof(W), steps[] = {row, 0, row};
    int32_t status = 0;
    combine_.pointwise(ptr, steps, nullptr, count, 0, &status);
  }

  // f(in the tensor, in the tile) for the places of some pieces, few rows at a time: whichever way neighbours lie, what
  // the cache holds of them is used whole.
  template <class F>
  static void on_places(int64_t first, int64_t lanes, const Pieces& p, F f) {
    constexpr int64_t kRows = 8;
    int64_t start[kLanes], size[kLanes];
    for (int64_t l = 0; l < lanes; ++l) start[l] = p.start(first + l), size[l] = p.size(first + l);
    for (int64_t row = 0; row < p.longest(); row += kRows)
      for (int64_t l = 0; l < lanes; ++l) {
        const int64_t end = std::min(row + kRows, size[l]);
        for (int64_t i = row; i < end; ++i) f(start[l] + i * p.inner, i * kLanes + l);
      }
  }
  static void read(const W* from, int64_t first, int64_t lanes, const Pieces& p, W* tile) {
    on_places(first, lanes, p, [&](int64_t at, int64_t place) { tile[place] = from[at]; });
  }
  static void write(const W* tile, int64_t first, int64_t lanes, const Pieces& p, W* to) {
    on_places(first, lanes, p, [&](int64_t at, int64_t place) { to[at] = tile[place]; });
  }

  const StrataKernelEntry& combine_;
};

}  // namespace

void scan_logaddexp(const Tensor& in, const Tensor& out, int64_t dim) {
  Pieces p{1, 1, 1, kScanBlock};
  for (int64_t d = 0; d < in.dim(); ++d) (d < dim ? p.outer : d == dim ? p.length : p.inner) *= in.sizes()[d];
  const StrataKernelEntry* combine = find_kernel("logaddexp", in.dtype());
  STRATA_INTERNAL(combine, "no kernel logaddexp of ", in.dtype());
  visit_width(itemsize(in.dtype()), [&](auto tag) {
    using W = typename decltype(tag)::type;
    if constexpr (sizeof(W) >= 4)
      LaneScan<W>(*combine).run(static_cast<const W*>(static_cast<const void*>(in.bytes())),
                                static_cast<W*>(static_cast<void*>(out.bytes())), p);
  });
}

}  // namespace strata::eager
