// The command line tool. What it does is in entry.cpp.
extern "C" int ot_command_line(int argc, char** argv);

int main(int argc, char** argv) { return ot_command_line(argc, argv); }
