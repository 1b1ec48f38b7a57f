// For tests: a folder that goes away, writers of small files in every format, and the check that a
// spoiled file gives an Error and nothing worse.
#pragma once
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "data/open.hpp"

namespace onnxtrain::test {

class DataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "onnxtrain-data-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
    limit_ = memory_limit();
    set_memory_limit(memory_in_use() + (size_t(64) << 20));
  }
  void TearDown() override {
    set_memory_limit(limit_);
    set_eager_limit(0);
    std::filesystem::remove_all(dir_);
  }
  std::string at(const std::string& name) const { return dir_ + "/" + name; }
  std::string put(const std::string& name, std::string_view bytes) const {
    std::filesystem::remove(at(name));  // ext4 flushes a file that is truncated and rewritten
    std::ofstream(at(name), std::ios::binary) << bytes;
    return at(name);
  }
  static Error error_of(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      return e;
    }
    ADD_FAILURE() << "no error";
    return Error(ErrorKind::kFailed, "", "");
  }
  static std::string code(const std::function<void()>& f) { return error_of(f).code(); }
  std::string open_code(const std::string& name) const {
    return code([&] { open_dataset(at(name)); });
  }

  // Opens and reads everything; an Error is fine, anything else is not.
  static bool survives(const std::string& path) {
    try {
      const Dataset d = open_dataset(path);
      for (const std::string& c : d.columns()) d.gather_all(c);
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  // Every truncation must be refused; any changed byte must do no harm.
  void spoil(const std::string& name, const std::string& bytes, bool truncations_fail = true) {
    EXPECT_TRUE(survives(put(name, bytes)));
    const size_t step = bytes.size() < 600 ? 1 : bytes.size() / 600 + 1;
    for (size_t n = 0; n < bytes.size(); n += step) {
      const bool ok = survives(put(name, bytes.substr(0, n)));
      EXPECT_FALSE(ok && truncations_fail) << name << " cut at " << n;
    }
    for (uint64_t i = 0; i < 600; ++i) {
      std::string changed = bytes;
      const auto r = philox(1, 2, 3, i);
      changed[r[0] % changed.size()] = char(r[1]);
      if (i % 3 == 0) changed[r[2] % changed.size()] = char(0xFF);
      if (i % 5 == 0) changed.erase(r[3] % changed.size(), 1 + r[1] % 4);
      survives(put(name, changed));
    }
  }

  std::string dir_;
  size_t limit_ = 0;
};

inline std::string npy_bytes(const std::string& descr, const std::string& shape,
                             const std::string& data, bool fortran = false) {
  std::string header = "{'descr': '" + descr +
                       "', 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': " + shape + ", }";
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  std::string out = "\x93NUMPY";
  out += '\x01';
  out += '\x00';
  out += char(header.size() & 255);
  out += char(header.size() >> 8);
  return out + header + data;
}

template <class T>
std::string raw(const std::vector<T>& v) {
  return std::string(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
}

inline std::string deflated(const std::string& data, int window) {  // -15 raw, 31 gzip
  z_stream z = {};
  EXPECT_EQ(deflateInit2(&z, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&z, data.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  z.avail_in = uInt(data.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = uInt(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - z.avail_out);
  deflateEnd(&z);
  return out;
}

inline std::string gzip_bytes(const std::string& data) { return deflated(data, 31); }

inline std::string little(uint64_t v, int bytes) {
  std::string s;
  for (int i = 0; i < bytes; ++i) s += char(v >> (8 * i));
  return s;
}

struct Member {
  std::string name, data;
  bool deflate = false, zip64 = false;
  uint64_t claimed = 0;  // another size than the true one
};

inline std::string zip_bytes(const std::vector<Member>& members) {
  std::string out, directory;
  for (const Member& m : members) {
    const std::string body = m.deflate ? deflated(m.data, -15) : m.data;
    const uint64_t size = m.claimed != 0 ? m.claimed : m.data.size();
    const uint64_t crc =
        crc32(0, reinterpret_cast<const Bytef*>(m.data.data()), uInt(m.data.size()));
    const std::string common =
        little(20, 2) + little(0, 2) + little(m.deflate ? 8 : 0, 2) + little(0, 4) + little(crc, 4);
    const std::string sizes = m.zip64 ? little(0xFFFFFFFF, 4) + little(0xFFFFFFFF, 4)
                                      : little(body.size(), 4) + little(size, 4);
    const std::string extra =
        m.zip64 ? little(1, 2) + little(16, 2) + little(size, 8) + little(body.size(), 8) : "";
    directory += "PK\x01\x02" + little(20, 2) + common + sizes + little(m.name.size(), 2) +
                 little(extra.size(), 2) + little(0, 2) + little(0, 4) + little(0, 4) +
                 little(out.size(), 4) + m.name + extra;
    out += "PK\x03\x04" + common + sizes + little(m.name.size(), 2) + little(extra.size(), 2) +
           m.name + extra + body;
  }
  const size_t begin = out.size();
  return out + directory + "PK\x05\x06" + little(0, 4) + little(members.size(), 2) +
         little(members.size(), 2) + little(directory.size(), 4) + little(begin, 4) + little(0, 2);
}

inline std::string idx_bytes(int type, const std::vector<uint32_t>& dims, const std::string& data) {
  std::string out = {0, 0, char(type), char(dims.size())};
  for (uint32_t d : dims)
    for (int s = 24; s >= 0; s -= 8) out += char(d >> s);
  return out + data;
}

}  // namespace onnxtrain::test
