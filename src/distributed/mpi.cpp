// Finds and loads the MPI plug-in, and makes a Communicator of it.
#include "distributed/mpi.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/threads.hpp"
#include "distributed/launcher.hpp"
#include "distributed/plugin/mpi_plugin.h"
#include "distributed/sockets.hpp"

namespace onnxtrain {

namespace {

namespace fs = std::filesystem;

int number(const char* name, int missing) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoi(text) : missing;
}

// The folder of the program or library that this code is in.
fs::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&find_launch), &info) == 0 || !info.dli_fname) return {};
  std::error_code ec;
  const fs::path self = fs::canonical(info.dli_fname, ec);
  if (!ec) return self.parent_path();
  return fs::read_symlink("/proc/self/exe", ec).parent_path();
}

// MPI libraries in this process, by the number of their ABI.
std::set<std::string> mpi_libraries() {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find("/libmpi.so.");
    if (at != std::string::npos)
      found.insert(line.substr(at + 1, line.find('.', at + 11) - at - 1));
  }
  return found;
}

// A plug-in, or null; with the MPI library of the launcher where the system does not find one.
void* open_plugin(const std::string& path, std::string& problem) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library) return library;
  problem = dlerror();
  const std::string needed = problem.substr(0, problem.find(':'));
  if (!needed.starts_with("libmpi.so")) return nullptr;
  for (const fs::path& folder : mpi_folders(own_folder())) {
    if (!dlopen((folder / needed).c_str(), RTLD_NOW | RTLD_GLOBAL)) continue;
    if ((library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL))) {
      problem.clear();
      return library;
    }
    problem = dlerror();
  }
  return nullptr;
}

struct Loaded {
  void* library = nullptr;
  const ot_mpi_plugin* table = nullptr;
};

// `problem` says why not.
Loaded load(const std::string& path, std::string& problem) {
  Loaded l;
  const std::set<std::string> before = mpi_libraries();
  l.library = open_plugin(path, problem);
  if (!l.library) return l;
  if (!before.empty() && mpi_libraries() != before) {
    problem = cat("it needs another MPI library than ", *before.begin(),
                  ", which this process has loaded already (by mpi4py?)");
    dlclose(l.library);
    return {};
  }
  l.table = static_cast<const ot_mpi_plugin*>(dlsym(l.library, OT_MPI_PLUGIN_SYMBOL));
  if (!l.table || l.table->version != OT_MPI_PLUGIN_VERSION) {
    problem = "it is no MPI plug-in of this version of onnxtrain";
    l.table = nullptr;
  }
  return l;
}

constexpr const char* kOwnLauncher = "onnxtrain launch";

constexpr const char* kFix =
    "build the plug-in for the MPI that is installed:  make mpi   or say where it is:  "
    "ONNXTRAIN_MPI_PLUGIN=/path/to/libonnxtrain_mpi_openmpi.so   To train in every process by "
    "itself:  --distributed off";
constexpr const char* kFixLibrary =
    "say where the MPI library of that launcher is:  LD_LIBRARY_PATH=/path/to/its/lib   To train "
    "in "
    "every process by itself:  --distributed off";

class Mpi final : public Group {
 public:
  Mpi(const ot_mpi_plugin& t, const DistributedOptions& o) : t_(t) {
    char library[256] = "";
    check(t_.start(o.communicator, &rank_, &size_, &owns_, library, sizeof library), "start");
    library_ = std::string(library).substr(0, std::string(library).find('\n'));
  }
  const std::string& library() const { return library_; }

  void all_gather(const void* mine, size_t bytes, void* all) override {
    int h = 0;
    check(t_.all_gather(mine, bytes, all, &h), "all-gather");
    wait(h);
    count(bytes * size_t(size_ - 1), size_ - 1);
  }
  void broadcast(void* data, size_t bytes, int root) override {
    int h = 0;
    check(t_.broadcast(data, bytes, root, &h), "broadcast");
    wait(h);
    if (rank_ == root) count(bytes * size_t(size_ - 1), size_ - 1);
  }
  Handle start_exchange(const void* send, const size_t* offsets, void* receive,
                        const size_t* at) override {
    int h = 0;
    check(t_.exchange(send, offsets, receive, at, &h), "all-to-all");
    count(offsets[size_] - (offsets[rank_ + 1] - offsets[rank_]), size_ - 1);
    return h;
  }
  Handle start_collect(void* data, const size_t* offsets) override {
    int h = 0;
    check(t_.collect(data, offsets, &h), "all-gather");
    count((offsets[rank_ + 1] - offsets[rank_]) * size_t(size_ - 1), size_ - 1);
    return h;
  }
  bool test(Handle h) override {
    int done = 0;
    check(t_.test(h, &done), "test");
    return done != 0;
  }

