// launch: starts a command in several processes, and again from its last checkpoint when one is
// lost.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/common/commands.hpp"
#include "cli/common/narration.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/shell.hpp"
#include "core/threads.hpp"
#include "distributed/mpi.hpp"
#include "distributed/sockets.hpp"

namespace onnxtrain::cli {

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct LaunchFlags {
  int processes = 2, restarts = 0;
  std::string hosts, by = "auto";
  Words command;
};

// Children that get the signals of this process.
constexpr int kMostChildren = 1024;
volatile std::sig_atomic_t children[kMostChildren], signalled = 0;

// mpirun ends its processes on the usual signals, before they have saved; SIGUSR1 it hands on to
// them, and a training stops by it. The second signal is passed on as it is.
void pass_on(int signal) {
  for (const volatile std::sig_atomic_t& child : children)
    if (child > 0) kill(pid_t(child), signalled ? signal : SIGUSR1);
  signalled = 1;
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

// The program that starts processes; "processes": this one does.
std::string starter(const LaunchFlags& f) {
  if (f.by != "auto") return f.by;
  if (std::getenv("SLURM_JOB_ID") && in_path("srun")) return "srun";
  const bool plugin = !find_mpi_plugins().empty();
  if (in_path("mpirun") && (plugin || !f.hosts.empty())) return "mpirun";
  return "processes";
}

// How the processes of srun shall meet: as the plug-in's MPI wants it, where Slurm has that and
// nobody has said anything else.
std::string slurm_mpi() {
  if (std::getenv("SLURM_MPI_TYPE")) return {};
  FILE* list = popen("srun --mpi=list 2>&1", "r");
  if (!list) return {};
  std::string text;
  for (int c = 0; (c = std::fgetc(list)) != EOF;) text += char(c);
  if (pclose(list) != 0) return {};
  bool open_mpi = false;
  for (const MpiPlugin& p : find_mpi_plugins())
    open_mpi |= p.path.find("openmpi") != std::string::npos;
  const std::string wanted = open_mpi ? "pmix" : "pmi2";
  return text.find(wanted) != std::string::npos ? wanted : std::string();
}

Words launcher(const LaunchFlags& f, const std::string& by) {
  if (!f.hosts.empty() && by != "processes" && !fs::exists(f.hosts))
    io_error(ErrorKind::kUsage, "OT4001", "open", f.hosts, ENOENT);
  if (by != "processes" && !in_path(by))
    throw Error(ErrorKind::kFailed, "OT5040",
                cat("--by ", by, ": there is no program ", by, " here"),
                "start plain processes on this host:  --by processes");
  const std::string n = std::to_string(f.processes);
  if (by == "srun") {
    Words w = {"srun", "--ntasks=" + n, "--kill-on-bad-exit=1"};
    if (const std::string type = slurm_mpi(); !type.empty()) w.push_back("--mpi=" + type);
    if (!f.hosts.empty()) w.push_back("--nodefile=" + f.hosts);
    return w;
  }
  if (by == "mpirun") {
    Words w = {"mpirun", "-n", n};
    if (!f.hosts.empty()) w.insert(w.end(), {"--hostfile", f.hosts});
    return w;
  }
  if (!f.hosts.empty())
    throw Error(
        ErrorKind::kFailed, "OT5040",
        "--hostfile needs mpirun or, in a Slurm job, srun to start processes on other hosts",
        "Debian: apt-get install openmpi-bin libopenmpi-dev   then: make mpi");
  if (f.processes > kMostChildren)
    usage_error("OT5040",
                cat("-n ", f.processes, ": one host starts at most ", kMostChildren, " processes"),
                cat("-n ", default_threads(), ", one for each core"));
  return {};
}

// What Open MPI wants for root and for more processes than cores (versions 4 and 5).
void set_environment() {
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                           "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"})
    if (geteuid() == 0) setenv(name, "1", 0);
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
  setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 0);
}

std::string shown(const Words& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : " ") + shell_word(w);
  return text;
}

// setup runs in the child, before the program.
template <class F>
pid_t start(const Words& words, const F& setup) {
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    setup();
    execvp(argv[0], argv.data());
    _exit(127);
  }
  if (pid < 0) throw Error(ErrorKind::kFailed, "OT5040", "no process could be started");
  return pid;
}

