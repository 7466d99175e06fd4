#include "ir/draw.h"

#include <algorithm>
#include <numeric>

namespace strata::ir {

namespace {

struct Box {
  std::string title, detail, tip;
  const char* fill;
  std::vector<size_t> from;  // boxes that it reads
  size_t layer = 0;
  double x = 0, width = 0, order = 0;
};

constexpr double kHeight = 40, kGapX = 18, kGapY = 44, kLetter = 6.7;
constexpr size_t kLongest = 40;  // letters of a line
constexpr const char *kInput = "#dbeafe", *kCaptured = "#fde9c9", *kNode = "#ffffff", *kWrites = "#fbdcdc",
                     *kResult = "#d8f3dc";

// Text of XML: letters that mean something there are escaped, and those that it cannot have left out.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 32 || c == '\n')
      out += c;
  }
  return out;
}

std::string shortened(const std::string& text) {
  if (text.size() <= kLongest) return text;
  size_t end = kLongest - 3;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;  // whole letters of UTF-8
  return text.substr(0, end) + "...";
}

class Drawing {
 public:
  explicit Drawing(const Graph& g) : g_(g), makers_(g.values.size(), SIZE_MAX) {
    for (size_t i = 0; i < g.body.params.size(); ++i) {
      const Id v = g.body.params[i];
      const std::string& name = g.values[size_t(v)].name;
      const bool own = i < g.inputs();
      made(v, add(name.empty() ? str_cat(own ? "input " : "captured ", own ? i : i - g.inputs()) : name, typed(v), {},
                  own ? kInput : kCaptured));
    }
    block(g.body, SIZE_MAX);
    const size_t last = add("return", str_cat(g.body.results.size(), " values"), {}, kResult);
    for (Id v : g.body.results) reads(last, v);
    boxes_[last].layer = 0;
    for (const Box& b : boxes_)
      boxes_[last].layer = std::max(boxes_[last].layer, &b == &boxes_[last] ? 0 : b.layer + 1);
  }

