#!/bin/sh
# Builds team-table and installs it for this user; see usage below or `./install.sh --help`.
# Backticks in the texts are quotation marks.
# shellcheck disable=SC2016
set -eu

usage() {
    cat <<'END'
Usage: ./install.sh [--demo | --uninstall | --help]

Builds team-table and installs it to $PREFIX/bin ($HOME/.local/bin if PREFIX is not set).

  --demo        then show two agents that write to each other, in a throw-away folder
  --uninstall   remove what an earlier run installed
  --help        print this

Needs Rust (cargo) and a C compiler. A server that is running is not disturbed: it stays the old
one until its client starts it anew.
END
}

say() { printf '%s\n' "$*"; }
fail() {
    printf 'install.sh: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf '%s\n' "$line" >&2; done
    exit 1
}

# In quotes where a shell would need them.
quoted() {
    case $1 in
    *[!A-Za-z0-9/._+@%:,-]*) printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")" ;;
    *) printf '%s' "$1" ;;
    esac
}

# ---- what is asked for ----

mode=install
for arg in "$@"; do
    case $arg in
    -h | --help)
        usage
        exit 0
        ;;
    esac
done
for arg in "$@"; do
    case $arg in
    --demo | --uninstall)
        if [ "$mode" != install ] && [ "$mode" != "${arg#--}" ]; then
            printf 'install.sh: --demo and --uninstall exclude each other\n' >&2
            exit 2
        fi
        mode=${arg#--}
        ;;
    *)
        printf 'install.sh: unknown option `%s`\n\n' "$arg" >&2
        usage >&2
        exit 2
        ;;
    esac
done

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
prefix=${PREFIX:-${HOME:+$HOME/.local}}
[ -n "$prefix" ] || fail 'neither PREFIX nor HOME is set: where to?' \
    'hint: PREFIX=/some/folder ./install.sh'
case $prefix in
/*) ;;
*) prefix=$(pwd)/$prefix ;;
esac
while [ "$prefix" != / ] && [ "${prefix%/}" != "$prefix" ]; do prefix=${prefix%/}; done
bin=${prefix%/}/bin
program=$bin/team-table
share=${prefix%/}/share/team-table
# One line per fact: `cksum SUM SIZE` of a program put here, `made DIR` for a folder made for it.
receipt=$share/receipt

checksum() { cksum <"$1" | tr -s ' \t' ' '; }

# Whether the program that is there now is one that an earlier run installed.
is_ours() {
    [ -f "$receipt" ] && [ -f "$program" ] && [ ! -L "$program" ] &&
        grep -qxF "cksum $(checksum "$program")" "$receipt"
}
is_there() { [ -e "$program" ] || [ -L "$program" ]; }

# Removes the folders that `made` lists, the deepest first. One that somebody else uses by now is
# not empty, and stays.
remove_made() {
    printf '%s\n' "$made" | sed -n 's/^made //p' | while IFS= read -r folder; do
        rmdir -- "$folder" 2>/dev/null || :
    done
}

# ---- remove ----

uninstall() {
    if ! is_there && [ ! -f "$receipt" ]; then
        say "nothing to remove: there is no $program"
        return
    fi
    if is_there && ! is_ours; then
        fail "$program is not what this script installed; it is left alone" \
            "hint: look at it, and if it is to go: rm $(quoted "$program")"
    fi
    outcome="$program was gone already; removed the note that it was installed"
    ! is_there || outcome="removed $program"
    made=$(cat -- "$receipt")
    rm -f -- "$program" "$receipt"
    remove_made
    say "$outcome"
    say 'left alone, since they belong to your projects:'
    say '  the tables, one folder .agent-comms in each project'
    say '  what `team-table init` wrote into files such as .mcp.json and .codex/config.toml'
    built=${CARGO_TARGET_DIR:-$here/target}/release/team-table
    if [ -x "$built" ]; then built=$(quoted "$built"); else built='team-table (installed again)'; fi
    say "To take those entries out of a project, run there: $built init --remove"
}

# ---- build ----

check_rust() {
    rust_hint='hint: https://rustup.rs installs Rust; open a new shell afterwards'
    command -v cargo >/dev/null 2>&1 ||
        fail 'cargo is not on PATH: team-table is built with Rust' "$rust_hint"
    found=$("${RUSTC:-rustc}" --version 2>&1) ||
        fail 'there is cargo, but rustc does not run' "$found" "$rust_hint"
    wanted=$(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' Cargo.toml)
    version=$(say "$found" | sed -n 's/^rustc \([0-9][0-9]*\)\.\([0-9][0-9]*\).*/\1 \2/p')
    [ -n "$version" ] || fail 'rustc does not say its version' "$found" "$rust_hint"
    oldest=$(say "$wanted" | sed 's/^\([0-9]*\)\.\([0-9]*\).*/\1 \2/')
    if [ "${version% *}" -lt "${oldest% *}" ] ||
        { [ "${version% *}" -eq "${oldest% *}" ] && [ "${version#* }" -lt "${oldest#* }" ]; }; then
        fail "Rust is too old: found $found, needed is $wanted" \
            'hint: rustup update stable (a Rust from the distribution is often too old)'
    fi
}

