#include "tools/html.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/attention_page.h"

namespace cloze {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

TEST(HtmlEscape, LeavesNoMarkup) {
  EXPECT_EQ(
      HtmlEscape("<b a=\"x\" c='y'>&amp;"), "&lt;b a=&quot;x&quot; c=&#39;y&#39;&gt;&amp;amp;");
  EXPECT_EQ(HtmlEscape("na\u00efve \u4e2d \U0001F600\tx\n"), "na\u00efve \u4e2d \U0001F600\tx\n");
  EXPECT_EQ(HtmlEscape(absl::string_view("\0\x1b[31m\x7f\u0085\u202e\u2066\xff", 16)),
      "\uFFFD\uFFFD[31m\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(HtmlEscape(""), "");
}

TEST(HtmlPage, LoadsNothingAndRunsNothing) {
  const std::string page = HtmlPage("</title><script>alert(1)</script>", "p {}", "<p>x</p>");
  EXPECT_THAT(page, HasSubstr("content=\"default-src 'none'; style-src 'unsafe-inline'"));
  EXPECT_THAT(page, HasSubstr("<title>&lt;/title&gt;&lt;script&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

// Sets that no token is special or in a second text.
std::string Page(AttentionMaps maps) {
  maps.special.resize(maps.tokens.size());
  maps.second.resize(maps.tokens.size());
  return AttentionPage(std::move(maps));
}

TEST(AttentionPage, ShowsEveryHeadAndTheMeanWithEscapedTokens) {
  AttentionMaps maps;
  maps.model = "runs/<i>";
  maps.text = "<script>alert(1)</script>";
  maps.tokens = {"[CLS]", "<script>", "\"&'", "averyveryverylongtoken"};
  maps.heads = 3;
  maps.probs.assign(2, std::vector<float>(3 * 16, 0.25f));
  const std::string page = Page(maps);
  EXPECT_EQ(Count(page, "<symbol id=\"m-"), 8);
  EXPECT_EQ(Count(page, "<symbol id=\"w-"), 8);
  EXPECT_EQ(Count(page, "<section class=\"large\""), 8);
  EXPECT_EQ(Count(page, " href=\"#m-l2h3\""), 2);  // small and large
  EXPECT_THAT(page, HasSubstr("Attention of runs/&lt;i&gt;</h1>"));
  EXPECT_THAT(page, HasSubstr("aria-label=\"Layer 2, mean\""));
  EXPECT_THAT(page, HasSubstr("<title>[CLS] \u2192 &lt;script&gt; 25.0 %</title>"));
  EXPECT_THAT(page, HasSubstr("@media (prefers-color-scheme: dark)"));
  EXPECT_THAT(page, HasSubstr("<a href=\"#l1h1\" title=\"Layer 1, head 1\">"));
  EXPECT_THAT(page, HasSubstr("M0 0h4v1h-4zM0 1h4v1h-4z"));  // rows of equal cells
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(page, HasSubstr("averyveryvery\u2026</text>"));
  for (const char* bad :
      {"<script", "http:", "https:", "url(", "src=", "javascript", "@import", "onload"})
    EXPECT_THAT(page, Not(HasSubstr(bad)));
}

TEST(AttentionPage, OnlyCellsBelowAThousandthStayWhite) {
  AttentionMaps maps;
  maps.tokens = {"a", "b"};
  maps.heads = 1;
  maps.probs = {{0.0009f, 0.9991f, 0.0011f, 0.9989f}};
  const std::string page = Page(maps);
  EXPECT_THAT(page, HasSubstr("M0 1h1v1h-1z"));  // column 0 of row 1
  EXPECT_THAT(page, Not(HasSubstr("M0 0h1v1h-1z")));
}

TEST(AttentionPage, MeansHeadsAndLeavesOutSpecialTokens) {
  AttentionMaps maps;
  maps.tokens = {"[CLS]", "a", "b"};
  maps.special = {true, false, false};
  maps.second = {false, false, true};
  maps.heads = 2;
  maps.probs = {{1, 0, 0, 0.5f, 0.5f, 0, 0, 1, 0, 1, 0, 0, 0.9f, 0.1f, 0, 0, 0.5f, 0.5f}};
  const std::string page = AttentionPage(maps);
  EXPECT_THAT(page, HasSubstr("<title>a \u2192 [CLS] 70.0 %</title>"));  // of 50 % and 90 %
  EXPECT_THAT(page, HasSubstr("<title>b \u2192 b 25.0 %</title>"));
  EXPECT_THAT(
      page, HasSubstr("<symbol id=\"w-l1h2\" viewBox=\"0 0 3 3\"><path class=\"c11\" "
                      "d=\"M1 2h2v1h-2z\"/><path class=\"c15\" d=\"M1 1h1v1h-1z\"/></symbol>"));
  EXPECT_EQ(Count(page, "<span class=\"second\">b</span>"), 1);
  EXPECT_EQ(Count(page, "class=\"second\""), 3);  // the list and two sides
}

TEST(AttentionPage, ManyTokensStaySmallAndShowTheLargestOfARow) {
  AttentionMaps maps;
  maps.tokens.assign(128, "x");
  maps.heads = 12;
  maps.probs.assign(6, std::vector<float>(12 * 128 * 128));
  for (auto& layer : maps.probs) {
    for (size_t i = 0; i < layer.size(); ++i) layer[i] = i % 7 == 0 ? 0.03f : 0.002f;
  }
  const std::string page = Page(maps);
  EXPECT_LT(page.size(), 20 << 20);
  EXPECT_EQ(Count(page, "<title>x \u2192 x 3.0 %, x 3.0 %, x 3.0 %, x 3.0 %, x 3.0 %</title>"),
      6 * 12 * 128);  // the means are smaller
}

}  // namespace
}  // namespace cloze
