// Whether the build has AddressSanitizer.
#ifndef CLOZE_TESTS_SANITIZED_H_
#define CLOZE_TESTS_SANITIZED_H_

namespace cloze {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace cloze

#endif  // CLOZE_TESTS_SANITIZED_H_
