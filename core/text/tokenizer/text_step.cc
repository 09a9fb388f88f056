#include "core/text/tokenizer/text_step.h"

#include "core/text/unicode/unicode.h"

namespace cloze {

void NormalText::Set(absl::string_view raw, bool track) {
  tracked = track;
  text.clear();
  source.clear();
  if (!track && IsUtf8(raw)) {
    text.assign(raw.data(), raw.size());
    return;
  }
  for (size_t at = 0; at < raw.size();) {
    const CodePoint c = CodePointAt(raw, at);
    AppendUtf8(c.value, &text);
    if (track)
      source.resize(text.size(), {static_cast<int64_t>(at), static_cast<int64_t>(at + c.size)});
    at += c.size;
  }
}

void TextEdit::Begin() {
  if (changed_) return;
  changed_ = true;
  text_.next_text.clear();
  text_.next_source.clear();
}

void TextEdit::KeepTo(size_t position) {
  if (position == at_) return;
  Begin();
  text_.next_text.append(text_.text, at_, position - at_);
  if (text_.tracked) {
    const auto from = text_.source.begin();
    text_.next_source.insert(text_.next_source.end(), from + at_, from + position);
  }
  at_ = position;
}

void TextEdit::Append(absl::string_view bytes, size_t from) {
  Begin();
  text_.next_text.append(bytes.data(), bytes.size());
  if (text_.tracked)
    text_.next_source.resize(
        text_.next_text.size(), from < text_.source.size() ? text_.source[from] : Span{});
}

size_t TextEdit::SizeAt(size_t at) const {
  return at < text_.text.size() ? CodePointAt(text_.text, at).size : 0;
}

void TextEdit::Drop(size_t bytes) {
  Begin();
  at_ += bytes;
}

void TextEdit::Replace(size_t bytes, absl::string_view with) {
  const size_t end = at_ + bytes;
  while (!with.empty()) {
    const size_t size = CodePointAt(with, 0).size;
    const bool inserted = at_ == end;
    Append(with.substr(0, size), inserted && at_ > 0 ? at_ - 1 : at_);
    if (!inserted) at_ += SizeAt(at_);
    with.remove_prefix(size);
  }
  Drop(end - at_);
}

void TextEdit::ReplaceWhole(size_t bytes, absl::string_view with) {
  Append(with, at_ + bytes - 1);
  at_ += bytes;
}

void TextEdit::Put(char32_t c, int change) {
  std::string bytes;
  AppendUtf8(c, &bytes);
  Append(bytes, change > 0 && at_ > 0 ? at_ - 1 : at_);
  for (; change <= 0; ++change) at_ += SizeAt(at_);
}

void TextEdit::Finish() {
  if (!changed_) return;
  KeepTo(text_.text.size());
  text_.text.swap(text_.next_text);
  text_.source.swap(text_.next_source);
}

void ReplaceEach(NormalText* text, absl::FunctionRef<void(char32_t, std::string*)> append) {
  TextEdit edit(text);
  const std::string& old = text->text;
  std::string with;
  for (size_t at = 0; at < old.size();) {
    const CodePoint c = CodePointAt(old, at);
    with.clear();
    append(c.value, &with);
    if (old.compare(at, c.size, with) != 0) {
      edit.KeepTo(at);
      edit.Replace(c.size, with);
    }
    at += c.size;
  }
}

namespace {

class LowercaseStep final : public TextStep {
 public:
  void Apply(NormalText* text) const override {
    ReplaceEach(text, [](char32_t c, std::string* with) {
      for (const char32_t lower : Lowercase(c)) AppendUtf8(lower, with);
    });
  }
};

class DropStep final : public TextStep {
 public:
  explicit DropStep(bool (*drops)(char32_t)) : drops_(drops) {}

  void Apply(NormalText* text) const override {
    TextEdit edit(text);
    const std::string& old = text->text;
    for (size_t at = 0; at < old.size();) {
      const CodePoint c = CodePointAt(old, at);
      if (drops_(c.value)) {
        edit.KeepTo(at);
        edit.Drop(c.size);
      }
      at += c.size;
    }
  }

 private:
  bool (*const drops_)(char32_t);
};

class StripStep final : public TextStep {
 public:
  StripStep(bool left, bool right) : left_(left), right_(right) {}

  void Apply(NormalText* text) const override {
    const std::string& old = text->text;
    size_t begin = old.size(), end = 0;
    for (size_t at = 0; at < old.size();) {
      const CodePoint c = CodePointAt(old, at);
      if (!IsSpace(c.value)) {
        begin = std::min(begin, at);
        end = at + c.size;
      }
      at += c.size;
    }
    TextEdit edit(text);
    if (left_) edit.Drop(begin);
    if (!right_ || (left_ && begin > end)) return;  // Drop(begin) has dropped all
    edit.KeepTo(end);
    edit.Drop(old.size() - end);
  }

 private:
  const bool left_, right_;
};

class ReplaceStep final : public TextStep {
 public:
  ReplaceStep(std::string pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void Apply(NormalText* text) const override {
    TextEdit edit(text);
    for (size_t at = 0; (at = text->text.find(pattern_, at)) != std::string::npos;) {
      edit.KeepTo(at);
      edit.ReplaceWhole(pattern_.size(), content_);
      at += pattern_.size();
    }
  }

 private:
  const std::string pattern_, content_;
};

class ReplaceRunsStep final : public TextStep {
 public:
  ReplaceRunsStep(bool spaces, std::string content)
      : spaces_(spaces), content_(std::move(content)) {}

  void Apply(NormalText* text) const override {
    TextEdit edit(text);
    const std::string& old = text->text;
    if (!spaces_) {
      for (size_t at = 0, end; (at = old.find("  ", at)) != std::string::npos; at = end) {
        end = std::min(old.find_first_not_of(' ', at), old.size());
        edit.KeepTo(at);
        edit.ReplaceWhole(end - at, content_);
      }
      return;
    }
    for (size_t at = 0; at < old.size();) {
      const CodePoint first = CodePointAt(old, at);
      size_t end = at + first.size;
      int64_t count = IsSpace(first.value);
      while (count > 0 && end < old.size() && IsSpace(CodePointAt(old, end).value)) {
        end += CodePointAt(old, end).size;
        ++count;
      }
      if (count > 1 || first.value == '\n' || first.value == '\r' || first.value == '\t') {
        edit.KeepTo(at);
        edit.ReplaceWhole(end - at, content_);
      }
      at = end;
    }
  }

 private:
  const bool spaces_;
  const std::string content_;
};

}  // namespace

std::shared_ptr<const TextStep> MakeLowercase() { return std::make_shared<LowercaseStep>(); }
std::shared_ptr<const TextStep> MakeDrop(bool (*drops)(char32_t)) {
  return std::make_shared<DropStep>(drops);
}
std::shared_ptr<const TextStep> MakeStrip(bool left, bool right) {
  return std::make_shared<StripStep>(left, right);
}
std::shared_ptr<const TextStep> MakeReplace(std::string pattern, std::string content) {
  return std::make_shared<ReplaceStep>(std::move(pattern), std::move(content));
}
std::shared_ptr<const TextStep> MakeReplaceRuns(bool spaces, std::string content) {
  return std::make_shared<ReplaceRunsStep>(spaces, std::move(content));
}

}  // namespace cloze
