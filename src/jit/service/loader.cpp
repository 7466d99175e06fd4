#include "jit/service/loader.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/error.h"
#include "jit/service/debugger.h"
#include "jit/service/externals.h"

namespace strata::jit {

namespace {

constexpr uint64_t kLargest = uint64_t{1}
                              << 28;  // of an object in memory; far beyond any kernel's, well within 32 bits
constexpr uint64_t kPage = 4096;
constexpr size_t kStub = 16;  // bytes of a jump to a function outside, its address included
constexpr unsigned char kJump[] = {0xff, 0x25, 0x02, 0, 0, 0, 0x66, 0x90};  // jmp *2(%rip); the address follows

[[noreturn]] void refuse(const std::string& what) {
  throw_error(ErrorKind::Runtime, "compile: the compiled object cannot be loaded: " + what);
}
void check(bool good, const char* what) {
  if (STRATA_UNLIKELY(!good)) refuse(what);
}
uint64_t rounded(uint64_t n, uint64_t to) { return (n + to - 1) & ~(to - 1); }

// The bytes of an object. What is read is copied: nothing in it need be aligned.
class Bytes {
 public:
  explicit Bytes(std::string_view all) : all_(all) {}
  uint64_t size() const { return all_.size(); }
  std::string_view part(uint64_t offset, uint64_t size) const {
    check(offset <= all_.size() && size <= all_.size() - offset, "a part lies outside of it");
    return all_.substr(offset, size);
  }
  template <class T>
  T read(uint64_t offset) const {
    T value;
    std::memcpy(&value, part(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }
  template <class T>
  std::vector<T> table(uint64_t offset, uint64_t bytes) const {
    check(bytes % sizeof(T) == 0, "a table does not have whole entries");
    std::string_view text = part(offset, bytes);
    std::vector<T> values(bytes / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), text.data(), text.size());
    return values;
  }

 private:
  std::string_view all_;
};

std::string_view name_at(std::string_view names, uint64_t at) {
  check(at < names.size(), "a name lies outside of its table");
  size_t end = names.find('\0', at);
  check(end != names.npos, "a name has no end");
  return names.substr(at, end - at);
}

// What is placed: code with the jumps to functions outside, then constants with the table of addresses, then data.
enum Kind { kCode, kConstant, kData, kKinds };

bool is_placed(const Elf64_Shdr& s) { return (s.sh_flags & SHF_ALLOC) && s.sh_type != SHT_NOTE; }
// Addresses are written before the pages are closed, so constants that hold some need not be data.
Kind kind_of(const Elf64_Shdr& s) {
  if (s.sh_flags & SHF_EXECINSTR) return kCode;
  return s.sh_flags & SHF_WRITE ? kData : kConstant;
}

class Linker {
 public:
  explicit Linker(std::string_view object) : bytes_(object) {
    read_sections();
    read_symbols();
    place();
  }

  uint64_t total() const { return end_; }
  // Copies and relocates into memory of total() bytes that is all zero.
  void fill(char* base) {
    for (size_t i = 0; i < sections_.size(); ++i)
      if (placed_[i] && sections_[i].sh_type != SHT_NOBITS) {
        std::string_view from = bytes_.part(sections_[i].sh_offset, sections_[i].sh_size);
        if (!from.empty()) std::memcpy(base + at_[i], from.data(), from.size());
      }
    for (const auto& [symbol, place] : jumps_) {
      uint64_t target = uint64_t(outside(symbol));
      std::memcpy(base + place, kJump, sizeof kJump);
      std::memcpy(base + place + sizeof kJump, &target, sizeof target);
    }
    for (const auto& [symbol, place] : slots_) {
      uint64_t target = address(base, symbol);
      std::memcpy(base + place, &target, sizeof target);
    }
    for (const Elf64_Shdr& s : sections_)
      if (s.sh_type == SHT_RELA && placed_[s.sh_info])
        for (const Elf64_Rela& r : relocations(s)) relocate(base, s.sh_info, r);
  }
  void protect(char* base) const {
    constexpr int rights[] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
    for (int k = 0; k < kKinds; ++k) {
      uint64_t size = (k + 1 < kKinds ? begin_[k + 1] : end_) - begin_[k];
      if (size && mprotect(base + begin_[k], size, rights[k]) != 0)
        refuse(str_cat("its memory could not be protected: ", std::strerror(errno)));
    }
  }
  void list(char* base, std::vector<std::string>& names, std::vector<char*>& addresses) const {
    std::map<std::string_view, char*> found;
    for (const Elf64_Sym& s : symbols_)
      if (ELF64_ST_BIND(s.st_info) != STB_LOCAL && is_inside(s))
        found[name_of(s)] = base + at_[s.st_shndx] + s.st_value;
    for (const auto& [name, where] : found) {
      names.emplace_back(name);
      addresses.push_back(where);
    }
  }
  // The object with the places of its sections, as debuggers want it.
  std::string for_debuggers(const char* base) const {
    std::string object(bytes_.part(0, bytes_.size()));
    const auto header = bytes_.read<Elf64_Ehdr>(0);
    for (size_t i = 0; i < sections_.size(); ++i) {
      Elf64_Shdr s = sections_[i];
      s.sh_addr = placed_[i] ? uint64_t(base + at_[i]) : 0;
      if (!placed_[i]) s.sh_flags &= ~uint64_t{SHF_ALLOC};
      std::memcpy(object.data() + header.e_shoff + i * sizeof s, &s, sizeof s);
    }
    return object;
  }
  std::vector<LoadedFunction> functions(const char* base) const {
    std::vector<LoadedFunction> all;
    for (const Elf64_Sym& s : symbols_)
      if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && is_inside(s))
        all.push_back({std::string(name_of(s)), base + at_[s.st_shndx] + s.st_value, s.st_size});
    return all;
  }

