"""Per program the options that run another program or write a file of the caller's choice.

A table says `-o` for a letter (also inside a cluster and with its operand attached), `--output` for a long option
(also abbreviated, with `=`, and with one dash), `-exec` for a long option with one dash, `+` and `@` for operands
that begin so, `=` for operands that assign, `#2` for every operand from the second on, a bare word for itself.
Source: the manuals of the programs, GNU and BSD.
"""

from collections.abc import Mapping
from typing import Final

from .shell_launch import SHELLS

OPTIONS: Final[Mapping[str, str]] = {
    # the shell's own, and shells
    **dict.fromkeys(SHELLS, "-c -s -i -o -O --rcfile --init-file"),
    "printf": "-v",
    "test": "-v -R",
    "wait": "-p",
    "jobs": "-x",
    # text and files
    "sort": "-o -T --output --compress-program --temporary-directory",
    "shuf": "-o --output",
    "split": "--filter",
    "uniq": "#2",
    "xxd": "#2",
    "ptx": "#2",
    "tree": "-o -R",
    "find": "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls",
    "fd": "-x -X --exec --exec-batch",
    "fdfind": "-x -X --exec --exec-batch",
    "rg": "--pre --hostname-bin",
    "ag": "--pager",
    "ack": "--pager",
    "ugrep": "--pager --filter --save-config",
    "diff": "-l --paginate",
    "bat": "-o --pager --output --config-file --config-dir --generate-config-file cache",
    "batcat": "-o --pager --output --config-file --config-dir --generate-config-file cache",
    "delta": "--pager",
    "fzf": "--preview --bind --listen --with-shell --history --become --execute",
    "iconv": "-o --output",
    "xmllint": "-o --output --shell --encode",
    "xsltproc": "-o --output",
    "tidy": "-m -o -f -modify -output -file -config",
    "ctags": "-o -f -L --options --options-maybe --output-format --optlib-dir",
    "clang-format": "-i",
    "shfmt": "-w --write",
    "lsof": "-D",
    "sdiff": "-o --output --diff-program",
    "diff3": "--diff-program",
    "file": "-C -m --compile --magic-file",
    "date": "-s --set",
    "yq": "-i -s --inplace --in-place --split-exp --split-exp-file",
    "sponge": "#1",
    "less": "-o -O -k -t -T --log-file --LOG-FILE --lesskey-file --lesskey-src --lesskey-content --tag --tag-file +",
    "zless": "-o -O -k -t -T --log-file --LOG-FILE --lesskey-file --lesskey-src --lesskey-content --tag --tag-file +",
    "more": "+",
    "zmore": "+",
    "most": "+",
    "man": "-P -H -C -X -T -Z -p --pager --html --config-file --gxditview --troff-device --ditroff --preprocessor",
    "info": "-o --output --dribble --restore --init-file",
    "vi": "-c -S -s -u -w -W -i -V -t --cmd --startuptime --listen --server --remote +",
    "vim": "-c -S -s -u -w -W -i -V -t --cmd --startuptime --listen --server --remote +",
    "nvim": "-c -S -s -u -w -W -i -V -l -t --cmd --startuptime --listen --server --remote +",
    "view": "-c -S -s -u -w -W -i -V -t --cmd --startuptime --listen --server --remote +",
    "ex": "-c -S -s -u -w -W -i -V -t --cmd --startuptime +",
    "emacs": "-f -l -x -q --eval --execute --load --funcall --script --batch --directory +",
    "nano": "-f --rcfile --speller -s -C --backupdir -B +",
    # archives and transfers
    "tar": "-I -F -g --use-compress-program --to-command --checkpoint-action --rsh-command --rmt-command "
    "--info-script --new-volume-script --index-file --listed-incremental --volno-file",
    "zip": "-T -b -O --test --unzip-command --temp-path --output-file --logfile-path",
    "7z": "-o",
    "rsync": "-e -M -T --rsh --rsync-path --log-file --daemon --write-batch --only-write-batch --partial-dir --temp-dir "
    "--backup-dir --remote-option --config",
    "ssh": "-o -F -E -S -D -L -R -W -w -J -I -O",
    "scp": "-o -F -S -J -D",
    "sftp": "-o -F -S -D -b -s -J",
    "curl": "-o -O -J -K -D -c -w -q --output --output-dir --remote-name --remote-name-all --remote-header-name --config "
    "--dump-header --cookie-jar --trace --trace-ascii --trace-config --stderr --libcurl --etag-save --hsts --alt-svc "
    "--write-out --engine --create-dirs --ssl-sessions",
    "wget": "-O -o -a -P -e -i --execute --output-document --output-file --append-output --directory-prefix "
    "--use-askpass --config --save-cookies --warc-file --warc-cdx --warc-tempdir --hsts-file --rejected-log "
    "--preserve-permissions --input-file",
    "http": "-o -d --output --download --session --session-read-only",
    "aria2c": "-o -d -i -l --dir --out --log --conf-path --input-file --save-session --on-download-complete "
    "--on-download-start --on-download-stop --on-download-error --on-download-pause --on-bt-download-complete",
    "yt-dlp": "-o -P -a --exec --exec-before-download --output --paths --config-locations --downloader --external-downloader "
    "--use-postprocessor --plugin-dirs --print-to-file --batch-file --netrc-cmd --cookies --ffmpeg-location --load-info-json",
    "nc": "-e -c -o --exec --sh-exec --lua-exec --output --hex-dump --append-output",
    "ncat": "-e -c -o --exec --sh-exec --lua-exec --output --hex-dump --append-output",
    "nmap": "-o --script --script-args --script-args-file --datadir --stylesheet --servicedb --versiondb -iL",
    "tcpdump": "-z -w -V",
    "tshark": "-w -X -W",
    "openssl": "-engine -provider -provider-path -out -outdir -config -writerand -keyout -passin -passout",
    "gpg": "-o --output --photo-viewer --homedir --options --agent-program --dirmngr-program --keyserver-options "
    "--log-file --status-file --logger-file --load-extension --exec-path --pinentry-mode",
    # languages and their tools
    "go": "-exec -toolexec -o -vettool -fixtool -overlay -modfile -mod -C -w -c -gccgoflags -ldflags -gcflags -asmflags "
    "-compiler -pkgdir -outputdir -cpuprofile -memprofile -blockprofile -mutexprofile -coverprofile -trace -fix "
    "-test.outputdir -test.cpuprofile -test.memprofile -test.blockprofile -test.mutexprofile -test.coverprofile "
    "-test.trace -test.testlogfile -test.gocoverdir -test.fuzzcachedir -debug-trace -debug-actiongraph -pgo -diff",
    "gofmt": "-w -cpuprofile",
    "goimports": "-w -cpuprofile -memprofile -trace",
    "cargo": "-Z -C --config --target-dir --out-dir --artifact-dir --manifest-path --fix --lockfile-path +",
    "rustc": "-o -C -Z -L -A --out-dir --emit --codegen --sysroot +",
    "gcc": "-o -B -wrapper -specs --specs -fplugin -x @",
    "cc": "-o -B -wrapper -specs --specs -fplugin -x @",
    "g++": "-o -B -wrapper -specs --specs -fplugin -x @",
    "c++": "-o -B -wrapper -specs --specs -fplugin -x @",
    "clang++": "-o -B -Xclang -fplugin -fpass-plugin -x --config @",
    "clang": "-o -B -Xclang -fplugin -fpass-plugin -x --config @",
    "javac": "-d -s -h -J -processor -processorpath --processor-path --processor-module-path -Xplugin -A @",
    "java": "-javaagent -agentpath -agentlib -XX -Xlog -D -Xloggc @",
    "python": "-c -m -i -X -W",
    "node": "-e -p -r -i -C --eval --print --require --import --loader --experimental-loader --inspect --inspect-brk "
    "--inspect-wait --cpu-prof --heap-prof --prof --env-file --env-file-if-exists --redirect-warnings --report-dir "
    "--report-directory --report-filename --trace-event-file-pattern --diagnostic-dir --openssl-config --run "
    "--test-reporter --test-reporter-destination --test-global-setup --snapshot-blob --build-snapshot "
    "--experimental-sea-config --build-sea --icu-data-dir --watch --watch-path --localstorage-file",
    "perl": "-e -E -i -M -m -I -d -x -S -D -C -n -p",
    "ruby": "-e -r -i -I -x -C -S -n -p",
    "php": "-r -B -R -E -F -d -c -f -S -z -a",
    "lua": "-e -l -i",
    "Rscript": "-e --default-packages",
    "osascript": "-e -l -s",
    "npm": "-C -c -g --script-shell --prefix --globalconfig --userconfig --node-options --git --editor --viewer --shell "
    "--call --init-module --onload-script --logs-dir --cache --tmp --location --global --git-tag-version --browser",
    "pnpm": "-C -c --dir --script-shell --shell-mode --shell-emulator --config --node-options --prefix --pnpmfile",
    "yarn": "--cwd --script-shell --use-yarnrc --modules-folder --cache-folder --global-folder --prefix --mutex",
    "pip": "-C -t -d -e -o --log --report --python --target --root --prefix --src --dest --config-settings --build-option "
    "--global-option --keyring-provider --output --cache-dir --editable",
    "pytest": "-p -c -o -W --config-file --override-ini --rootdir --confcutdir --junitxml --junit-xml --basetemp --pdbcls "
    "--pdb --trace --pastebin --debug --log-file --report-log --html --cov --cov-report --cov-config --import-mode "
    "--pythonwarnings --result-log --resultlog --benchmark-json --benchmark-storage --json-report-file --pyargs",
    "ruff": "-o --fix --fix-only --unsafe-fixes --add-noqa --output-file --config --cache-dir",
    "mypy": "--config-file --python-executable --install-types --cache-dir --junit-xml --any-exprs-report "
    "--cobertura-xml-report --html-report --linecount-report --linecoverage-report --lineprecision-report --txt-report "
    "--xml-report --xslt-html-report --xslt-txt-report --shadow-file --custom-typing-module",
    "eslint": "-o -c -f --fix --output-file --config --rulesdir --resolve-plugins-relative-to --format --plugin --parser "
    "--cache --cache-file --cache-location --init",
    "prettier": "-w --write --plugin --plugin-search-dir --config --cache --cache-location",
    "tsc": "-p -b --outdir --outDir --outfile --outFile --project --build --plugins --generateTrace --generateCpuProfile "
    "--tsBuildInfoFile --declarationDir --init @",
    "make": "-f -C -I -E -o -W --file --makefile --eval --directory --include-dir --old-file --what-if =",
    "gmake": "-f -C -I -E -o -W --file --makefile --eval --directory --include-dir --old-file --what-if =",
    "ninja": "-f -C -t",
    "cmake": "-E -P -C -D -S -B --build --install --open --toolchain --trace-redirect --profiling-output --graphviz",
    "gradle": "-I -b -c -p -P -D -g --init-script --build-file --settings-file --project-dir --project-prop --system-prop",
    "mvn": "-D -f -s -t -l --define --file --settings --global-settings --toolchains --log-file -gs -gt",
    "ant": "-f -D -file -buildfile -lib -logger -listener -propertyfile -logfile -l -inputhandler -main",
    "rake": "-f -r -e -p -E -I -R --rakefile --require --execute --execute-print --execute-continue --libdir",
    "pandoc": "-F -L -o -d --filter --lua-filter --output --pdf-engine --pdf-engine-opt --extract-media --defaults "
    "--log --data-dir",
    "pdflatex": "-shell-escape -enable-write18 -output-directory -aux-directory -jobname -output-format",
    "latex": "-shell-escape -enable-write18 -output-directory -aux-directory -jobname -output-format",
    "dot": "-o -O -l",
    # other programs with a language of their own
    "sqlite3": "-cmd -init -A #2",
    "psql": "-c -f -o -L -v -X --command --file --output --log-file --set --variable",
    "mysql": "-e --execute --pager --tee --init-command --plugin-dir --defaults-file --defaults-extra-file",
    "dc": "-e -f --expression --file",
    "ed": "#1 -p",
    # machines and services
    "docker": "-v -H -c -o -f --volume --mount --privileged --host --config --context --output --iidfile --cidfile "
    "--metadata-file --entrypoint --volumes-from --device --pid --cap-add --security-opt --file --env-file",
    "podman": "-v -c -o -f --volume --mount --privileged --url --connection --output --iidfile --cidfile --entrypoint "
    "--volumes-from --device --pid --cap-add --security-opt --hooks-dir --conmon --runtime --module --file",
    "kubectl": "-f --kubeconfig --cache-dir --profile-output --log-file --log-dir --filename --kustomize",
    "helm": "--post-renderer --kubeconfig --output-dir --repository-config --registry-config --repository-cache",
    "terraform": "-chdir -out -state -state-out -backup -plugin-dir -generate-config-out -var-file -config",
    "aws": "--profile --endpoint-url --ca-bundle --cli-input-json --cli-input-yaml",
    "gh": "-O -D -w -e --output --dir --web --editor --clobber",
    "ip": "-b -batch",
    "iptables": "--modprobe",
    "journalctl": "--cursor-file --rotate --vacuum-size --vacuum-time --vacuum-files --setup-keys --root --file",
    "dmesg": "-c -C -D -E --read-clear --clear",
    "rpm": "-E -D --eval --define --pipe --rcfile --macros --root --load --undefine",
    "dpkg": "--pre-invoke --post-invoke --admindir --root --instdir --log --status-logger",
    "apt": "-o -c --option --config-file",
    "apt-get": "-o -c --option --config-file",
    "dnf": "-c --config --setopt --installroot",
    "yum": "-c --config --setopt --installroot",
    "hg": "-R -y -o --config --repository --cwd --debugger --profile --output --tool -t",
    "svn": "--diff-cmd --diff3-cmd --editor-cmd --merge-cmd --config-option --config-dir --file",
    "ldd": "#1",
    "ar": "--plugin",
    "nm": "--plugin",
}

GIT_GLOBAL: Final = "-c -C --exec-path --git-dir --work-tree --config-env --namespace --super-prefix --bare"
GIT_ANY: Final = (
    "--output --output-directory --exec --exec-path --upload-pack --receive-pack --open-files-in-pager --ext-diff "
    "--textconv --extcmd --config --config-env --git-dir --strategy --export-marks --sendmail-cmd --smtp-server --to-cmd "
    "--cc-cmd --header-cmd --httpd --web --separate-git-dir --show-signature --in-place"
)
GIT: Final[Mapping[str, str]] = {
    "archive": "-o --remote",
    "bisect": "#2",
    "cat-file": "--filters",
    "clone": "-c -u --template",
    "config": "-f --file #3",
    "difftool": "-x -t --tool",
    "filter-branch": "-d --index-filter --tree-filter --msg-filter --env-filter --commit-filter --parent-filter "
    "--tag-name-filter --setup",
    "format-patch": "-o",
    "grep": "-O",
    "help": "-w",
    "init": "--template",
    "instaweb": "-d -b",
    "ls-remote": "-u",
    "fetch": "-u",
    "merge": "-s",
    "mergetool": "-t --tool",
    "pull": "-s",
    "rebase": "-x -s",
    "submodule": "foreach",
}
