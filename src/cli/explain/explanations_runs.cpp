// Codes from OT3000: runs, files, machines and processes.
#include "cli/explain/explanations.hpp"

namespace onnxtrain::cli {

namespace {

constexpr Explanation kRuns[] = {
    {"OT3001",
     "The loss, a gradient or a new weight became NaN or infinite. The step was not "
     "carried out;\nthe state before it is saved. The message names the first bad tensor. "
     "A lower learning rate\n(--lr) or --clip 1 usually helps; look at the data for outliers. "
     "--allow-non-finite continues\nregardless."},
    {"OT3002",
     "A state variable is not finite, so it was not saved over the last good checkpoint."},
    {"OT3101",
     "Every label of a batch is the ignored one: the mean is over nothing and counts as 0 "
     "(ruling\nG16). Larger batches, or look at the labels."},
    {"OT3102",
     "The file fixes the number of rows that the model takes at once: those that do not make up "
     "a\nbatch are left out, other ones in each epoch."},
    {"OT3103",
     "The checkpoint of the best epoch was removed from the run folder. Training continues from "
     "the "
     "last\ncheckpoint; the inference model of the best epoch stays if it is still there."},
    {"OT3104",
     "With --accumulate N the weights change every N-th step only, and the run is shorter than "
     "that."},
    {"OT3110", "Some values of the target are outside what the model's output can be."},
    {"OT3111",
     "The model was trained on a table with other columns or classes. They are taken in the order "
     "of\nthis file; what the model learnt before belongs to other columns."},
    {"OT3112",
     "Validation rows that are training rows show how well the model remembers, not how well it "
     "does on\nnew data. Give another file or a fraction: --valid 0.1."},
    {"OT3113",
     "Few validation rows: one of them changes the accuracy by percents. Equal accuracies are "
     "decided by\nthe validation loss."},
    {"OT3114",
     "Columns of very different size: steps that suit one are far too large or small for the "
     "other. "
     "--scale\nstandard subtracts the mean of every column and divides by its standard deviation; "
     "both travel with\nthe run and the exported model's metadata."},
    {"OT3115", "`prepare` writes a new training over the one that the file has."},
    {"OT3116",
     "The rows are not those that the run was trained on so far: the file changed, or another one "
     "was\ngiven. The fingerprint is in data.json and in the checkpoint. At the end of a training: "
     "somebody wrote to\nthe arrays or the file meanwhile."},
    {"OT3117",
     "config.toml of the run is gone. Checkpoints hold the settings that decide what is learnt, "
     "too, and the\nrun goes on with those. A checkpoint of an older version holds none: then the "
     "defaults count."},
    {"OT3118",
     "The metric of the best epoch is not better than that of one guess for all rows: the most "
     "frequent\nclass, or the mean of the targets. Few rows hit more often than that by chance: "
     "then the "
     "loss is compared with\nthat of the classes' shares."},
    {"OT3119",
     "Batches from an iterator are not known before they come. In a whole epoch no label was 0; "
     "classes\nare counted from 0."},
    {"OT3120",
     "All rows of the training data have the same class. A classifier learns to answer it always, "
     "which says nothing; rows of other classes are missing, or another column is the target. The "
     "same\nholds for a target that is one number in every row, for validation rows of a class "
     "that "
     "no training row\nhas, and for rows that are sorted by class and not shuffled."},
    {"OT3121",
     "A column goes with the target row by row: a copy of it, its code, or something that is known "
     "only\nafterwards. The model learns to copy it. Where the column is not known when "
     "predictions are made,\nits figures are worth nothing."},
    {"OT3122",
     "Two columns are equal in every row. Nothing is gained by the second; often one of them is a "
     "mistake\nmade when the table was put together."},
    {"OT3123",
     "Every column has one value. Nothing in the features tells rows apart, so the best that can "
     "be learnt\nis a constant guess."},
    {"OT3124",
     "One value of a column lies a thousand times farther out than the middle half of them. Scaled "
     "by it,\nall others look alike. Often it marks a gap (-999), or a digit was typed twice."},
    {"OT3125",
     "Names of classes that differ only in capital letters, blanks or dashes are different classes "
     "to a\nprogram, and mostly one to a person."},
    {"OT3126",
     "Nearly every row has a class of its own: nothing can be learnt about a class that is there "
     "once. Numbers\nare learnt with --task numbers."},
    {"OT3127",
     "Steps were made, and no weight changed by more than the last digit of float32 beside the "
     "largest. The learning rate is far too small, a\nschedule is at its end, gradients are "
     "clipped to nothing or no update came yet "
     "(--accumulate)."},
    {"OT3128",
     "The schedule of the learning rate ends long before the training does, or changes nothing "
     "in it: total_steps, step_size,\nmilestones and warmup_steps count updates, and gamma of "
     "exponential is for each of them. Without\ntotal_steps a schedule spans the run by itself."},
    {"OT3129",
     "A run remembers between which numbers its inputs lay. Here most values of a column lie "
     "farther outside than\nthat range is wide, or every column is more than 20 times smaller: "
     "millimetres instead of metres, bytes instead\nof numbers from 0 to 1, columns in another "
     "order, a file that is another one."},
    {"OT3130",
     "The training has a setting far outside of what anybody trains with: it is allowed, and "
     "hardly anything\nis learnt with it. docs/recipe.md has the bounds."},
    {"OT3131",
     "Most weights were bit by bit the same after some steps although they have a gradient: each "
     "update is smaller\nthan half the distance to the next number of the type, and rounding "
     "takes it away. float16 has 11 bits,\nbfloat16 8. Weights in float32 keep such updates."},
    {"OT3132",
     "A column holds whole numbers that float32 cannot tell apart (timestamps, ids above "
     "16,777,216), or dates\nwritten as 20261118. Numbers counted from the smallest one lose "
     "nothing."},
    {"OT3133",
     "The loss of the validation rows is NaN or infinite although every training step was finite: "
     "weights have\nbecome so large that scores overflow."},
    {"OT3134",
     "The training in the file obeys the rules, but an update is assigned to another variable or "
     "to "
     "none, the\ncounter of steps stands still, or the gradient is that of a tensor that no target "
     "reaches. Files that\nwere edited by hand have such bindings. The same holds for a gradient "
     "that comes "
     "into the update with its\nsign turned around, and for a counter that no training reaches."},
    {"OT3135",
     "Rows are windows of one series: most of a row is in the next one, too. Validation rows that "
     "are chosen at\nrandom lie between training rows and share their numbers, so their figures "
     "are better than those of later\ndata. Validate on the end of the series."},
    {"OT4001", "A file cannot be opened: it does not exist, or may not be read."},
    {"OT4002", "The path is a folder or device where a file is needed."},
    {"OT4003", "The file is larger than the limit."},
    {"OT4004", "Reading failed; the disk or network drive reports an error."},
    {"OT4005",
     "The file became shorter while it was read. Somebody else writes to it: wait until "
     "it is\ncomplete."},
    {"OT4010", "A file cannot be created: the folder does not exist or may not be written to."},
    {"OT4011", "Writing failed. What was there before is unchanged."},
    {"OT4012", "The disk is full. What was there before is unchanged: free some space and resume."},
    {"OT4013",
     "The system could not bring the file safely to disk. What was there before is "
     "unchanged."},
    {"OT4014",
     "The finished file could not be put in its place. What was there before is unchanged."},
    {"OT4015", "Two writers write the same file at once."},
    {"OT4101", "The run folder cannot be made or written to; choose another with --out."},
    {"OT4102", "The folder is no run: it has no checkpoints."},
    {"OT4201",
     "A checkpoint does not match its checksums: it was damaged or changed after it was "
     "written.\nThe message names the tensor, and the previous checkpoint when that one "
     "is intact."},
    {"OT4202", "There is no checkpoint at this place."},
    {"OT4203",
     "The checkpoint's position does not fit the data: resume with the same data and "
     "batch size."},
    {"OT4204",
     "The log of the run is ahead of the checkpoint: it is an older one, or files were "
     "exchanged.\nResume from it in another folder with --out."},
    {"OT4205",
     "The run has no last checkpoint: it was stopped before its first step was done, or the file "
     "was\nremoved."},
    {"OT4301", "The exported file, read back, does not compute what was exported."},
    {"OT4401", "The sample files are not installed beside the program."},
    {"OT4500",
     "`onnxtrain board` found no run in the folder. A run is a folder with checkpoints/ in it; "
     "`train`\nmakes them in runs/."},
    {"OT4501", "Another program listens on this port. Without --port any free one is taken."},
    {"OT4502",
     "The system does not let this program listen on the port (ports below 1024 need rights)."},
    {"OT4510",
     "A callback of Python's `fit` watches a number that the epochs do not have. Numbers on "
     "validation\ndata need fit(valid=...)."},
    {"OT4511",
     "What was given in fit(callbacks=...) is no callback, or has a method that is never called."},
    {"OT4512", "history.plot() draws with matplotlib, which is not installed."},
    {"OT4513",
     "Steps are made by another engine, but it cannot compute the model's inference form: "
     "validation\nruns in this library, on the state that comes back. The message says why."},
    {"OT4514",
     "A training of several sections runs in another engine, which refuses one of them: that one "
     "is\nmade by this library, and the state goes to and fro. The message says why."},
    {"OT5001",
     "Every process computes as many blocks of rows as the others: --micro-blocks is a multiple of "
     "their\nnumber. A run keeps its number of blocks when it is resumed."},
    {"OT5002", "--distributed is auto, off or mpi."},
    {"OT5003",
     "Processes were started together, but the plug-in that connects them by MPI is not there or "
     "does not\nload. N trainings beside each other are never what was meant; --distributed off "
     "asks for them."},
    {"OT5004",
     "The launcher belongs to one MPI library and the plug-in to another: every process sees "
     "itself alone."},
    {"OT5005", "There are fewer rows than processes."},
    {"OT5006", "--batch is the batch of all processes together; each needs a row of it."},
    {"OT5007",
     "All processes of a training have the same version, model, data, settings and position."},
    {"OT5008", "This can be done by one process only."},
    {"OT5010",
     "A batch can be cut into blocks of rows when every value of the step belongs to rows, is a "
     "sum "
     "or\nmean over rows, or is the same for all. The message names the node that is none of "
     "these."},
    {"OT5011", "The file fixes how many rows it takes: there is nothing to cut."},
    {"OT5012", "This output mixes rows, so blocks of them do not give it."},
    {"OT5013", "Only batches of tensors can be cut into blocks of rows."},
    {"OT5014",
     "A process trains in one group: all processes of the launcher, or those of one communicator."},
    {"OT5020", "Processes that train together make the same steps."},
    {"OT5030",
     "A process of the training is gone or stands still. The others end, the last checkpoint is "
     "whole."},
    {"OT5031", "A call of MPI failed."},
    {"OT5032",
     "Processes watch each other over TCP connections to rank 0. Without one a process that is\n"
     "stopped is not noticed; the training itself goes over MPI."},
    {"OT5051",
     "Blocks of one batch add up statistics of BatchNormalization in one order; here they did "
     "not. Please\nreport it; --batch-norm local needs no such sums."},
    {"OT5052", "--batch-norm is local (statistics of each block) or sync (of the whole batch)."},
    {"OT5054", "--reduce-dtype is float32 or bf16."},
    {"OT5055",
     "--shard-optimizer gives every process a part of the optimizer's state. This training has "
     "none "
     "that could be shared out: it keeps no state (SGD without momentum), or what it keeps is read "
     "by the model, by another training section, or by the updates of all other tensors."},
    {"OT5057",
     "With a sharded optimizer no process has the whole state. Saving a checkpoint and reading the "
     "optimizer's variables collect it from all processes, so all of them have to do it at the "
     "same "
     "step."},
    {"OT5053", "Processes of one host are connected by sockets; the system gave no more of them."},
    {"OT5040", "launch starts processes on other hosts by mpirun, or by srun within a Slurm job."},
    {"OT5080",
     "travel of Flower's run configuration: all (everything that the training changes) or "
     "trainable "
     "(the\nparameters alone; optimizer state and statistics stay with each client)."},
    {"OT5081", "A key of Flower's run configuration has a value that it cannot have."},
    {"OT5082",
     "onnxtrain.flower trains what a training file says: ot.prepare or onnxtrain prepare makes one "
     "from an\ninference model."},
    {"OT5083",
     "State came from the other side that does not fit the training file here: another name, shape "
     "or type,\nor numbers that are not finite. The server leaves such a reply out and goes on."},
    {"OT5084",
     "The number of a client's rows is its weight in the average: they must be countable."},
    {"OT5085", "Clients that train a file as it stands cannot do their part of this strategy."},
    {"OT5086", "No client answered in any round: there is no averaged model."},
    {"OT9001",
     "Something unexpected happened inside; please report it with the command that caused "
     "it."},
};

}  // namespace

std::span<const Explanation> run_explanations() { return kRuns; }

}  // namespace onnxtrain::cli
