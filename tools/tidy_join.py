"""Joins C++ sources into one translation unit for clang-tidy, which spends nearly all of its time in the headers that
every source includes.

A source goes in as a copy in which every name of its anonymous namespace has a number behind it, so that the same name
in two sources does not clash. In what clang-tidy says, places and names become those of the sources again.
"""

import pathlib
import re

ALONE = re.compile(rb"foreach_target|HWY_TARGET_INCLUDE")  # Highway's loops include themselves once per instruction set
INCLUDE = re.compile(r'^(\s*#\s*include\s*)"([^"]+)"', re.M)
HIDDEN = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.M | re.S)
TYPE = re.compile(r"^(?:template <[^\n]*> )?(?:struct|class|enum class|enum|union) (?:alignas\([^)]*\) )?(\w+)", re.M)
ALIAS = re.compile(r"^using (\w+) =", re.M)
CALL = re.compile(r"^(?!namespace|return|#|//|TEST|using|static_assert|struct|class|enum)[A-Za-z\[][^\n(=]*?\b(\w+)\(",
                  re.M)
VARIABLE = re.compile(
    r"^(?:constexpr|const|static|inline|thread_local|std::)[^\n(]*?\b(\w+)(?:\[[^\]]*\])* ?(?:=|\{|;)", re.M)
MACRO = re.compile(r"^#define (\w+)", re.M)


def joinable(path):
    return not ALONE.search(path.read_bytes())


def _numbered(name, number):
    return f"{name}{'U' if name[0].isupper() or re.match('k[A-Z]', name) else '_u'}{number}"


def _copy(root, path, number):
    text = (root / path).read_text()
    names = set()
    for part in HIDDEN.findall(text):
        for pattern in (TYPE, ALIAS, CALL, VARIABLE):
            names.update(pattern.findall(part))
    names.discard("operator")

    def absolute(m):
        beside = (root / path).parent / m[2]
        return f'{m[1]}"{beside}"' if beside.is_file() and not (root / "src" / m[2]).is_file() else m[0]

    macros = MACRO.findall(text)
    text = INCLUDE.sub(absolute, text)
    if names:
        word = re.compile(r"(?<![\w.])(?<!->)(?<!::)(" + "|".join(sorted(names)) + r")\b")
        lines = text.split("\n")
        text = "\n".join(li if li.startswith("#include") else word.sub(lambda m: _numbered(m[1], number), li)
                         for li in lines)
    return text + "".join(f"\n#undef {m}" for m in macros)


def write(root, unit, paths):
    """Writes the joined file, not one that includes the others: much of clang-tidy looks at the main file only.
    Returns the first line of each path in it."""
    text, starts = "", []
    for number, path in enumerate(paths):
        starts.append((text.count("\n") + 1, path))
        text += _copy(root, path, number) + "\n"
    unit.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text(text)
    return starts


def original(said, root, unit, starts):
    """What clang-tidy said, with the sources' own paths, lines and names."""
    def place(m):
        line = int(m[1])
        start, path = max(s for s in starts if s[0] <= line)
        return f"{root / path}:{line - start + 1}:"

    said = re.sub(re.escape(str(unit)) + r":(\d+):", place, said)
    return re.sub(r"\b([a-z]\w*?)_u\d+\b|\b(k?[A-Z]\w*?)U\d+\b", lambda m: m[1] or m[2], said)


def groups(files, flags, most):
    """Files of equal flags, at most `most` together."""
    by_flags = {}
    for f in files:
        by_flags.setdefault(flags[f], []).append(f)
    for same in by_flags.values():
        for i in range(0, len(same), most):
            yield same[i:i + most]


def flags_of(entry):
    """A compile command without its source and its object."""
    command = re.sub(r" -o \S+", "", entry["command"])
    return command.replace(entry["file"], "").replace(str(pathlib.Path(entry["file"])), "").strip()
