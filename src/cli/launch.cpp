// launch: starts a command in several processes, and again from its last checkpoint when one is
// lost.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/narration.hpp"
#include "core/error.hpp"
#include "core/shell.hpp"
#include "core/threads.hpp"

namespace onnxtrain::cli {

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct LaunchFlags {
  int processes = 2, restarts = 0;
  std::string hosts;
  Words command;
};

volatile std::sig_atomic_t child = 0, signalled = 0;

void pass_on(int signal) {
  signalled = 1;
  if (child > 0) kill(pid_t(child), signal);
}

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string rest = path ? path : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (access((rest.substr(0, end) + "/" + program).c_str(), X_OK) == 0) return true;
    rest.erase(0, std::min(rest.size(), end + 1));
  }
  return false;
}

Words launcher(const LaunchFlags& f) {
  const std::string n = std::to_string(f.processes);
  if (std::getenv("SLURM_JOB_ID") && in_path("srun")) {
    Words w = {"srun", "--ntasks=" + n, "--kill-on-bad-exit=1"};
    if (!f.hosts.empty()) w.push_back("--nodefile=" + f.hosts);
    return w;
  }
  if (in_path("mpirun")) {
    Words w = {"mpirun", "-n", n};
    if (!f.hosts.empty()) w.insert(w.end(), {"--hostfile", f.hosts});
    return w;
  }
  throw Error(ErrorKind::kFailed, "OT5040",
              "there is neither mpirun nor, in a Slurm job, srun to start processes with",
              "Debian: apt-get install openmpi-bin libopenmpi-dev   then: make mpi");
}

// What Open MPI wants for root and for more processes than cores (versions 4 and 5).
void set_environment() {
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                           "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"})
    if (geteuid() == 0) setenv(name, "1", 0);
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
  setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 0);
}

int run_words(const Words& words) {
  std::string shown;
  for (const std::string& w : words) shown += (shown.empty() ? "" : " ") + shell_word(w);
  say("launch", shown);
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    execvp(argv[0], argv.data());
    _exit(127);
  }
  if (pid < 0) throw Error(ErrorKind::kFailed, "OT5040", "no process could be started");
  child = pid;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The run folder of a training: --out, --resume, or the one that was made last.
std::string run_folder(const Words& command) {
  for (const char* flag : {"--out", "--resume"})
    for (size_t k = 0; k < command.size(); ++k) {
      if (command[k] == flag && k + 1 < command.size()) return command[k + 1];
      if (command[k].starts_with(std::string(flag) + "="))
        return command[k].substr(command[k].find('=') + 1);
    }
  std::error_code ec;
  const fs::path latest = fs::canonical("runs/latest", ec);
  return ec ? std::string() : latest.string();
}

// A mistake of the user's stays one; a lost process, or the end of memory, does not.
constexpr int kInterrupted = 130;
bool worth_another_try(int code) { return code == 1 || (code > 127 && code != kInterrupted); }

// Before any process is started: each of them would say it.
void check_command(const CLI::App& all, const std::string& name) {
  const auto named = all.get_subcommands([&](const CLI::App* c) { return c->get_name() == name; });
  if (name == "onnxtrain" || !named.empty()) return;
  const std::string hint = suggestion(all, name);
  usage_error("OT0001", cat("there is no command '", name, "'"),
              hint.empty() ? "onnxtrain --help" : hint);
}

int launch(const LaunchFlags& f) {
  std::error_code ec;
  const std::string self = fs::read_symlink("/proc/self/exe", ec).string();
  const std::string latest = fs::canonical("runs/latest", ec).string();
  set_environment();
  Words command = f.command;
  if (!command.empty() && command[0] == "onnxtrain") command.erase(command.begin());
  std::signal(SIGINT, pass_on);
  std::signal(SIGTERM, pass_on);
  for (int turn = 0;; ++turn) {
    Words words = launcher(f);
    words.push_back(self);
    words.insert(words.end(), command.begin(), command.end());
    const int code = run_words(words);
    // mpirun and srun say 1 or the signal where the processes have ended as interrupted ones
    if (signalled && worth_another_try(code)) return kInterrupted;
    if (code == 0 || signalled || turn >= f.restarts || !worth_another_try(code)) return code;
    const std::string folder = run_folder(command);
    const bool resumable = !command.empty() && command[0] == "train" && !folder.empty() &&
                           folder != latest && fs::exists(folder + "/checkpoints/last.train.onnx");
    if (resumable) command = {"train", "--resume", folder};
    say("restart", cat(turn + 1, " of ", f.restarts, resumable ? ", from " + folder : ""));
  }
}

}  // namespace

void add_launch(Registry& r) {
  static LaunchFlags f;
  static CLI::App* c = nullptr;
  c = r.add("launch", "run a command in several processes, by mpirun or srun",
            "  onnxtrain launch -n 4 -- train cnn.onnx --data mnist/\n"
            "  onnxtrain launch -n 8 --hostfile hosts --restarts 3 -- train ...");
  c->add_option("-n,--processes", f.processes, "how many")->check(CLI::PositiveNumber);
  c->add_option("--restarts", f.restarts,
                "start again from the last checkpoint when a process is lost, this many times")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--hostfile", f.hosts, "a file with the hosts, as mpirun takes it");
  c->add_option("COMMAND", f.command, "a command of onnxtrain with its options, after --")
      ->required();
  r.on(c, [] {
    check_command(*c->get_parent(), f.command[0]);
    return launch(f);
  });
}

}  // namespace onnxtrain::cli
