# shellcheck shell=bash disable=SC2154
# build.sh: build_program for the scripts that simulate. Builds into $build and logs to $out. The scripts define say and
# die.

build_program()
{
    command -v smpirun >/dev/null || {
        say "skipped: SimGrid is missing (Debian: libsimgrid-dev); experiments/setup.sh --simulate installs it"
        exit 77
    }
    local log=$out/build.log
    [[ -f $build/build.ninja ]] || log_to=$log wait_for_child cmake --preset simulate -S "$root" -B "$build" ||
        die "cmake failed, see $log: $(tail -n 1 "$log")"
    log_to=$log wait_for_child cmake --build "$build" --target psring-simulate psring-links ||
        die "the build failed, see $log: $(grep -m 1 -E 'error|FAILED' "$log" || tail -n 1 "$log")"
}