// The next child that ends, and its exit code; process 0 when none has for so many seconds (0: as
// long as it takes).
std::pair<pid_t, int> next_end(int seconds = 0) {
  constexpr int kTurns = 50;  // a second
  int status = 0;
  pid_t pid = 0;
  for (int turn = 0; seconds > 0 && turn < seconds * kTurns; ++turn) {
    if ((pid = waitpid(-1, &status, WNOHANG)) != 0) break;
    usleep(1000000 / kTurns);
  }
  if (seconds > 0 && pid == 0) return {0, 0};
  while (pid <= 0 && (pid = waitpid(-1, &status, 0)) < 0 && errno == EINTR) {
  }
  return {pid, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
}

void kill_children() {
  for (const volatile std::sig_atomic_t& child : children)
    if (child > 0) kill(pid_t(child), SIGKILL);
}

// Until all have ended; the first exit code that is not 0. A process that fails has told why; one
// that is killed has not, but the others see it, say so and end. They have some seconds for that.
int watch(const std::vector<pid_t>& pids) {
  constexpr int kPatience = 5;
  int code = 0, killed = -1;
  for (size_t ended = 0; ended < pids.size();) {
    const auto [pid, result] = next_end(killed < 0 ? 0 : kPatience);
    if (pid == 0) {  // they had not found each other yet
      std::fprintf(stderr, "error[OT5030]: rank %d was ended by signal %d\n", killed, code - 128);
      kill_children();
      killed = -1;
      continue;
    }
    ++ended;
    const auto rank = std::find(pids.begin(), pids.end(), pid) - pids.begin();
    if (size_t(rank) < pids.size()) children[rank] = 0;
    if (result == 0 || code != 0) continue;
    code = result;
    if (code == 130) continue;  // it was asked to end, and so were the others
    if (code < 128)
      kill_children();
    else if (pids.size() > 1)
      killed = int(rank);
    else
      std::fprintf(stderr, "error[OT5030]: the process was ended by signal %d\n", code - 128);
  }
  return code;
}

int run_words(const Words& words) {
  say("launch", shown(words));
  children[0] = start(words, [] {});
  const int code = next_end().second;
  children[0] = 0;
  return code;
}

// Processes of this host, connected by sockets. One that fails ends the others.
int run_processes(const Words& words, int n) {
  say("launch", cat(shown(words), "   in ", n, " processes of this host, without MPI"));
  const SocketEnds ends = make_sockets(n);
  std::vector<pid_t> pids;
  for (int r = 0; r < n; ++r) {
    pids.push_back(start(words, [&] {
      prctl(PR_SET_PDEATHSIG, SIGTERM);  // without the launcher they save and end
      setenv(kSocketsVariable, socket_text(ends, r).c_str(), 1);
      for (size_t other = 0; other < ends.of_rank.size(); ++other)
        if (int(other) != r)
          for (const auto& pair : ends.of_rank[other])
            for (int fd : pair)
              if (fd >= 0) close(fd);
    }));
    children[r] = pids.back();
  }
  for (const auto& of_rank : ends.of_rank)
    for (const auto& pair : of_rank)
      for (int fd : pair)
        if (fd >= 0) close(fd);
  return watch(pids);
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

// The command that goes on with a run. Its settings are those of the run; what a run does not keep,
// how it is shown and with how many threads, is said again.
Words resuming(const Words& command, const std::string& folder) {
  Words words = {"train", "--resume", folder};
  for (size_t k = 1; k < command.size(); ++k) {
    const std::string& w = command[k];
    const std::string name = w.substr(0, w.find('='));
    const bool has_value = name == "--threads" || name == "--progress" || name == "--distributed";
    const bool shown = name == "-q" || name == "--quiet" || name == "-v" || name == "-vv" ||
                       name == "--verbose" || name == "--json";
    if (!has_value && !shown) continue;
    words.push_back(w);
    if (has_value && name == w && k + 1 < command.size()) words.push_back(command[++k]);
  }
  return words;
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
    const std::string by = starter(f);
    Words words = launcher(f, by);
    words.push_back(self);
    words.insert(words.end(), command.begin(), command.end());
    const int code = by == "processes" ? run_processes(words, f.processes) : run_words(words);
    // mpirun and srun say 1 or the signal where the processes have ended as interrupted ones
    if (signalled && worth_another_try(code)) return kInterrupted;
    if (code == 0 || signalled || turn >= f.restarts || !worth_another_try(code)) return code;
    const std::string folder = run_folder(command);
    const bool resumable = !command.empty() && command[0] == "train" && !folder.empty() &&
                           folder != latest && fs::exists(folder + "/checkpoints/last.train.onnx");
    if (resumable) command = resuming(command, folder);
    say("restart", cat(turn + 1, " of ", f.restarts, resumable ? ", from " + folder : ""));
  }
}

}  // namespace

void add_launch(Registry& r) {
  static LaunchFlags f;
  static CLI::App* c = nullptr;
  c = r.add("launch", "run a command in several processes: by srun, by mpirun, or on this host",
            "  onnxtrain launch -n 4 -- train cnn.onnx --data mnist/\n"
            "  onnxtrain launch -n 8 --hostfile hosts --restarts 3 -- train ...");
  c->add_option("-n,--processes", f.processes, "how many")->check(CLI::PositiveNumber);
  c->add_option("--restarts", f.restarts,
                "start again from the last checkpoint when a process is lost, this many times")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--hostfile", f.hosts, "a file with the hosts, as mpirun takes it");
  c->add_option("--by", f.by,
                "who starts them: auto: srun in a Slurm job, mpirun where it and the plug-in are "
                "there, else this program on this host (processes)")
      ->check(CLI::IsMember({"auto", "mpirun", "srun", "processes"}));
  c->add_option("COMMAND", f.command, "a command of onnxtrain with its options, after --")
      ->required();
  r.on(c, [] {
    check_command(*c->get_parent(), f.command[0]);
    return launch(f);
  });
}

}  // namespace onnxtrain::cli
