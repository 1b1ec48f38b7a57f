// Files that earlier versions of this project wrote and that lack what newer ones say. Everything
// that still has to be guessed for them is guessed here.
#pragma once
#include "model/model.hpp"

namespace onnxtrain {

// Lowered files and files from PyTorch once said by a name alone which value is the training-mode
// copy of which: "X_train" for "X". Does nothing for other files.
void mark_copies_by_name(Model& m);

}  // namespace onnxtrain
