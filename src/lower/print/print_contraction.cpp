// Sums of products in a printed nest: pass/contraction.h says their order.
#include "lower/print/fill.h"
#include "lower/print/nest_printer.h"

namespace strata::lower {

void NestPrinter::contraction(const Reduction& r, const int nodes[2], uint64_t ranges, const Done& done) {
  const DType t = nest_.nodes[size_t(r.value[0])].type;
  const size_t parts = is_complex(r.accumulator) ? 2 : 1;
  std::string sum[2], chain[2];
  for (size_t k = 0; k < parts; ++k) {
    sum[k] = nodes[k] >= 0 ? value_names_[size_t(nodes[k])] : names_.unique("sum");
    chain[k] = is_float(t) ? names_.unique("chain") : sum[k];
    line(values_.type(t) + " " + sum[k] + " = 0" + (is_float(t) ? ", " + chain[k] + " = 0;" : ";"));
  }
  open("{");
  if (is_float(t)) line("i64 used = 0;");
  reduced_loops(r, ranges, done);
  auto add = [&](size_t to, const std::string& a, const std::string& b) {
    std::string value = values_.dialect().real[5][t == DType::F64] + ("(" + a + ", " + b + ", " + chain[to] + ")");
    if (!is_float(t)) value = values_.arithmetic("+", t, sum[to], values_.arithmetic("*", t, a, b));
    line(chain[to] + " = " + value + ";");
  };
  add(0, ref(r.value[0]), ref(r.factor[0]));
  if (parts == 2) {
    add(0, "-" + ref(r.value[1]), ref(r.factor[1]));
    add(1, ref(r.value[0]), ref(r.factor[1]));
    add(1, ref(r.value[1]), ref(r.factor[0]));
  }
  auto end_of_chain = [&](const std::string& first, bool more) {
    for (size_t k = 0; k < parts; ++k) {
      line(sum[k] + " = " + first + " ? " + chain[k] + " : " + sum[k] + " + " + chain[k] + ";");
      if (more) line(chain[k] + " = 0;");
    }
    close();
  };
  if (is_float(t)) {
    open("if ((++used & 1023) == 0) {");
    end_of_chain("used == 1024", true);
  }
  close_loops(r.over);
  if (is_float(t)) {
    open("if (used & 1023) {");
    end_of_chain("used < 1024", false);
  }
  close();
}

}  // namespace strata::lower