  std::string svg() {
    place();
    std::string lines, shapes;
    for (const Box& b : boxes_)
      for (size_t f : b.from) {
        const Box& a = boxes_[f];
        const double x1 = a.x + a.width / 2, y1 = top(a) + kHeight, x2 = b.x + b.width / 2, y2 = top(b),
                     mid = (y1 + y2) / 2;
        lines += str_cat("<path d=\"M", x1, " ", y1, " C", x1, " ", mid, " ", x2, " ", mid, " ", x2, " ", y2, "\"/>\n");
      }
    for (const Box& b : boxes_) {
      const double x = b.x + b.width / 2, y = top(b);
      shapes += str_cat("<g><rect x=\"", b.x, "\" y=\"", y, "\" width=\"", b.width, "\" height=\"", kHeight,
                        "\" rx=\"5\" fill=\"", b.fill, "\"/><text x=\"", x, "\" y=\"", y + 16, "\">",
                        escaped(shortened(b.title)), "</text><text class=\"d\" x=\"", x, "\" y=\"", y + 32, "\">",
                        escaped(shortened(b.detail)), "</text>",
                        b.tip.empty() ? std::string() : "<title>" + escaped(b.tip) + "</title>", "</g>\n");
    }
    return str_cat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width_, "\" height=\"", height_, "\" viewBox=\"0 0 ",
        width_, " ", height_,
        "\">\n<style>rect{stroke:#555}path{fill:none;stroke:#888}text{font:11px monospace;text-anchor:middle}"
        ".d{fill:#555}</style>\n",
        lines, shapes, "</svg>\n");
  }

 private:
  std::string typed(Id v) const { return str_cat("%", v, ": ", to_string(g_.values[size_t(v)].type)); }

  size_t add(std::string title, std::string detail, std::string tip, const char* fill) {
    boxes_.push_back({std::move(title), std::move(detail), std::move(tip), fill, {}});
    Box& b = boxes_.back();
    b.width = 16 + kLetter * double(std::max(shortened(b.title).size(), shortened(b.detail).size()));
    return boxes_.size() - 1;
  }
  void made(Id v, size_t by) {
    if (v != kNone) makers_[size_t(v)] = by;
  }
  void reads(size_t box, Id v) {
    if (v == kNone || makers_[size_t(v)] == SIZE_MAX) return;
    follows(box, makers_[size_t(v)]);
  }
  void follows(size_t box, size_t of) {
    Box& b = boxes_[box];
    if (of == box || std::ranges::find(b.from, of) != b.from.end()) return;
    b.from.push_back(of);
    b.layer = std::max(b.layer, boxes_[of].layer + 1);
  }

  // What a block's nodes are around: `outer`, or nothing.
  void block(const Block& b, size_t outer) {
    for (Id v : b.params) made(v, outer);
    for (const Node& n : b.nodes) node(n, outer);
  }
  void node(const Node& n, size_t outer) {
    const char* words[] = {"", "constant ", "if", "loop", "check"};
    std::string title = n.kind == Node::Call ? n.op->name : words[n.kind];
    if (n.kind == Node::Constant) title += print(n.args[0].constant);
    std::string types;
    for (Id v : n.results) types += (types.empty() ? "" : ", ") + (v == kNone ? "None" : typed(v));
    const bool writes = n.kind == Node::Call && n.op->schema().writes();
    const size_t box = add(std::move(title), std::move(types), n.span, writes ? kWrites : kNode);
    if (outer != SIZE_MAX) follows(box, outer);
    for (const Arg& a : n.args)
      for (Id v : a.values) reads(box, v);
    for (const Block& b : n.blocks) block(b, box);
    for (Id v : n.results) made(v, box);
  }

  double top(const Box& b) const { return 10 + double(b.layer) * (kHeight + kGapY); }

  // Boxes of a layer stand by the mean place of what they read, then of what reads them, a few times over.
  void place() {
    size_t layers = 0;
    for (const Box& b : boxes_) layers = std::max(layers, b.layer + 1);
    std::vector<std::vector<size_t>> rows(layers);
    for (size_t i = 0; i < boxes_.size(); ++i) rows[boxes_[i].layer].push_back(i);
    std::vector<std::vector<size_t>> readers(boxes_.size());
    for (size_t i = 0; i < boxes_.size(); ++i)
      for (size_t f : boxes_[i].from) readers[f].push_back(i);
    auto spread = [&](std::vector<size_t>& row) {
      double x = 10;
      for (size_t i : row) {
        boxes_[i].x = x;
        x += boxes_[i].width + kGapX;
      }
      width_ = std::max(width_, x);
    };
    for (auto& row : rows) spread(row);
    auto sort_by = [&](std::vector<size_t>& row, auto&& neighbours) {
      for (size_t i : row) {
        const std::vector<size_t>& near = neighbours(i);
        double sum = 0;
        for (size_t k : near) sum += boxes_[k].x + boxes_[k].width / 2;
        boxes_[i].order = near.empty() ? boxes_[i].x : sum / double(near.size());
      }
      std::ranges::sort(row, {}, [&](size_t i) { return std::pair(boxes_[i].order, i); });
      spread(row);
    };
    for (int round = 0; round < 4; ++round) {
      for (size_t l = 1; l < rows.size(); ++l) sort_by(rows[l], [&](size_t i) -> auto& { return boxes_[i].from; });
      for (size_t l = rows.size(); l-- > 0;) sort_by(rows[l], [&](size_t i) -> auto& { return readers[i]; });
    }
    // Each row in the middle.
    for (const auto& row : rows) {
      const Box& last = boxes_[row.back()];
      const double shift = (width_ - (last.x + last.width + kGapX)) / 2;
      for (size_t i : row) boxes_[i].x += shift;
    }
    height_ = 10 + double(layers) * (kHeight + kGapY);
  }

  const Graph& g_;
  std::vector<size_t> makers_;  // the box of each value
  std::vector<Box> boxes_;
  double width_ = 0, height_ = 0;
};

}  // namespace

std::string draw(const Graph& graph) { return Drawing(graph).svg(); }

}  // namespace strata::ir
