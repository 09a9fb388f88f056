// Creating files and directories, for those who have to know how it failed or how to undo it.
#ifndef CLOZE_CORE_BASE_CREATE_H_
#define CLOZE_CORE_BASE_CREATE_H_

#include <string>
#include <vector>

#include "core/base/status.h"

namespace cloze {

// What a failed attempt to create something is: kIo when the disk is full or broken, else kCannotCreate.
Exit ExitOfCreate(int error);

// As MakeDirectories(path) in core/base/file.h; appends to *made those that were missing, the outermost first, also before an error.
absl::Status MakeDirectories(const std::string& path, std::vector<std::string>* made);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_CREATE_H_
