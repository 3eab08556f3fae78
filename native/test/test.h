#pragma once
// A minimal unit test harness, because machines that build the core may have no test library.
#include <cmath>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>

namespace carillon::test {

void add(const char* file, const char* name, std::function<void()> body);
std::string fixture_directory();  // a fresh temporary directory, removed when the program ends

struct Registration {
  Registration(const char* file, const char* name, std::function<void()> body) { add(file, name, std::move(body)); }
};

/// Thrown by SKIP. The message is the reason.
struct SkippedTest : std::runtime_error {
  using std::runtime_error::runtime_error;
};

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif
/// Reason to skip a test that checks what a training run learns. Shorter tests run the same code under sanitizers.
inline constexpr const char* kTooSlowSanitized = "takes minutes with sanitizers";

[[noreturn]] inline void fail_at(const char* file, int line, const std::string& what) {
  std::ostringstream message;
  message << file << ":" << line << ": " << what;
  throw std::runtime_error(message.str());
}

}  // namespace carillon::test

#define TEST_CONCAT(a, b) a##b
/// __COUNTER__ instead of __LINE__, because several files are compiled as one.
#define TEST(name) TEST_NUMBERED(name, __COUNTER__)
#define TEST_NUMBERED(name, number)                                                                         \
  static void TEST_CONCAT(test_body_, number)();                                                           \
  static ::carillon::test::Registration TEST_CONCAT(test_entry_, number)(__FILE__, name,                    \
                                                                         TEST_CONCAT(test_body_, number));  \
  static void TEST_CONCAT(test_body_, number)()
/// Skips a test that this machine cannot run. Skipped tests are counted and listed with their reason.
#define SKIP(reason) throw ::carillon::test::SkippedTest(reason)
#define EXPECT(condition) \
  if (!(condition)) ::carillon::test::fail_at(__FILE__, __LINE__, "EXPECT(" #condition ")")
#define EXPECT_EQ(a, b)                                           \
  do {                                                            \
    const auto left_ = (a);                                       \
    const auto right_ = (b);                                      \
    if (!(left_ == right_)) {                                     \
      std::ostringstream text_;                                   \
      text_ << #a " is " << left_ << ", expected " << right_;     \
      ::carillon::test::fail_at(__FILE__, __LINE__, text_.str()); \
    }                                                             \
  } while (false)
#define EXPECT_NEAR(a, b, tolerance)                                                       \
  do {                                                                                     \
    const double left_ = (a), right_ = (b);                                                \
    if (!(std::abs(left_ - right_) <= (tolerance))) {                                      \
      std::ostringstream text_;                                                            \
      text_ << #a " is " << left_ << ", expected " << right_ << " within " << (tolerance); \
      ::carillon::test::fail_at(__FILE__, __LINE__, text_.str());                          \
    }                                                                                      \
  } while (false)
/// The statement must throw an exception whose message contains `fragment`.
#define EXPECT_THROWS(statement, fragment)                                                   \
  do {                                                                                       \
    std::string caught_;                                                                     \
    bool threw_ = false;                                                                     \
    try {                                                                                    \
      statement;                                                                             \
    } catch (const std::exception& error) {                                                  \
      threw_ = true;                                                                         \
      caught_ = error.what();                                                                \
    }                                                                                        \
    if (!threw_) ::carillon::test::fail_at(__FILE__, __LINE__, #statement " threw nothing"); \
    if (caught_.find(fragment) == std::string::npos)                                         \
      ::carillon::test::fail_at(__FILE__, __LINE__, #statement " threw: " + caught_);        \
  } while (false)
