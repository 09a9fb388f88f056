// Vectors of the instruction set that the including file is compiled for: W floats, loads and
// stores of f32 and bf16, exp, log and the normal distribution. Everything has internal linkage.
#ifndef CLOZE_CORE_OPS_KERNELS_SIMD_H_
#define CLOZE_CORE_OPS_KERNELS_SIMD_H_

#include <cstdint>
#ifdef CLOZE_ISA
#include <immintrin.h>

#include <utility>

namespace cloze {
namespace {

#if defined(__AVX512F__)
constexpr int W = 16;
#elif defined(__AVX2__)
constexpr int W = 8;
#else
constexpr int W = 4;
#endif

typedef float VF __attribute__((vector_size(W * 4)));
typedef int32_t VI __attribute__((vector_size(W * 4)));
typedef uint32_t VU __attribute__((vector_size(W * 4)));
typedef uint16_t VH __attribute__((vector_size(W * 2)));

// A bfloat16 in memory.
struct bf16 {
  uint16_t bits;
};

#define CLOZE_INLINE inline __attribute__((always_inline))

CLOZE_INLINE VF Splat(float x) { return x - VF{}; }
CLOZE_INLINE VF AsFloat(VI x) { return (VF)x; }
CLOZE_INLINE VI AsInt(VF x) { return (VI)x; }
CLOZE_INLINE VF Abs(VF x) { return AsFloat(AsInt(x) & 0x7FFFFFFF); }
// 1.5 * 2^23: adding it rounds |x| < 2^22 to an integer, which is then in the low bits.
constexpr float kRounder = 12582912.0f;
// The four bytes at p in every lane.
CLOZE_INLINE VI SplatInts(const void* p) {
  int32_t unit;
  __builtin_memcpy(&unit, p, sizeof(unit));
  return unit + VI{};
}
#if defined(__AVX512F__)
CLOZE_INLINE VF Max(VF a, VF b) {
  return (VF)_mm512_maskz_max_ps(-1, (__m512)a, (__m512)b);
}  // unmasked, GCC 12 warns of its own header
CLOZE_INLINE VF Min(VF a, VF b) { return (VF)_mm512_maskz_min_ps(-1, (__m512)a, (__m512)b); }
// 1 / x for normal x, relative error below 1e-7.
CLOZE_INLINE VF Reciprocal(VF x) {
  const VF r = (VF)_mm512_maskz_rcp14_ps(-1, (__m512)x);
  return r + r * (1.0f - x * r);
}
#else
CLOZE_INLINE VF Max(VF a, VF b) { return a > b ? a : b; }
CLOZE_INLINE VF Min(VF a, VF b) { return a < b ? a : b; }
CLOZE_INLINE VF Reciprocal(VF x) { return 1.0f / x; }
#endif
CLOZE_INLINE int64_t MinI(int64_t a, int64_t b) { return a < b ? a : b; }
CLOZE_INLINE int64_t CeilDiv(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }
CLOZE_INLINE int64_t RoundUp(int64_t n, int64_t unit) { return CeilDiv(n, unit) * unit; }
CLOZE_INLINE int64_t MaxI(int64_t a, int64_t b) { return a > b ? a : b; }

CLOZE_INLINE VF Load(const float* p) {
  VF v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
CLOZE_INLINE void Store(float* p, VF v) { __builtin_memcpy(p, &v, sizeof(v)); }
// GCC 12 splits __builtin_convertvector into half-width operations.
CLOZE_INLINE VU Widen(VH h) {
#if defined(__AVX512F__)
  return (VU)_mm512_maskz_cvtepu16_epi32(-1, (__m256i)h);
#elif defined(__AVX2__)
  return (VU)_mm256_cvtepu16_epi32((__m128i)h);
#else
  return __builtin_convertvector(h, VU);
#endif
}
CLOZE_INLINE VU LoadBits(const bf16* p) {
  VH h;
  __builtin_memcpy(&h, p, sizeof(h));
  return Widen(h);
}
CLOZE_INLINE VF Load(const bf16* p) { return (VF)(LoadBits(p) << 16); }
// Rounds to nearest even. A NaN stays a NaN unless all its bits are set, which no operation
// produces. The AVX512_BF16 instruction treats denormals as 0.
CLOZE_INLINE VH Round(VF v) {
#ifdef __AVX512BF16__
  return (VH)_mm512_cvtneps_pbh((__m512)v);
#else
  const VU u = (VU)v;
  return __builtin_convertvector((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16, VH);
#endif
}
CLOZE_INLINE void Store(bf16* p, VF v) {
  const VH h = Round(v);
  __builtin_memcpy(p, &h, sizeof(h));
}
// Interleaves two rows: `even` as bf16 in the low halves of the lanes, `odd` in the high ones.
CLOZE_INLINE VF PairBf16(VF even, VF odd) {
  return (VF)(Widen(Round(even)) | Widen(Round(odd)) << 16);
}

// Loads or stores the first n (< W) elements; LoadPart sets the others to 0.
template <typename T>
CLOZE_INLINE VF LoadPart(const T* p, int64_t n) {
  T t[W] = {};
  __builtin_memcpy(t, p, n * sizeof(T));
  return Load(t);
}
template <typename T>
CLOZE_INLINE void StorePart(T* p, VF v, int64_t n) {
  T t[W];
  Store(t, v);
  __builtin_memcpy(p, t, n * sizeof(T));
}

// A position in a row: loads and stores W elements from c on or, unless `whole`, the n that remain.
template <bool whole>
struct Position {
  int64_t c, n;
  template <typename T>
  CLOZE_INLINE VF operator()(const T* p) const {
    if constexpr (whole) return Load(p + c);
    return LoadPart(p + c, n);
  }
  template <typename T>
  CLOZE_INLINE void Set(T* p, VF v) const {
    if constexpr (whole) return Store(p + c, v);
    StorePart(p + c, v, n);
  }
  // Zeroes the lanes after the last element.
  CLOZE_INLINE VF Only(VF v) const {
    if constexpr (whole) return v;
    float t[W];
    Store(t, v);
    return LoadPart(t, n);
  }
};

// Calls f(position) for every position of a row of n elements.
template <typename F>
CLOZE_INLINE void ForLanes(int64_t n, F f) {
  int64_t c = 0;
  for (; c + W <= n; c += W) f(Position<true>{c, W});
  if (c < n) f(Position<false>{c, n - c});
}

// Calls f<n>() for n in [1, max]; does nothing for other n.
template <int max, typename F>
CLOZE_INLINE void WithConstant(int64_t n, const F& f) {
  if (n == max) return f.template operator()<max>();
  if constexpr (max > 1) WithConstant<max - 1>(n, f);
}

// 0, 1, 2, ...
template <int... lane>
CLOZE_INLINE VI Lanes(std::integer_sequence<int, lane...>) {
  return VI{lane...};
}
CLOZE_INLINE VI Lanes() { return Lanes(std::make_integer_sequence<int, W>()); }

// Swaps lanes i and i ^ half.
template <int half, int... lane>
CLOZE_INLINE VF Swapped(VF v, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(v, v, (lane ^ half)...);
}

// Reduces all lanes by f, halves first.
template <int half = W / 2, typename F>
CLOZE_INLINE float Fold(VF v, F f) {
  v = f(v, Swapped<half>(v, std::make_integer_sequence<int, W>()));
  if constexpr (half > 1) return Fold<half / 2>(v, f);
  return v[0];
}
CLOZE_INLINE float Sum(VF v) {
  return Fold(v, [](VF a, VF b) { return a + b; });
}
CLOZE_INLINE float MaxLane(VF v) { return Fold(v, Max); }

// Returns the sum of f(position), which is 0 in lanes after the last element, over a row of n
// elements. Computes four sums that do not wait for each other.
template <typename F>
CLOZE_INLINE float SumOver(int64_t n, F f) {
  VF sums[4] = {};
  int64_t c = 0;
  for (; c + 4 * W <= n; c += 4 * W) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[i] += f(Position<true>{c + i * W, W});
  }
  for (; c + W <= n; c += W) sums[0] += f(Position<true>{c, W});
  if (c < n) sums[0] += f(Position<false>{c, n - c});
  return Sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// For rows at places that the CPU does not foresee.
template <typename T>
CLOZE_INLINE void PrefetchRow(const T* row, int64_t n) {
  for (int64_t c = 0; c < n; c += 64 / sizeof(T)) __builtin_prefetch(row + c);
}

// Horner scheme; c holds the coefficient of the highest power first.
template <int n>
CLOZE_INLINE VF Polynomial(VF x, const float (&c)[n]) {
  VF p = Splat(c[0]);
  for (int i = 1; i < n; ++i) p = p * x + c[i];
  return p;
}

// e^x, relative error below 2e-7. 0 below -87.33 (denormals would take a hundred times as long);
// finite above 88; NaN for NaN.
CLOZE_INLINE VF Exp(VF x) {
  const VF clamped = Min(Splat(88.0f), Max(Splat(-87.33f), x));  // in this order a NaN stays
#ifdef __AVX512F__
  const VF n = (VF)_mm512_maskz_roundscale_ps(-1, (__m512)(clamped * 1.44269504f), 8);
#else
  const VF shifted = clamped * 1.44269504f + kRounder;
  const VF n = shifted - kRounder;
#endif
  const VF r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  const VF q = Polynomial(r, {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f});
  const VF p = q * (r * r) + r + 1.0f;
#ifdef __AVX512F__
  const VF e = (VF)_mm512_maskz_scalef_ps(-1, (__m512)p, (__m512)n);
#else
  const VF e = p * AsFloat((AsInt(shifted) - AsInt(Splat(kRounder)) + 127) << 23);
#endif
  return x < Splat(-87.33f) ? VF{} : e;
}

// The natural logarithm of a positive normal number, relative error below 2e-7. Cephes, logf.
CLOZE_INLINE VF Log(VF x) {
  constexpr int32_t kRootOfHalf = 0x3F3504F3;  // the mantissa is between it and sqrt(2)
  const VI exponent = (AsInt(x) - kRootOfHalf) >> 23;
  const VF r = AsFloat(AsInt(x) - (exponent << 23)) - 1.0f, square = r * r,
           n = __builtin_convertvector(exponent, VF);
  const VF q = Polynomial(r,
      {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
          -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f});
  return r + (q * r * square + n * -2.12194440e-4f - 0.5f * square) + n * 0.693359375f;
}

// Cumulative distribution (Phi) and density (phi) of the standard normal. Abramowitz &
// Stegun 7.1.26, absolute error below 2e-7.
struct Normal {
  VF cumulative, density;
};
CLOZE_INLINE Normal NormalOf(VF x) {
  const VF z = Abs(x) * 0.70710678f;
  const VF t = Reciprocal(1.0f + 0.3275911f * z);
  const VF e = Exp(-z * z);
  const VF p =
      Polynomial(t, {1.061405429f, -1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f});
  const VF tail = 0.5f * p * t * e;
  return {x < VF{} ? tail : 1.0f - tail, e * 0.39894228f};
}

}  // namespace
}  // namespace cloze

#endif  // CLOZE_ISA
#endif  // CLOZE_CORE_OPS_KERNELS_SIMD_H_