 private:
  void read_sections() {
    auto header = bytes_.read<Elf64_Ehdr>(0);
    check(std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
              header.e_ident[EI_DATA] == ELFDATA2LSB,
          "it is no ELF file of 64 bits");
    check(header.e_type == ET_REL && header.e_machine == EM_X86_64, "it is not relocatable code for x86-64");
    check(header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shnum > 0, "it has no sections");
    sections_ = bytes_.table<Elf64_Shdr>(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
    placed_.resize(sections_.size());
    at_.resize(sections_.size());
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (s.sh_type != SHT_NOBITS) bytes_.part(s.sh_offset, s.sh_size);
      check(s.sh_size <= kLargest, "a section is too large");
      check(!(s.sh_flags & (SHF_TLS | SHF_COMPRESSED)), "it has sections of threads or compressed ones");
      check(s.sh_type != SHT_REL, "it has relocations without addends");
      if (s.sh_type == SHT_RELA) check(s.sh_info < sections_.size(), "relocations are for no section");
      // Kernels never throw: nobody asks how to unwind them.
      placed_[i] = is_placed(s) && name_of(header, s) != ".eh_frame";
      if (placed_[i]) {
        check(s.sh_type == SHT_PROGBITS || s.sh_type == SHT_NOBITS, "a section is neither text nor data");
        const uint64_t align = std::max<uint64_t>(s.sh_addralign, 1);
        check((align & (align - 1)) == 0 && align <= kPage, "a section has an odd alignment");
      }
    }
  }
  std::string_view name_of(const Elf64_Ehdr& header, const Elf64_Shdr& s) const {
    check(header.e_shstrndx < sections_.size(), "its sections have no names");
    const Elf64_Shdr& names = sections_[header.e_shstrndx];
    check(names.sh_type == SHT_STRTAB, "its sections' names are no text");
    return name_at(bytes_.part(names.sh_offset, names.sh_size), s.sh_name);
  }

  void read_symbols() {
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (s.sh_type != SHT_SYMTAB) continue;
      check(symbol_table_ == 0, "it has two tables of symbols");
      symbol_table_ = i;
      check(s.sh_link < sections_.size() && sections_[s.sh_link].sh_type == SHT_STRTAB, "its symbols have no names");
      names_ = bytes_.part(sections_[s.sh_link].sh_offset, sections_[s.sh_link].sh_size);
      symbols_ = bytes_.table<Elf64_Sym>(s.sh_offset, s.sh_size);
    }
    for (const Elf64_Sym& s : symbols_) {
      if (s.st_shndx == SHN_UNDEF || s.st_shndx == SHN_ABS) continue;
      check(s.st_shndx < sections_.size(), "a symbol is in no section");
      const uint64_t size = sections_[s.st_shndx].sh_size;
      check(s.st_value <= size && s.st_size <= size - s.st_value, "a symbol lies outside of its section");
    }
  }
  std::string_view name_of(const Elf64_Sym& s) const { return name_at(names_, s.st_name); }
  bool is_inside(const Elf64_Sym& s) const {
    return s.st_shndx != SHN_UNDEF && s.st_shndx < sections_.size() && placed_[s.st_shndx];
  }

  std::vector<Elf64_Rela> relocations(const Elf64_Shdr& s) const {
    check(s.sh_entsize == sizeof(Elf64_Rela) && s.sh_link == symbol_table_ && symbol_table_ != 0,
          "relocations without symbols");
    return bytes_.table<Elf64_Rela>(s.sh_offset, s.sh_size);
  }
  const Elf64_Sym& symbol_of(const Elf64_Rela& r) const {
    check(ELF64_R_SYM(r.r_info) < symbols_.size(), "a relocation has no symbol");
    return symbols_[ELF64_R_SYM(r.r_info)];
  }