 private:
  void close() override { t_.finish(); }
  void end_others(int code) override { t_.abort(code); }
  void check(int e, const char* what) const {
    if (e == 0) return;
    throw Error(ErrorKind::kFailed, "OT5031",
                cat("MPI failed on rank ", rank_, " (", what, ", error ", e, ")"));
  }
  const ot_mpi_plugin& t_;
  int owns_ = 0;
  std::string library_;
};

Group* connection = nullptr;
Group* ended = nullptr;
int cores = 0;                // of the host, for this process
long long connected_by = -1;  // the communicator that was given for it; -1: none

// A process belongs to one group: of another one nothing would be heard.
void check_communicator(const DistributedOptions& o, const Launch& launch) {
  const bool other = o.communicator >= 0 && o.communicator != connected_by;
  const bool all = o.communicator < 0 && connected_by >= 0 && connection->size() != launch.size;
  if (!other && !all) return;
  usage_error(
      "OT5014",
      cat("this process trains in a group of ", connection->size(), " already, by ",
          connected_by < 0 ? "the launcher" : "another communicator", ": it cannot belong to ",
          other ? "a second communicator" : "all processes", " too"),
      connected_by < 0 ? "give the communicator to the first Trainer"
                       : "give every Trainer of a process the same communicator");
}

void leave_processes() {
  disconnect_processes();
  if (ended) ended->leave();
}

// The first that processes tell each other.
struct Told {
  std::array<char, 64> host{}, program{};
  cpu_set_t cores{};
};

// A launcher may give each process cores of its own; those that have the same ones share them.
int share_of_cores(const Told& mine, const std::vector<Told>& all) {
  const char* given = std::getenv("ONNXTRAIN_THREADS");
  if (given && *given) return default_threads();
  const auto shares = [&](const Told& other) {
    cpu_set_t both;
    CPU_AND(&both, &mine.cores, &other.cores);
    return other.host == mine.host && (CPU_COUNT(&both) > 0 || CPU_COUNT(&mine.cores) == 0);
  };
  const auto here = int(std::count_if(all.begin(), all.end(), shares));
  return std::max(1, default_threads() / std::max(1, here));
}

// Other programs would talk of other things from here on.
void meet(Communicator& c, const std::string& program) {
  Told mine;
  gethostname(mine.host.data(), mine.host.size() - 1);
  program.copy(mine.program.data(), mine.program.size() - 1);
  if (sched_getaffinity(0, sizeof mine.cores, &mine.cores) != 0) CPU_ZERO(&mine.cores);
  std::vector<Told> all(size_t(c.size()));
  c.all_gather(&mine, sizeof mine, all.data());
  cores = share_of_cores(mine, all);
  const auto what = [&](size_t r) {
    return cat("rank ", r, " on host ", all[r].host.data(), " runs ", all[r].program.data());
  };
  for (size_t r = 1; r < all.size(); ++r)
    if (all[r].program != all[0].program)
      usage_error("OT5007", cat(what(r), ", ", what(0)),
                  "start every process with the same program, files and flags");
}

// Lives as long as the process: MPI ends with it.
Communicator* use(Group* group, const DistributedOptions& o) {
  connection = group;
  std::atexit(leave_processes);
  if (group->size() > 1) {
    group->watch(o.fault_timeout);
    meet(*group, o.program);
  }
  return connected_processes();
}

}  // namespace

Launch find_launch() {
  if (const GivenSockets& s = given_sockets(); s.rank >= 0)
    return {s.rank, int(s.ends.size()), kOwnLauncher};
  if (const int n = number("OMPI_COMM_WORLD_SIZE", 0); n > 0)
    return {number("OMPI_COMM_WORLD_RANK", 0), n, "Open MPI"};
  if (const int n = number("PMI_SIZE", 0); n > 0) return {number("PMI_RANK", 0), n, "MPICH"};
  // a batch script has SLURM_NTASKS as well; only srun gives a process its number in a step
  if (const int n = number("SLURM_STEP_NUM_TASKS", 0); n > 0 && std::getenv("SLURM_PROCID"))
    return {number("SLURM_PROCID", 0), n, "Slurm"};
  return {};
}

