// The program `cloze`: its commands.
#include "tools/command.h"

namespace cloze {

const Program kProgram = {"cloze", "Pretrains, fine-tunes and runs BERT-style encoders on CPUs.",
    "Examples:\n"
    "  cloze help finetune\n"
    "  cloze finetune tools/specs/sst2.textproto --plan\n\n"
    "`cloze COMMAND --help` describes a command, `cloze spec explain` the fields of a spec.\n"
    "Exit codes: 0 success, 2 usage, 65 data, 66 input missing, 69 CPU, 70 internal, 73 output "
    "exists,\n74 I/O, 75 interrupted, 76 mismatch, 77 limit, 78 spec.",
    /*needs_command=*/true, [](Command& root, CommandLine*) {
#define CLOZE_ADD(Name) Add##Name(root);
      CLOZE_COMMANDS(CLOZE_ADD)
#undef CLOZE_ADD
    }};

}  // namespace cloze
