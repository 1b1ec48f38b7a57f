"""Values that no option takes, settings of files and the environment, and files that a run keeps."""

from mistake import Mistake as M
from workshop import removed, replaced, text

T = "onnxtrain train mlp.onnx --data data.npz --out o "
E1 = T + "--epochs 1 "
R = "onnxtrain train --resume run --epochs 3 "
HUGE = "99999999999999999999"


def number(flag, value, code=2, extra="", command=T):
    """A number that the flag does not take."""
    where = "" if command == T else " of " + command.split()[1]
    return M(f"{flag} {value}{where}", f"{command} {extra} {flag}={value}", code, [flag, value])


VALUES = [
    *[number("--epochs", v) for v in ("-3", "inf", "1e400", HUGE)],
    *[number("--batch", v, extra="--epochs 1") for v in ("0", "nan", HUGE)],
    *[number("--steps", v, extra="--epochs 1") for v in ("-1", HUGE)],
    *[number("--time", v, extra="--epochs 1") for v in ("nan", "inf", "-2")],
    *[number("--lr", v, extra="--epochs 1") for v in ("-0.1", "1e400", "nan")],
    *[number("--weight-decay", v, extra="--epochs 1") for v in ("inf", "nan", "abc")],
    number("--clip", "inf", extra="--epochs 1"),
    number("--clip-value", "1e999", extra="--epochs 1"),
    number("--fault-timeout", "nan", extra="--epochs 1"),
    number("--seed", "18446744073709551616", extra="--epochs 1"),
    M("momentum of 1.5", E1 + "--optimizer sgd --momentum 1.5", 2, ["momentum", "1.5"]),
    number("--seconds", "nan", command="onnxtrain bench mlp.onnx"),
    number("--batch", "0", command="onnxtrain info mlp.onnx"),
    M("--threads below zero names a value that works", E1 + "--threads -1", 2, ["--threads", "-1"], "--threads 2",
      E1 + "{fix}"),
    M("--valid in percent", E1 + "--valid 10%", 2, ["10%"], "--valid 0.1", E1 + "{fix}"),
    M("an option taken for a value", "onnxtrain train --resume --epochs 4", 2, ["--resume", "--epochs"]),
    M("launch of no process", "onnxtrain launch -n 0 -- train mlp.onnx --data data.npz", 2, ["0"]),
    M("launch of a host file that is not there",
      "onnxtrain launch -n 2 --by mpirun --hostfile nohosts -- train mlp.onnx --data data.npz", 2, ["nohosts"]),
    M("help as a word in front", "onnxtrain help train", 2, ["help"], "onnxtrain train --help", ""),
    M("a short option of other tools", "onnxtrain train mlp.onnx --data data.npz --epochs 1 -o o", 2, ["-o"], "--out",
      "onnxtrain train mlp.onnx --data data.npz --epochs 1 {fix} o"),
    M("class weights of nothing", E1 + "--class-weights 0,0,0", 2, ["0,0,0"], "--class-weights balanced", E1 + "{fix}"),
    M("class weights without end", E1 + "--class-weights 1e400,1,1", 2, ["1e400"], "--class-weights balanced",
      E1 + "{fix}"),
    M("scale misspelt", E1 + "--scale standart", 2, ["standart"], "--scale standard", E1 + "{fix}"),
    M("two scales", E1 + "--standardize --scale none", 2, ["--standardize", "none"]),
    M("two losses without outputs", E1 + "--loss mse --loss cross_entropy", 2, ["mse,cross_entropy"]),
    M("an argument of no optimizer", E1 + "--optimizer-arg foo=1", 2, ["foo", "adamw"]),
    M("a number of another schedule", E1 + "--schedule cosine --schedule-arg step_size=10", 2,
      ["cosine", "step_size"], "--schedule step", E1 + "{fix} --schedule-arg step_size=10"),
    M("milestones for a constant rate", E1 + "--schedule-arg milestones=1,2", 2, ["constant", "milestones"],
      "--schedule multistep", E1 + "{fix} --schedule-arg milestones=1,2"),
    M("an encoding for arrays", E1 + "--encoding latin1", 2, ["data.npz", "--encoding"]),
    M("a separator for arrays", E1 + "--separator ';'", 2, ["data.npz", "--separator"]),
    M("channels of a table", E1 + "--layout nhwc", 0, ["--layout nhwc", "channels"]),
    M("a label offset for numbers",
      "onnxtrain train reg.onnx --data reg.csv --epochs 1 --out o --label-offset -1", 0, ["--label-offset", "'price'"]),
    M("tokens without a text", E1 + "--max-length 5", 2, ["--max-length", "--text"]),
    M("patience without validation", E1 + "--patience 3 --valid 0", 0, ["--patience", "training loss"]),
    M("blocks of one process", E1 + "--batch-norm sync", 0, ["--batch-norm sync", "nothing"]),
    M("narrow sums of one process", E1 + "--reduce-dtype bf16", 0, ["--reduce-dtype bf16", "nothing"]),
    M("balanced classes of a regression",
      "onnxtrain train reg.onnx --data reg.csv --epochs 1 --out o --class-weights balanced", 2, ["balanced"]),
    M("a dimension that is none", "onnxtrain bench mlp.onnx --seconds 0.1 --dim Q=3", 2, ["Q"]),
    M("names with a comma", E1 + "--freeze fc1.weight,fc1.bias", 2, ["fc1.weight,fc1.bias"],
      "--freeze fc1.weight fc1.bias", E1 + "{fix}"),
    M("the name of a layer", E1 + "--freeze fc1", 2, ["'fc1'"], "--freeze 'fc1.*'", E1 + "{fix}"),
]

