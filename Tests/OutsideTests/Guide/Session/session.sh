# The shell of a reader who types the blocks of one page, in order. It is sourced once, in network,
# mount and process namespaces of its own, so that every page has the same ports and paths to itself.
#
# `session` is the folder of the page: `top` in it is the reader's checkout, and `line-N.sh`, `.text`,
# `.out` and `.errors` are commands from line N, their block, and what they printed. `program` is the
# node under test, and `tree` the checkout that the pages are from.

set -euo pipefail

mkdir -p "$session"/{top/.build/release,built,bin,home,tmp,cache}
cp -r "$tree/deploy" "$tree/Sources/Cluster/Cluster.docc" "$session/top"
touch "$session/top/.build/release/nuthatch"
mount --bind "$program" "$session/top/.build/release/nuthatch"
mount --bind "${program%/*}" "$session/built"
# Paths that pages name are the page's own.
mount --bind "$session/cache" /var/cache
mount --bind "$session/tmp" /tmp
ip link set lo up

cd "$session/top"
export HOME=$session/home TMPDIR=/tmp PATH=$session/bin:$PWD/.build/release:$PATH:$session/built

# Instead of building, the compiler of this checkout finds the program built.
cat >"$session/bin/swift" <<SWIFT
#!/bin/sh
case "\$*" in
--version) echo "Swift version 6.3.1" ;;
*--show-bin-path*) echo "$PWD/.build/release" ;;
"run -c release "*) shift 3; exec "\$@" ;;
esac
SWIFT
# Nothing is installed.
ln -s "$(command -v false)" "$session/bin/apt-get"
chmod +x "$session/bin/swift"

# Begins the step NAME. Requests in it have to succeed, unless the page shows what they print.
begin() {
    echo "$1" >"$session/at"
    block=$session/$1.text
    fails_with_body=--fail-with-body
    [[ ${2:-} != shown ]] || fails_with_body=
    exec >"$session/$1.out" 2>"$session/$1.errors" </dev/null
}

has() { command -v "$1" >/dev/null; }
skip() { echo "$1" >>"$session/skipped"; }

# A block that no test machine can run: its syntax, and the files that it names.
unrun() {
    bash -n "$block"
    local path
    for path in $(grep -oE '(^|-f )deploy/[a-z./-]+' "$block" | grep -o 'deploy/.*'); do
        [[ -e $path ]] || { echo "there is no $path" >&2; return 1; }
    done
}

curl() {
    local own=$fails_with_body
    [[ ! " $*" =~ ' '(--fail|-[a-zA-Z]*f) ]] || own=
    command curl $own "$@"
}

nuthatch() { if [[ ${1:-} == serve ]]; then serve nuthatch "$@"; else command nuthatch "$@"; fi; }
deploy/run() { serve deploy/run "$@"; }

# A node in the foreground has a terminal of its own; the next one takes its place, as if the reader
# had pressed Ctrl-C.
terminal=
serve() {
    [[ " $* " != *' --version '* ]] || { command "$@"; return; }
    [[ $BASHPID == $$ ]] || exec "$@"
    interrupt
    (exec "$@") >"$session/terminal" 2>"$session/terminal-errors" &
    terminal=$!
    until command curl -fs -o "$session/ready" http://127.0.0.1:8081/readyz; do
        kill -0 "$terminal" || { cat "$session/terminal-errors" >&2; return 1; }
        sleep 0.05
    done
}

# Ends the node in the foreground.
interrupt() {
    [[ $terminal ]] || return 0
    kill -INT "$terminal"
    wait "$terminal"
    terminal=
}

# Prints the lines of the node in the foreground that match PATTERN, as soon as there is one.
logged() {
    until grep -h -e "$1" "$session/terminal" "$session/terminal-errors"; do sleep 0.05; done
}

# A web server at 127.0.0.1:PORT (9000) with an image at every path that ends like one, and pages.
origin() { python3 "$session/origin.py" "${1:-9000}"; }
