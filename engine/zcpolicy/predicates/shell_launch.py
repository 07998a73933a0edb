"""Programs that start another command named in their own words: where that command may begin.

In: the words of a command. Out: the positions where a launched command may start. Options that a table does not
know may or may not take an operand, so both readings are given. Source: the manuals of the programs.

A table says the options that take an operand in the next word, after `|` those that take none, `#1` for one operand
before the command, `=` when assignments may stand before it, `!` for options after which nothing is started.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from .shell_lexer import Word

TABLE: Final[Mapping[str, str]] = {
    "sudo": "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --close-from --role --type "
    "--command-timeout --other-user --chdir --chroot = | -A -b -E -e -H -i -K -k -l -n -P -S -s -V -v -B -N "
    "--preserve-env --login --shell --non-interactive --stdin --set-home --background --askpass",
    "doas": "-u -C -a = | -L -n -s",
    "pkexec": "--user | --disable-internal-agent --keep-cwd",
    "runuser": "-u -g -G -s -c -w --user --group --supp-group --shell --command | -l -m -p -f --login",
    "setpriv": "--reuid --regid --groups --inh-caps --ambient-caps --bounding-set | --clear-groups --reset-env",
    "chroot": "#1 | --skip-chdir",
    "env": "-u -C -a --unset --chdir --argv0 = | -i -0 -v --ignore-environment --null --debug -",
    "nice": "-n --adjustment | -0 -1 -2 -3 -4 -5 -6 -7 -8 -9",
    "ionice": "-c -n -p -P -u --class --classdata | -t --ignore",
    "chrt": "-T -P -D #1 | -b -f -i -o -r -R",
    "taskset": "#1 | -a -c -p",
    "nohup": "|",
    "setsid": "| -c -f -w --ctty --fork --wait",
    "stdbuf": "-i -o -e --input --output --error |",
    "unbuffer": "| -p",
    "timeout": "-s -k --signal --kill-after #1 | -v -f -p --foreground --preserve-status --verbose",
    "time": "-f -o --format --output | -p -a -v -q --append --verbose --portability --quiet",
    "command": "| -p ! -v -V",
    "builtin": "|",
    "exec": "-a | -c -l",
    "jobs": "| -l -n -p -r -s -x",
    "xargs": "-I -n -P -s -L -d -E -a -J -R -S --max-args --max-procs --max-chars --delimiter --arg-file "
    "--process-slot-var | -0 -r -t -p -x -o -i -l -e --null --no-run-if-empty --verbose --interactive --exit "
    "--open-tty --replace --max-lines --eof",
    "parallel": "-j -I -a -n -N -L -S -d --jobs --arg-file --delay --max-args --colsep --sshlogin --results --joblog | "
    "-k -q -v -X -m -0 --bar --keep-order --dry-run --null --will-cite --progress --halt-on-error",
    "busybox": "|",
    "toybox": "|",
    "flock": "-w -E -c --timeout --conflict-exit-code --command #1 | -s -x -e -n -o -F -u --shared --exclusive --nonblock "
    "--close --no-fork --verbose",
    "strace": "-a -b -e -E -I -o -O -p -P -s -S -u -U -X | -c -C -d -f -F -h -i -k -n -q -qq -r -t -tt -ttt -T -v -V -w -x "
    "-xx -y -yy -z -Z",
    "ltrace": "-a -A -D -e -l -n -o -p -s -u -w -x -F | -b -c -C -f -i -L -r -S -t -tt -T",
    "valgrind": "|",
    "watch": "-n -q --interval --equexit | -b -c -d -e -g -p -t -w -x --beep --color --differences --errexit --chgexit "
    "--no-title --exec",
    "script": "-c -E -I -O -B -T -m -o --command | -a -e -f -q",
    "systemd-run": "-p -u -M -H -E -G --unit --property --description --slice --setenv --uid --gid | --user --scope -q -t "
    "-P -d --pty --pipe --wait",
    "prlimit": "-p --pid |",
    "unshare": "--map-user --map-group --propagation --setuid --setgid --root --wd -R -w -S -G | -m -u -i -n -p -U -C -T -f "
    "-r -c --mount --net --pid --user --fork --map-root-user",
    "nsenter": "-t -S -G --target --setuid --setgid | -a -m -u -i -n -p -C -U -T -F -r -w --all --mount --net --pid",
    "firejail": "|",
    "proxychains": "-f | -q",
    "proxychains4": "-f | -q",
    "torsocks": "-a -P -u -p | -i -q -d",
    "numactl": "-i -m -N -C -p --interleave --membind --cpunodebind --physcpubind | -l --localalloc",
    "setarch": "#1 | -R -L -X -Z -B",
    "linux32": "|",
    "linux64": "|",
    "caffeinate": "-t -w | -d -i -m -s -u",
    "dbus-run-session": "--config-file --dbus-daemon | --",
    "xvfb-run": "-e -f -n -p -s -w | -a -l --auto-servernum",
    "catchsegv": "|",
    "npx": "-p -c --package --call --node-options | -y -q --yes --no --no-install --quiet",
    "bunx": "|",
    "uvx": "--from --with --python -p | -q --isolated",
    "entr": "| -a -c -d -n -p -r -s -z",
    "chpst": "-u -U -b -/ -e -n -l -L -m -d -o -p -f -c -t -r | -v -P -0 -1 -2",
    "fakeroot": "-l -s -i -b --lib --faked | -u --",
    "dumb-init": "-r --rewrite | -c -v --single-child --verbose",
    "tini": "-p -e | -s -v -w -g",
    "hyperfine": "|",
    "ssh-agent": "-a -t -E -P -O | -c -D -d -k -s",
    "gdb": "-ex -x -iex -ix -cd -d -s -e -c -p | -q -batch --args -nx -quiet --batch --quiet",
    "ssh": "-b -B -c -D -E -e -F -I -i -J -L -l -m -O -o -p -P -Q -R -S -W -w #1 | -4 -6 -A -a -C -f -G -g -K -k -M -N -n -q "
    "-s -T -t -v -X -x -Y -y",
    "docker exec": "-u -w -e --user --workdir --env --env-file --detach-keys -c --context -H --host #1 | -i -t -d "
    "--interactive --tty --privileged --detach",
    "docker run": "-v -e -p -w -u -h -l -m -a -c --name --volume --mount --env --env-file --publish --workdir --user "
    "--network --net --entrypoint --hostname --label --memory --cpus --platform --restart --add-host --device --pull "
    "--link --dns --expose --ip --ipc --pid --runtime --shm-size --tmpfs --ulimit --gpus --volumes-from --cidfile "
    "--log-driver --security-opt --cap-add --cap-drop #1 | -i -t -d -P -q --rm --init --interactive --tty --detach "
    "--privileged --read-only",
    "kubectl exec": "-c -n -f --container --namespace --context --kubeconfig #1 | -i -t -q --stdin --tty --quiet --",
}
"""Per program, or program and subcommand, how its words lead to the command that it starts."""

SHELLS: Final = frozenset("sh bash dash zsh ksh ksh93 mksh pdksh ash rbash rksh yash fish posh csh tcsh hush".split())
"""Programs that read commands from `-c`, from a file or from their standard input."""
INTERPRETERS: Final[Mapping[str, str]] = {
    "python": "-c", "pypy": "-c", "ipython": "-c", "perl": "-e -E", "ruby": "-e", "irb": "", "node": "-e -p --eval --print",
    "nodejs": "-e -p --eval --print", "bun": "-e -p --eval --print eval", "deno": "eval repl", "php": "-r -B -R -E",
    "lua": "-e", "luajit": "-e", "osascript": "-e", "Rscript": "-e", "R": "-e", "julia": "-e -E --eval --print",
    "tclsh": "", "wish": "", "expect": "-c", "guile": "-c -e", "racket": "-e --eval", "groovy": "-e", "scala": "-e",
    "elixir": "-e --eval", "erl": "-eval -run -s", "ghc": "-e --eval", "swift": "-e", "pwsh": "-c -command -e -ec "
    "-encodedcommand", "powershell": "-c -command -e -ec -encodedcommand", "sbcl": "--eval", "emacs": "--eval -eval --execute",
    "gawk": "", "jshell": "", "ts-node": "-e --eval -p --print", "tsx": "-e --eval -p --print",
}  # fmt: skip
"""Per interpreter the options whose operand is code; without an operand they read code from standard input."""


class _Spec(NamedTuple):
    takes: frozenset[str]
    plain: frozenset[str]
    stops: frozenset[str]
    operands: int
    assigns: bool


class Start(NamedTuple):
    """Where launched commands may start; `unreadable` when an expansion stands where that is decided."""

    positions: tuple[int, ...]
    unreadable: bool = False


@lru_cache(maxsize=128)
def _spec(table: str) -> _Spec:
    takes, plain, stops = set[str](), set[str](), set[str]()
    current, operands, assigns = takes, 0, False
    for entry in table.split():
        if entry == "|":
            current = plain
        elif entry == "!":
            current = stops
        elif entry == "=":
            assigns = True
        elif entry.startswith("#"):
            operands = int(entry[1:])
        else:
            current.add(entry)
    return _Spec(frozenset(takes), frozenset(plain), frozenset(stops), operands, assigns)


def command_name(word: Word) -> str:
    """The name that a command word starts: its last path component, letter case folded; `""` when unknown."""
    return (word.text or "").rpartition("/")[2].casefold()


def starts(words: Sequence[Word]) -> Start | None:
    """Where the commands may start that this one launches; `None` for a program that launches none."""
    name = command_name(words[0])
    if name == "coproc":  # `coproc [NAME] command`
        return Start((1, 2)[: len(words) - 1])
    table = TABLE.get(name)
    if table is not None:
        return _walk(words, 1, _spec(table))
    for key in ("docker", "podman", "nerdctl", "kubectl", "oc"):
        if name == key:
            return _subcommand(words, "kubectl" if key in {"kubectl", "oc"} else "docker")
    return None


def _subcommand(words: Sequence[Word], family: str) -> Start | None:
    """`docker [options] exec|run …`, also `docker container exec` and `docker compose exec`."""
    for index in range(1, len(words)):
        text = words[index].text
        if text is None:
            return Start((), unreadable=True)
        table = TABLE.get(f"{family} {text}")
        if table is not None:
            return _walk(words, index + 1, _spec(table))
    return None


def _walk(words: Sequence[Word], start: int, spec: _Spec) -> Start:
    """Every reading of the options from `start` on; states are (position, operands still to come)."""
    todo, seen = [(start, spec.operands)], set[tuple[int, int]]()
    found: set[int] = set()
    unreadable = False
    while todo:
        state = todo.pop()
        index, operands = state
        if state in seen or index >= len(words):
            continue
        seen.add(state)
        text = words[index].text
        if text is None and not _is_harmless_hole(words[index], operands, spec):
            unreadable = True
            continue
        text = words[index].head if text is None else text
        if text == "--":
            todo.append((index + 1, operands))
        elif text.startswith("-"):
            if text in spec.stops:
                continue
            todo += [(index + step, operands) for step in _steps(text, spec)]
        elif spec.assigns and "=" in text:
            todo.append((index + 1, operands))
        elif operands:
            todo.append((index + 1, operands - 1))
        else:
            found.add(index)
    last = max(found, default=len(words))
    unreadable = unreadable or any(word.splits for word in words[start:last])
    return Start(tuple(sorted(found)), unreadable)


def _is_harmless_hole(word: Word, operands: int, spec: _Spec) -> bool:
    """Whether a word with an unknown part is one operand or one assignment all the same."""
    if word.splits or not word.head:
        return False
    return operands > 0 or word.head.startswith("-") or (spec.assigns and "=" in word.head)


def _steps(option: str, spec: _Spec) -> tuple[int, ...]:
    """How many words an option takes: itself, or itself and its operand, or either."""
    if option in spec.plain:
        return (1,)
    if option in spec.takes:
        return (2,)
    if option.startswith("--"):
        name = option.partition("=")[0]
        return (1,) if name != option and name in spec.takes | spec.plain else (1, 2)
    for place, letter in enumerate(option[1:], start=2):
        if "-" + letter in spec.takes:
            return (2,) if place == len(option) else (1,)
        if "-" + letter not in spec.plain:
            return (1, 2)
    return (1,)


MAX_LAUNCHES: Final = 32
"""Launchers behind launchers in one command; with more nothing but written words is granted."""

_SPELL_ALL: Final = frozenset("eval trap su script sg at batch crontab tmux screen socat expect watch".split())
_SPELL_FILE: Final = frozenset((".", "source"))


class Spelled(NamedTuple):
    """How far the words of a launcher have to be written out, and where launched commands may start."""

    until: int
    positions: tuple[int, ...]


def spelled(words: Sequence[Word]) -> Spelled | None:
    """What a granting pattern must write out of a command that launches another; `None` when it launches none."""
    name = command_name(words[0])
    if name in _SPELL_ALL:
        return Spelled(len(words), ())
    if name in _SPELL_FILE:
        return Spelled(2, ())
    start = starts(words)
    if start is None:
        return None
    if start.unreadable or any(word.head.startswith(("-S", "--split")) for word in words[1:]):
        return Spelled(len(words), ())
    if not start.positions:
        return Spelled(len(words), ())
    return Spelled(max(start.positions) + 1, start.positions)


_CLIENTS: Final = frozenset("docker podman nerdctl kubectl oc".split())


def is_launcher(program: str, subcommand: str | None) -> bool:
    """Whether a program starts others that its words name, or runs code that they hold.

    `subcommand`: the word after it, `None` when a pattern leaves it open: it decides for the clients of containers.
    """
    name = program.rpartition("/")[2].casefold()
    if name in _CLIENTS:
        return subcommand in {None, "exec", "run", "compose", "container"}
    family = name.rstrip("0123456789.-")
    return bool({name, family} & (TABLE.keys() | SHELLS | INTERPRETERS.keys() | _SPELL_ALL | _SPELL_FILE | {"coproc"}))


def may_launch(word: Word) -> bool:
    """Whether the program of a command word may start another one that its words name; quick."""
    return command_name(word) in _LAUNCHING


_LAUNCHING: Final = frozenset(
    {*(key.partition(" ")[0] for key in TABLE), *_SPELL_ALL, *_SPELL_FILE, "podman", "nerdctl", "oc", "coproc"}
)