FILES = [
    M("predictions over the data", "onnxtrain predict csv-run --data data.csv -o data.csv", 2, ["data.csv"],
      "--output data-new.csv", "onnxtrain predict csv-run --data data.csv {fix}"),
    M("an export over the training", "onnxtrain export mlp.train.onnx -o mlp.train.onnx", 2, ["mlp.train.onnx"]),
    M("a training over the model", "onnxtrain prepare mlp.onnx -o ./mlp.onnx", 2, ["mlp.onnx"]),
    M("a report as a table", "onnxtrain report run -o data.csv", 2, ["data.csv"], "-o data.html",
      "onnxtrain report run {fix}"),
    M("predictions to a full disk", "onnxtrain predict csv-run --data data.csv >/dev/full", 1, ["standard output"]),
    M("figures to a full disk", "onnxtrain eval csv-run --data data.csv --json >/dev/full", 1, ["standard output"]),
    M("data at an address", "onnxtrain train mlp.onnx --data https://example.com/a.csv", 4, ["https://example.com/a.csv",
      "curl"]),
    M("a model at an address", "onnxtrain info https://example.com/m.onnx", 3, ["https://example.com/m.onnx", "curl"]),
    M("a pattern in quotes", "onnxtrain train mlp.onnx --data '*.csv'", 4, ["*.csv", "pattern"]),
    M("nothing as data", "onnxtrain train mlp.onnx --data /dev/null", 4, ["/dev/null"]),
]

SETTINGS = [
    M("config key of another tool", T + "--config c.toml", 2, ["c.toml", "num-epochs"], "'epochs'",
      "sed -i s/num_epochs/epochs/ c.toml && " + T + "--config c.toml", plant=text("c.toml", "num_epochs = 1\n")),
    M("config number with a fraction", T + "--config c.toml", 2, ["c.toml", "3.7"],
      plant=text("c.toml", "epochs = 3.7\n")),
    M("config number without end", E1 + "--config c.toml", 2, ["c.toml", "lr"], plant=text("c.toml", "lr = inf\n")),
    M("config answer of 5", E1 + "--config c.toml", 2, ["c.toml", "quiet", "5"], plant=text("c.toml", "quiet = 5\n")),
    M("config with two values", T + "--config c.toml", 2, ["c.toml", "epochs"],
      plant=text("c.toml", "epochs = [1, 2]\n")),
    M("config is a folder", E1 + "--config pictures", 2, ["pictures", "folder"]),
    M("an empty variable", T, 2, ["ONNXTRAIN_EPOCHS", "empty"], env={"ONNXTRAIN_EPOCHS": ""}),
    M("a variable without end", E1, 2, ["ONNXTRAIN_TIME"], env={"ONNXTRAIN_TIME": "nan"}),
    M("a variable nearly right", E1, 2, ["ONNXTRAIN_BATCHSIZE"], "ONNXTRAIN_BATCH_SIZE",
      "{fix}=8 " + E1, env={"ONNXTRAIN_BATCHSIZE": "8"}),
    M("an interpreter that is none", "onnxtrain convert mlp.train.onnx m.pt", 2, ["ONNXTRAIN_PYTHON", "/nowhere"],
      env={"ONNXTRAIN_PYTHON": "/nowhere"}),
    # ---- the run folder
    M("edited optimizer of a run", R, 2, ["run/config.toml", "sgd", "adamw"], "rm run/config.toml", "{fix} && " + R,
      plant=replaced("run/config.toml", 'optimizer = "adamw"', 'optimizer = "sgd"')),
    M("edited seed of a run", R, 2, ["run/config.toml", "seed"], "rm run/config.toml", "{fix} && " + R,
      plant=replaced("run/config.toml", "seed = 0", "seed = 5")),
    M("edited batch of a run", R, 0, ["run/config.toml", "batch = 16", "32"],
      plant=replaced("run/config.toml", "batch = 32", "batch = 16")),
    M("emptied settings of a run", R, 0, ["run/config.toml", "incomplete"], plant=text("run/config.toml", "")),
    M("augmentation of a resumed run", R + "--augment flip", 2, ["--augment"]),
    M("preprocessing of a resumed run", "onnxtrain train --resume csv-run --epochs 3 --preprocess auto", 2,
      ["--preprocess"]),
    M("an optimizer's argument for a resumed run", R + "--optimizer-arg beta1=0.5", 2, ["--optimizer-arg"]),
    M("columns left out of a resumed run", "onnxtrain train --resume csv-run --epochs 3 --drop a", 2, ["--drop"]),
    M("another split of a resumed run", R + "--valid 0.3", 0, ["--valid 0.3", "trained on"]),
    M("the last checkpoint is gone", R, 1, ["run"], "onnxtrain train --resume run/checkpoints/best.train.onnx",
      "{fix} --out o --epochs 3", plant=removed("run/checkpoints/last.train.onnx")),
]

CASES = VALUES + FILES + SETTINGS