  // Offsets of all sections, of a jump for each function outside that code calls, of a slot for each address that code
  // reads from the table of addresses.
  void place() {
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type != SHT_RELA || !placed_[s.sh_info]) continue;
      for (const Elf64_Rela& r : relocations(s)) {
        const Elf64_Sym& symbol = symbol_of(r);
        const uint32_t number = ELF64_R_SYM(r.r_info), type = ELF64_R_TYPE(r.r_info);
        if (type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX)
          slots_.emplace(number, 0);
        else if ((type == R_X86_64_PLT32 || type == R_X86_64_PC32) && symbol.st_shndx == SHN_UNDEF && number != 0)
          jumps_.emplace(number, 0);
      }
    }
    for (int k = 0; k < kKinds; ++k) {
      begin_[k] = end_ = rounded(end_, kPage);
      for (size_t i = 0; i < sections_.size(); ++i) {
        const Elf64_Shdr& s = sections_[i];
        if (!placed_[i] || kind_of(s) != k) continue;
        at_[i] = end_ = rounded(end_, std::max<uint64_t>(s.sh_addralign, 1));
        end_ += s.sh_size;
        check(end_ <= kLargest, "it is too large");
      }
      end_ = rounded(end_, kStub);
      if (k == kCode)
        for (auto& [symbol, at] : jumps_) at = end_, end_ += kStub;
      if (k == kConstant)
        for (auto& [symbol, at] : slots_) at = end_, end_ += sizeof(uint64_t);
      check(end_ <= kLargest, "it is too large");
    }
    end_ = rounded(end_, kPage);
  }

  void* outside(uint32_t number) const {
    const std::string_view name = name_of(symbols_[number]);
    if (void* found = external(name)) return found;
    refuse(str_cat("it needs '", name.substr(0, 200), "', which kernels are not offered"));
  }
  uint64_t address(char* base, uint32_t number) const {
    const Elf64_Sym& s = symbols_[number];
    if (s.st_shndx == SHN_UNDEF) return number == 0 ? 0 : uint64_t(outside(number));
    check(is_inside(s), "a relocation is to what is not placed");
    return uint64_t(base + at_[s.st_shndx]) + s.st_value;
  }

  template <class T>
  void put(char* base, uint32_t section, uint64_t offset, T value) const {
    const uint64_t size = sections_[section].sh_size;
    check(sections_[section].sh_type != SHT_NOBITS && offset <= size && sizeof(T) <= size - offset,
          "a relocation lies outside of its section");
    std::memcpy(base + at_[section] + offset, &value, sizeof(T));
  }
  void relocate(char* base, uint32_t section, const Elf64_Rela& r) const {
    const uint32_t number = ELF64_R_SYM(r.r_info), type = ELF64_R_TYPE(r.r_info);
    const Elf64_Sym& symbol = symbol_of(r);
    const uint64_t here = uint64_t(base) + at_[section] + r.r_offset, addend = uint64_t(r.r_addend);
    auto near = [&](uint64_t target) {
      const auto distance = int64_t(target + addend - here);
      check(distance == int32_t(distance), "a distance is beyond 32 bits");
      put(base, section, r.r_offset, int32_t(distance));
    };
    switch (type) {
      case R_X86_64_NONE:
        return;
      case R_X86_64_64:
        return put(base, section, r.r_offset, address(base, number) + addend);
      case R_X86_64_PC64:
        return put(base, section, r.r_offset, address(base, number) + addend - here);
      case R_X86_64_PC32:
      case R_X86_64_PLT32:
        return near(symbol.st_shndx == SHN_UNDEF && number != 0 ? uint64_t(base) + jumps_.at(number)
                                                                : address(base, number));
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX:
        return near(uint64_t(base) + slots_.at(number));
      default:
        refuse(str_cat("it has a relocation of type ", type));
    }
  }

  Bytes bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<char> placed_;
  std::vector<uint64_t> at_;
  std::vector<Elf64_Sym> symbols_;
  std::string_view names_;
  size_t symbol_table_ = 0;
  std::map<uint32_t, uint64_t> jumps_, slots_;  // symbol -> offset
  uint64_t begin_[kKinds] = {}, end_ = 0;
};

}  // namespace

Image::Image(std::string_view object, bool lines, std::string_view title) {
  Linker linker(object);
  bytes_ = linker.total();
  check(bytes_ > 0, "it is empty");
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  STRATA_CHECK_KIND(OutOfMemory, memory != MAP_FAILED, "compile: no memory for ", bytes_, " bytes of code");
  base_ = static_cast<char*>(memory);
  try {
    linker.fill(base_);
    linker.list(base_, names_, addresses_);
    linker.protect(base_);
    if (lines) entry_ = std::make_unique<DebuggerEntry>(linker.for_debuggers(base_));
    if (profiled()) tell_profiler(linker.functions(base_), title);
  } catch (...) {
    munmap(base_, bytes_);
    throw;
  }
}

Image::~Image() {
  entry_.reset();
  munmap(base_, bytes_);
}

void* Image::symbol(std::string_view name) const {
  auto at = std::lower_bound(names_.begin(), names_.end(), name);
  return at != names_.end() && *at == name ? addresses_[size_t(at - names_.begin())] : nullptr;
}

}  // namespace strata::jit
