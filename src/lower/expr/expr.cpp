#include "lower/expr/expr.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace strata::lower {

Literal int_literal(int64_t i) { return {true, i, double(i), float(i), false, false}; }
Literal real_literal(double d) { return {false, 0, d, float(d), false, false}; }

namespace {

struct Token {
  enum Kind : uint8_t { Word, Number, Sign, Line, End } kind;
  std::string text;
  Literal number;
  int line, column;
};

class Lexer {
 public:
  // lines: the end of a line ends a statement, as `;` does.
  Lexer(std::string_view text, std::string_view what, bool lines) : text_(text), what_(what), lines_(lines) {}

  std::vector<Token> run() {
    std::vector<Token> out;
    int depth = 0;
    while (true) {
      skip_blanks();
      Token t{Token::End, "", {}, line_, int(at_ - line_start_) + 1};
      if (at_ >= text_.size()) {
        out.push_back(t);
        return out;
      }
      char c = text_[at_];
      if (c == '\n' || c == ';') {
        ++at_;
        if (c == '\n') {
          ++line_;
          line_start_ = at_;
        }
        t.kind = Token::Line;
        bool ends = c == ';' || (lines_ && depth == 0 && !out.empty() && !goes_on(out.back()));
        if (ends) out.push_back(t);
        continue;
      }
      if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') {
        size_t b = at_;
        while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
        t.kind = Token::Word;
        t.text = text_.substr(b, at_ - b);
      } else if (std::isdigit(static_cast<unsigned char>(c)) ||
                 (c == '.' && at_ + 1 < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_ + 1])))) {
        number(t);
      } else {
        sign(t);
        if (t.text == "(" || t.text == "[") ++depth;
        if ((t.text == ")" || t.text == "]") && depth > 0) --depth;
      }
      out.push_back(t);
    }
  }

  [[noreturn]] void fail(int line, int column, const std::string& message) const {
    throw_error(ErrorKind::Value, str_cat(what_, ": line ", line, ", column ", column, ": ", message));
  }

 private:
  static bool goes_on(const Token& t) {
    static constexpr std::string_view open[] = {"+", "-",  "*",  "/",  "%",  "&",  "|", "^", "<<", ">>", "<", "<=",
                                                ">", ">=", "==", "!=", "&&", "||", "?", ":", ",",  "=",  "!", "~"};
    if (t.kind != Token::Sign) return false;
    for (std::string_view s : open)
      if (t.text == s) return true;
    return false;
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#' || text_.substr(at_, 2) == "//") {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }

  void number(Token& t) {
    std::string rest(text_.substr(at_, 64));
    bool hex = rest.size() > 1 && rest[0] == '0' && (rest[1] == 'x' || rest[1] == 'X');
    size_t n = hex ? 2 : 0;
    bool real = false, scaled = false;
    for (; n < rest.size(); ++n) {
      char c = rest[n];
      bool exponent = !scaled && (hex ? (c == 'p' || c == 'P') : (c == 'e' || c == 'E'));
      scaled = scaled || exponent;
      if (exponent && n + 1 < rest.size() && (rest[n + 1] == '+' || rest[n + 1] == '-')) ++n;
      if (exponent || c == '.')
        real = true;
      else if (!(hex && !scaled ? std::isxdigit(static_cast<unsigned char>(c))
                                : std::isdigit(static_cast<unsigned char>(c))))
        break;
    }
    t.kind = Token::Number;
    t.text = rest.substr(0, n);
    const char* b = t.text.c_str();
    char* end;
    if (real) {
      t.number.d = std::strtod(b, &end);
      t.number.f = std::strtof(b, nullptr);
    } else {
      errno = 0;
      uint64_t u = std::strtoull(b, &end, hex ? 16 : 10);
      if (errno != 0) fail(t.line, t.column, "the integer " + t.text + " does not fit in 64 bits");
      t.number = int_literal(int64_t(u));
      if (int64_t(u) < 0 && !hex) t.number = real_literal(double(u));
    }
    if (*end) fail(t.line, t.column, "'" + t.text + "' is not a number");
    at_ += n;
    if (text_.substr(at_, 1) == "f") ++at_;
    if (text_.substr(at_, 1) == "u") t.number.is_unsigned = true, ++at_;
    if (text_.substr(at_, 1) == "l") t.number.is_long = true, ++at_;
    if (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      fail(t.line, t.column, "unexpected '" + std::string(1, text_[at_]) + "' after the number " + t.text);
  }

  void sign(Token& t) {
    static constexpr std::string_view two[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "->"};
    t.kind = Token::Sign;
    for (std::string_view s : two)
      if (text_.substr(at_, 2) == s) t.text = s;
    if (t.text.empty()) {
      if (!std::strchr("+-*/%&|^~<>!?:=(),{}[]", text_[at_]))
        fail(t.line, t.column, "unexpected character '" + std::string(1, text_[at_]) + "'");
      t.text = text_[at_];
    }
    at_ += t.text.size();
  }

  std::string_view text_, what_;
  bool lines_;
  size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view what, bool lines) : lexer_(text, what, lines), tokens_(lexer_.run()) {}

  std::vector<Statement> statements() {
    std::vector<Statement> out;
    while (skip_lines(), !at(Token::End)) out.push_back(statement());
    if (out.empty()) fail("expected an expression, got an empty text");
    return out;
  }

  std::vector<Function> functions(std::string_view origin) {
    std::vector<Function> out;
    while (skip_lines(), !at(Token::End)) {
      out.push_back(function());
      out.back().origin = origin;
    }
    return out;
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  bool at(Token::Kind k) const { return now().kind == k; }
  bool at(std::string_view s) const { return now().kind == Token::Sign && now().text == s; }
  bool accept(std::string_view s) { return at(s) ? (++at_, true) : false; }
  void skip_lines() {
    while (at(Token::Line)) ++at_;
  }
  [[noreturn]] void fail(const std::string& message) const { lexer_.fail(now().line, now().column, message); }
  std::string shown() const {
    return at(Token::End) ? "the end of the text" : at(Token::Line) ? "the end of the line" : "'" + now().text + "'";
  }
  void expect(std::string_view s) {
    if (!accept(s)) fail("expected '" + std::string(s) + "', got " + shown());
  }
  std::string word(const char* what) {
    if (!at(Token::Word)) fail(std::string("expected ") + what + ", got " + shown());
    return tokens_[at_++].text;
  }
  void end_of_statement() {
    if (!at(Token::Line) && !at(Token::End) && !at("}"))
      fail("expected an operator or the end of the line, got " + shown());
  }

  bool at_word_then(std::string_view s) const {
    return at(Token::Word) && tokens_[at_ + 1].kind == Token::Sign && tokens_[at_ + 1].text == s;
  }

  Statement statement() {
    Statement s;
    if (at(Token::Word) && now().text == "const") ++at_;
    if (at(Token::Word) && now().text == "return") {
      ++at_;
    } else {
      if (at(Token::Word) && tokens_[at_ + 1].kind == Token::Word) s.type = word("a type");
      if (!s.type.empty() || at_word_then("=")) {
        s.name = word("a name");
        expect("=");
      }
    }
    s.value = expression();
    end_of_statement();
    return s;
  }

  Function function() {
    Function f;
    f.type = word("a function's type");
    f.name = word("a function's name");
    expect("(");
    while (!accept(")")) {
      if (!f.params.empty()) expect(",");
      Param p;
      p.type = word("a parameter's type");
      p.name = word("a parameter's name");
      f.params.push_back(p);
    }
    expect("{");
    while (skip_lines(), !accept("}")) f.body.push_back(statement());
    if (f.body.empty() || !f.body.back().name.empty()) fail("function " + f.name + " ends without `return expression`");
    return f;
  }

  ExprPtr make(const Token& t, std::string name, std::vector<ExprPtr> args) const {
    auto e = std::make_shared<Expr>();
    e->kind = Expr::Call;
    e->name = std::move(name);
    e->args = std::move(args);
    e->line = t.line;
    e->column = t.column;
    return e;
  }

  ExprPtr expression() {
    ExprPtr c = binary(0);
    if (!at("?")) return c;
    Token t = now();
    ++at_;
    ExprPtr a = expression();
    expect(":");
    ExprPtr b = expression();
    return make(t, "select", {c, a, b});
  }

  ExprPtr binary(int level) {
    static const std::vector<std::string_view> levels[] = {
        {"||"},       {"&&"},     {"|"},          {"^"}, {"&"}, {"==", "!="}, {"<", "<=", ">", ">="},
        {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};
    if (level == int(std::size(levels))) return unary();
    ExprPtr left = binary(level + 1);
    while (true) {
      bool found = false;
      for (std::string_view s : levels[level])
        if (at(s)) found = true;
      if (!found) return left;
      Token t = now();
      ++at_;
      left = make(t, t.text, {left, binary(level + 1)});
    }
  }

  ExprPtr unary() {
    Token t = now();
    if (accept("-")) {
      ExprPtr e = unary();
      if (e->kind != Expr::Number) return make(t, "neg", {e});
      auto n = std::make_shared<Expr>(*e);
      n->number.i = int64_t(0 - uint64_t(n->number.i));
      n->number.d = n->number.is_int ? double(n->number.i) : -n->number.d;
      n->number.f = n->number.is_int ? float(n->number.i) : -n->number.f;
      return n;
    }
    if (accept("+")) return unary();
    if (accept("!")) return make(t, "!", {unary()});
    if (accept("~")) return make(t, "~", {unary()});
    return primary();
  }

  ExprPtr primary() {
    Token t = now();
    if (accept("(")) {
      ExprPtr e = expression();
      expect(")");
      return e;
    }
    auto e = std::make_shared<Expr>();
    e->line = t.line;
    e->column = t.column;
    if (at(Token::Number)) {
      e->kind = Expr::Number;
      e->number = t.number;
      ++at_;
      return e;
    }
    e->name = word("a value");
    e->kind = Expr::Name;
    const bool index = at("[");
    if (!index && !at("(")) return e;
    ++at_;
    e->kind = index ? Expr::Index : Expr::Call;
    while (!accept(index ? "]" : ")")) {
      if (!e->args.empty()) expect(",");
      e->args.push_back(expression());
    }
    return e;
  }

  Lexer lexer_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace

std::vector<Statement> parse_statements(std::string_view text, std::string_view what) {
  return Parser(text, what, true).statements();
}

std::vector<Function> parse_functions(std::string_view text, std::string_view what) {
  return Parser(text, what, false).functions(what);
}

}  // namespace strata::lower
