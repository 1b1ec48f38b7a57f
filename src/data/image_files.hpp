// Which files and folders of an image folder are meant.
#pragma once
#include <string>
#include <vector>

namespace onnxtrain {

// Hidden, or of the kind that other systems and their archives add.
bool is_hidden_name(const std::string& name);
// By the ending of the name.
bool is_image_name(const std::string& path);
// Formats that people have and that are not read.
bool is_other_image_name(const std::string& path);

// Names in the folder in byte order: the same on every machine. Without hidden ones, and without
// what archives of other systems add.
std::vector<std::string> folders_in(const std::string& folder);
std::vector<std::string> images_in(const std::string& folder);
// Images at any depth, as paths below the folder ("a/1.png").
std::vector<std::string> images_below(const std::string& folder);
// One image of a format that is not read, at any depth; "" when there is none.
std::string other_image_below(const std::string& folder);

// The folder that holds the folders of classes: `folder`, or the only folder in it when that holds
// several folders and neither holds images.
std::string class_root(std::string folder);

// The names of folders that every folder of a class holds besides no image of its own: these may be
// the classes themselves. Empty when there is no doubt.
std::vector<std::string> classes_one_deeper(const std::string& root);

}  // namespace onnxtrain
