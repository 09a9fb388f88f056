// Defaults of the fields of a spec; see also FillSizes and EffectiveSpec in proto/spec.h.
#ifndef CLOZE_PROTO_SPEC_DEFAULTS_H_
#define CLOZE_PROTO_SPEC_DEFAULTS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>

namespace cloze {

// True if the default is in the field's range. Otherwise it comes from the preset.
bool DefaultIsValid(const google::protobuf::FieldDescriptor* field);

// Returns the value of a singular field in text format, or its default if it is not set.
std::string ValueText(
    const google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field);

}  // namespace cloze

#endif  // CLOZE_PROTO_SPEC_DEFAULTS_H_
