// Replaces library functions that new glibc and libstdc++ versions export only under new symbol versions. One binary
// then runs on every Linux with glibc 2.28 or newer and the libstdc++ of GCC 8 or newer. The linker redirects the calls
// to this file (--wrap, see CMakeLists.txt). scripts/release rejects a binary that requires newer versions.
#if defined(__linux__) && defined(__GLIBC__)
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>

// Version of the symbols in the oldest glibc that each architecture has.
#if defined(__x86_64__)
#define OLDEST_GLIBC "GLIBC_2.2.5"
#else
#define OLDEST_GLIBC "GLIBC_2.17"
#endif

__asm__(".symver carillon_old_exp, exp@" OLDEST_GLIBC);
__asm__(".symver carillon_old_pthread_once, pthread_once@" OLDEST_GLIBC);
__asm__(".symver carillon_old_wait, _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");

namespace {

constexpr long kNanosecondsPerSecond = 1'000'000'000;

/// The C locale, whose decimal separator is always a point.
locale_t c_locale() {
  static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return locale;
}

}  // namespace

extern "C" {

double carillon_old_exp(double);
int carillon_old_pthread_once(pthread_once_t*, void (*)());
void carillon_old_wait(std::condition_variable*, std::unique_lock<std::mutex>*);

/// Must stay 0, because any other value makes libstdc++ use non-atomic reference counts.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

double __wrap_exp(double x) { return carillon_old_exp(x); }

int __wrap_pthread_once(pthread_once_t* once, void (*routine)()) { return carillon_old_pthread_once(once, routine); }

int __wrap_fstat(int descriptor, struct stat* status) {
  return static_cast<int>(syscall(SYS_fstat, descriptor, status));
}

int __wrap_stat(const char* path, struct stat* status) {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, status, 0));
}

/// Converts the deadline to the system clock, which pthread_cond_timedwait uses. If the system time changes, the wait
/// may end at a wrong time, but callers check their condition again.
int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until) {
  timespec now{}, system{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &system);
  long nanoseconds = system.tv_nsec + until->tv_nsec - now.tv_nsec;
  timespec limit{system.tv_sec + until->tv_sec - now.tv_sec, nanoseconds};
  for (; limit.tv_nsec < 0; limit.tv_sec--) limit.tv_nsec += kNanosecondsPerSecond;
  for (; limit.tv_nsec >= kNanosecondsPerSecond; limit.tv_sec++) limit.tv_nsec -= kNanosecondsPerSecond;
  return pthread_cond_timedwait(condition, mutex, &limit);
}

void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(std::condition_variable* self,
                                                                       std::unique_lock<std::mutex>* lock) {
  carillon_old_wait(self, lock);
}

// Older versions of libstdc++ have no move operations for runtime_error. A copy is cheap, because the string of a
// runtime_error is reference-counted.
void __wrap__ZNSt13runtime_errorC2EOS_(std::runtime_error* self, const std::runtime_error* other) {
  new (self) std::runtime_error(*other);
}
void __wrap__ZNSt13runtime_errorC1EOS_(std::runtime_error* self, const std::runtime_error* other) {
  new (self) std::runtime_error(*other);
}
std::runtime_error* __wrap__ZNSt13runtime_erroraSEOS_(std::runtime_error* self, const std::runtime_error* other) {
  return &(*self = *other);
}

/// Parses a number. The caller has checked that the text has JSON syntax.
std::from_chars_result __wrap__ZSt10from_charsPKcS0_RdSt12chars_format(const char* first, const char* last,
                                                                       double* value, std::chars_format) {
  const std::string text(first, last);
  char* end = nullptr;
  errno = 0;
  const double read = strtod_l(text.c_str(), &end, c_locale());
  if (end == text.c_str()) return {first, std::errc::invalid_argument};
  const char* const stop = first + (end - text.c_str());
  if (errno == ERANGE && (read == 0 || std::isinf(read))) return {stop, std::errc::result_out_of_range};
  *value = read;
  return {stop, {}};
}

/// Writes 15, 16 or 17 digits: as few as are needed to read back the same number.
std::to_chars_result __wrap__ZSt8to_charsPcS_d(char* first, char* last, double value) {
  char text[32];
  const locale_t before = uselocale(c_locale());
  int length = 0;
  for (int digits = 15; digits <= 17; digits++) {
    length = std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod_l(text, nullptr, c_locale()) == value) break;
  }
  uselocale(before);
  if (length > last - first) return {last, std::errc::value_too_large};
  return {std::char_traits<char>::copy(first, text, length) + length, {}};
}

}  // extern "C"
#endif