std::vector<MpiPlugin> find_mpi_plugins() {
  std::vector<std::string> paths;
  const char* given = std::getenv("ONNXTRAIN_MPI_PLUGIN");
  if (given && *given) {
    paths.emplace_back(given);
  } else {
    const fs::path here = own_folder();
    for (const char* name : {"libonnxtrain_mpi_openmpi.so", "libonnxtrain_mpi_mpich.so"})
      for (const fs::path& folder : {here, here / "onnxtrain", here / "../lib/onnxtrain"})
        if (fs::exists(folder / name)) paths.push_back((folder / name).lexically_normal().string());
  }
  std::vector<MpiPlugin> found;
  for (const std::string& path : paths) {
    MpiPlugin p{path, {}};
    if (!fs::exists(path)) p.problem = "there is no such file";
    found.push_back(p);
  }
  return found;
}

std::string try_mpi_plugin(const std::string& path) {
  // in a process of its own: two MPI libraries in one do not bear each other
  int ends[2];
  if (pipe(ends) != 0) return "it could not be tried";
  const pid_t pid = fork();
  if (pid == 0) {
    std::string problem;
    load(path, problem);
    (void)!write(ends[1], problem.data(), problem.size());
    _exit(0);
  }
  close(ends[1]);
  std::string problem(4096, '\0');
  const ssize_t n = pid > 0 ? read(ends[0], problem.data(), problem.size()) : -1;
  close(ends[0]);
  if (pid > 0) waitpid(pid, nullptr, 0);
  if (n < 0) return "it could not be tried";
  problem.resize(size_t(n));
  return problem;
}

Communicator* connected_processes() {
  return connection && connection->size() > 1 ? connection : nullptr;
}

int cores_of_process() { return connected_processes() ? cores : default_threads(); }

Communicator* connect_processes(const DistributedOptions& o) {
  if (o.mode != "auto" && o.mode != "off" && o.mode != "mpi")
    usage_error("OT5002", cat("--distributed ", o.mode, ": it is auto, off or mpi"),
                "--distributed auto");
  const Launch launch = find_launch();
  if (o.mode == "off" || (o.mode == "auto" && launch.size <= 1 && o.communicator < 0))
    return nullptr;
  if (connection) {
    check_communicator(o, launch);
    if (connection->size() > 1) connection->watch(o.fault_timeout);
    return connected_processes();
  }
  if (launch.by == kOwnLauncher && o.mode != "mpi" && o.communicator < 0)
    return use(socket_group(given_sockets()).release(), o);
  std::string problems;
  // processes that one MPI has started are strangers to each other in another one
  const bool given = std::getenv("ONNXTRAIN_MPI_PLUGIN") != nullptr;
  const std::string_view other = given                     ? ""
                                 : launch.by == "MPICH"    ? "mpi_openmpi."
                                 : launch.by == "Open MPI" ? "mpi_mpich."
                                                           : "";
  for (MpiPlugin& p : find_mpi_plugins()) {
    if (!other.empty() && fs::path(p.path).filename().string().find(other) != std::string::npos)
      continue;
    Loaded l;
    if (p.problem.empty()) l = load(p.path, p.problem);
    if (!l.table) {
      problems += cat("\n  ", p.path, ": ", p.problem);
      continue;
    }
    auto* mpi = new Mpi(*l.table, o);
    if (launch.size > 0 && o.communicator < 0 && mpi->size() != launch.size)
      throw Error(ErrorKind::kFailed, "OT5004",
                  cat(launch.by, " started ", launch.size, " processes, but the MPI library (",
                      mpi->library(), ") sees ", mpi->size(), ": two MPI libraries are mixed"),
                  "start with the mpirun of that library, or give the plug-in for the other one:  "
                  "ONNXTRAIN_MPI_PLUGIN=FILE");
    connected_by = o.communicator;
    return use(mpi, o);
  }
  throw Error(ErrorKind::kFailed, "OT5003",
              launch.size > 0
                  ? cat(launch.by, " started ", launch.size,
                        " processes, but there is no MPI plug-in to connect them", problems)
                  : cat("there is no MPI plug-in", problems),
              problems.find("libmpi.so") != std::string::npos ? kFixLibrary : kFix);
}

void disconnect_processes() {
  if (!connection) return;
  connection->end();
  ended = std::exchange(connection, nullptr);
}

}  // namespace onnxtrain