# SQLite is built from its C source. A compiler alone is not enough: it needs the C headers too.
check_c() {
    # CC may hold options, so it is split.
    # shellcheck disable=SC2086
    if ! problem=$(printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' |
        ${CC:-cc} -x c -o "$scratch/probe" - 2>&1); then
        fail "the C compiler (${CC:-cc}) is missing or cannot build a program" "$problem" \
            'hint: Debian, Ubuntu: apt install build-essential; Fedora: dnf install gcc;' \
            '      macOS: xcode-select --install'
    fi
}

# Sets `built` and, for the demo, `example`. cargo itself says where they are, since that depends
# on its settings.
build() {
    set -- cargo build --release --locked --bin team-table
    [ "$mode" != demo ] || set -- "$@" --example two_agents
    say 'building team-table (some minutes the first time)'
    "$@" --message-format=json-render-diagnostics >"$scratch/build" ||
        fail 'the build failed; nothing was installed'
    built=$(executable bin team-table)
    [ -x "$built" ] || fail 'cargo built no team-table; nothing was installed'
    [ "$mode" != demo ] || example=$(executable example two_agents)
}

executable() {
    grep -F "\"kind\":[\"$1\"]" "$scratch/build" | grep -F "\"name\":\"$2\"" |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'
}

# ---- install ----

check_place() {
    if is_there && ! is_ours; then
        fail "there is a $program that this script did not install" \
            'hint: remove it, or install elsewhere with PREFIX=/some/folder ./install.sh'
    fi
    for folder in "$share" "$bin"; do
        if ! mkdir_noted "$folder" || [ ! -w "$folder" ]; then
            fail "cannot write to $folder" 'hint: PREFIX=/some/folder ./install.sh'
        fi
    done
}

# Makes a folder and adds to `made` those that were not there, the deepest first.
mkdir_noted() {
    missing=$1
    above=
    while [ ! -d "$missing" ]; do
        above="${above}made $missing
"
        missing=$(dirname -- "$missing")
    done
    mkdir -p -- "$1" && made="$above$made"
}

# Copies beside and renames: whoever runs the old program keeps it, nobody sees half a new one.
# The receipt comes first and knows both, so that being interrupted in between does no harm.
put_in_place() {
    beside=$bin/.team-table.$$
    cp -- "$built" "$beside"
    chmod 755 "$beside"
    version=$("$beside" --version </dev/null) ||
        fail "the program that was built does not run; nothing was installed"
    {
        printf '%s\n' '# What install.sh of team-table put here; install.sh --uninstall reads it.'
        printf 'cksum %s\n' "$(checksum "$beside")"
        ! is_there || printf 'cksum %s\n' "$(checksum "$program")"
        printf '%s' "$made"
        [ ! -f "$receipt" ] || sed -n '/^made /p' "$receipt"
    } >"$receipt.$$"
    outcome=installed
    ! is_there || outcome=replaced
    mv -f -- "$receipt.$$" "$receipt"
    mv -f -- "$beside" "$program"
    beside=
    if [ "$outcome" = replaced ]; then
        say "replaced $program (now ${version:-team-table})"
        say 'servers that are running stay the old ones until their clients start them anew'
    else
        say "installed ${version:-team-table} as $program"
    fi
    made=
}

check_path() {
    first=$(command -v team-table 2>/dev/null || :)
    case :$PATH: in
    *:"$bin":*)
        [ "$first" = "$program" ] || [ -z "$first" ] || {
            say "warning: PATH finds another team-table first: $first"
            say '         remove that one, or put this folder before it'
        }
        return
        ;;
    esac
    say "warning: $bin is not on PATH. Add this line to your shell's start file"
    say '         and start your agents from a new shell:'
    case ${SHELL:-} in
    *fish) say "  fish_add_path $(quoted "$bin")" ;;
    *) say "  export PATH=$(quoted "$bin"):\"\$PATH\"" ;;
    esac
    say
}

demo() {
    say
    say "two agents in a throw-away folder ($(quoted "$program") serves both):"
    mkdir "$scratch/demo"
    (
        # Neither a table, a name nor an agent of this shell has a part in it.
        unset TEAM_TABLE_DB TEAM_TABLE_NAME
        unset CLAUDE_CODE_SESSION_ID CODEX_THREAD_ID COPILOT_AGENT_SESSION_ID
        cd "$scratch/demo"
        "$example" "$program"
    ) || fail 'the demo failed; the program stays installed' \
        "again: cargo run --release --example two_agents -- $(quoted "$program")"
}

if [ "$mode" = uninstall ]; then
    uninstall
    exit 0
fi

scratch=
beside=
made=
clean() {
    [ -z "$scratch" ] || rm -rf -- "$scratch"
    [ -z "$beside" ] || rm -f -- "$beside" "$receipt.$$"
    # What was made for an installation that did not come about.
    remove_made
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

scratch=$(mktemp -d "${TMPDIR:-/tmp}/team-table.XXXXXX")
cd "$here"
check_rust
check_c
check_place
build
put_in_place
[ "$mode" != demo ] || demo
say
check_path
say 'Next: in a project, run `team-table init`. Shell completion: `team-table completions SHELL`.'
