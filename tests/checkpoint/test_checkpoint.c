#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "common/base/sha256.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/lib/capture.h"

enum { WEIGHTS = 37, STATE = 11, CARRIED = 5, FILE_BYTES_MAX = 4096, SUM_BYTES = 64 };

static float weights[WEIGHTS], state[STATE], carried[CARRIED];
static const struct checkpoint_option run_options[] = {{"batch", "64", NULL, false, NULL},
                                                       {"workers", "4", NULL, false, NULL}};

static struct checkpoint make_checkpoint(void)
{
    for (size_t i = 0; i < WEIGHTS; i++)
        weights[i] = 0.25f * (float)i - 3.0f;
    for (size_t i = 0; i < STATE; i++)
        state[i] = 1.0f / (float)(i + 1);
    for (size_t i = 0; i < CARRIED; i++)
        carried[i] = -1.0f / (float)(i + 3);
    return (struct checkpoint){.model = "keras-cnn",
                               .optimizer = "adadelta",
                               .seed = 0xFEDCBA9876543210u,
                               .epoch = 3,
                               .step = 117,
                               .trained_ns = 12345678901,
                               .images = 98765432109,
                               .weights = weights,
                               .weight_count = WEIGHTS,
                               .state = state,
                               .state_count = STATE,
                               .carried = carried,
                               .carried_count = CARRIED,
                               .options = run_options,
                               .option_count = 2};
}

static char *in_folder(char path[96], const char *dir)
{
    snprintf(path, 96, "%s/state.ckpt", dir);
    return path;
}

static size_t read_file(const char *path, unsigned char bytes[FILE_BYTES_MAX])
{
    FILE *file = fopen(path, "rb");
    cr_assert(file != NULL);
    size_t count = fread(bytes, 1, FILE_BYTES_MAX, file);
    fclose(file);
    return count;
}

static void write_file(const char *path, const unsigned char *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
}

/* Writes `bytes` with a fresh sum at the end, like a deliberate forgery. */
static void write_with_sum(const char *path, unsigned char *bytes, size_t count)
{
    char hex[SHA256_HEX_SIZE];
    cr_assert(sha256_hex(bytes, count - SUM_BYTES, hex) == STATUS_OK);
    memcpy(bytes + count - SUM_BYTES, hex, SUM_BYTES);
    write_file(path, bytes, count);
}

static void expect_equal(const struct checkpoint *found, const struct checkpoint *expected)
{
    cr_assert_str_eq(found->model, expected->model);
    cr_assert_str_eq(found->optimizer, expected->optimizer);
    cr_assert(found->seed == expected->seed && found->epoch == expected->epoch &&
              found->step == expected->step && found->trained_ns == expected->trained_ns &&
              found->images == expected->images);
    cr_assert(found->weight_count == expected->weight_count);
    cr_assert(found->state_count == expected->state_count);
    cr_assert_arr_eq(found->weights, expected->weights, WEIGHTS * sizeof(float));
    if (expected->state_count > 0)
        cr_assert_arr_eq(found->state, expected->state, expected->state_count * sizeof(float));
    cr_assert(found->carried_count == expected->carried_count);
    if (expected->carried_count > 0)
        cr_assert_arr_eq(found->carried, expected->carried, CARRIED * sizeof(float));
    cr_assert(found->option_count == expected->option_count);
    for (size_t i = 0; i < expected->option_count; i++) {
        cr_assert_str_eq(found->options[i].name, expected->options[i].name);
        cr_assert_str_eq(found->options[i].value, expected->options[i].value);
    }
}

/* -------- the operating system, played if a test requests it ---------------------------------- */

static int interruptions;    /* interruptions of open and fsync by signals, still to come */
static bool folders_fail;    /* flushing a folder fails */
static char flushed[3][128]; /* the flushed folders, in order */
static int flushed_count;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    if (interruptions > 0) {
        interruptions--;
        errno = EINTR;
        return -1;
    }
    return __real_open(path, flags, 0666);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    struct stat info;
    char link[32];
    if (interruptions > 0) {
        interruptions--;
        errno = EINTR;
        return -1;
    }
    cr_assert_eq(fstat(fd, &info), 0);
    if (S_ISDIR(info.st_mode) && folders_fail) {
        errno = EIO;
        return -1;
    }
    if (S_ISDIR(info.st_mode) && flushed_count < 3) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        cr_assert_gt(readlink(link, flushed[flushed_count++], sizeof flushed[0] - 1), 0);
    }
    return __real_fsync(fd);
}

Test(checkpoint, comes_back_as_it_was)
{
    char dir[64], path[96], temporary[128];
    struct checkpoint saved = make_checkpoint(), *loaded;
    struct stat info;
    folder_new(dir);
    in_folder(path, dir);
    for (int round = 0; round < 3; round++) { /* the later rounds replace the earlier file */
        saved.epoch += 1;
        if (round == 2) { /* an optimizer without state, a run without options */
            saved.state = saved.carried = NULL;
            saved.state_count = saved.option_count = saved.carried_count = 0;
        }
        cr_assert(checkpoint_save(path, &saved) == STATUS_OK);
        cr_assert(checkpoint_load(&loaded, path) == STATUS_OK);
        expect_equal(loaded, &saved);
        checkpoint_free(&loaded);
        cr_assert(loaded == NULL);
    }
    checkpoint_free(&loaded); /* nothing to do */
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    cr_assert(stat(temporary, &info) != 0);
    folder_free(dir);
}

/* Files of earlier versions: the header lacks one or two fields at its end. Nothing is carried. */
Test(checkpoint, reads_the_versions_before)
{
    enum { LONG = 88 };
    for (unsigned char version = 2; version <= 3; version++) {
        char dir[64], path[96];
        unsigned char bytes[FILE_BYTES_MAX];
        struct checkpoint saved = make_checkpoint(), *loaded;
        size_t length = version == 2 ? 72 : 80;
        if (version == 2) {
            saved.carried = NULL;
            saved.carried_count = 0;
        }
        folder_new(dir);
        cr_assert(checkpoint_save(in_folder(path, dir), &saved) == STATUS_OK);
        size_t count = read_file(path, bytes);
        memmove(bytes + length, bytes + LONG, count - LONG);
        bytes[8] = version;
        write_with_sum(path, bytes, count - (LONG - length));
        cr_assert(checkpoint_load(&loaded, path) == STATUS_OK);
        saved.images = 0;
        expect_equal(loaded, &saved);
        checkpoint_free(&loaded);
        folder_free(dir);
    }
}

/* -------- several in a folder ----------------------------------------------------------------- */

static void save_step(const char *dir, uint64_t step, size_t keep)
{
    struct checkpoint saved = make_checkpoint();
    saved.step = step;
    cr_assert(checkpoint_save_step(dir, "cnn", step, keep, &saved) == STATUS_OK);
}

static void expect_newest(const char *dir, uint64_t step)
{
    struct checkpoint *loaded;
    char *path;
    cr_assert(checkpoint_load_newest(&loaded, &path, dir, "cnn") == STATUS_OK && loaded);
    cr_assert_eq(loaded->step, step);
    cr_assert(strstr(path, dir) == path);
    checkpoint_free(&loaded);
    free(path);
}

static size_t count_of(const char *dir, const char *name)
{
    size_t count;
    cr_assert_eq(checkpoint_count(dir, name, &count), STATUS_OK);
    return count;
}

Test(checkpoint, the_newest_ones_stay)
{
    char dir[64], path[128], pipe[128];
    struct checkpoint saved = make_checkpoint(), *loaded;
    char *name;
    folder_new(dir);
    cr_assert(checkpoint_load_newest(&loaded, &name, dir, "cnn") == STATUS_OK && !loaded && !name);
    snprintf(path, sizeof path, "%s/cnn.checkpoint", dir); /* of an earlier version */
    saved.step = 1000000;
    cr_assert(checkpoint_save(path, &saved) == STATUS_OK);
    expect_newest(dir, 1000000);
    /* Files with similar names stay. */
    snprintf(path, sizeof path, "%s/cnn2.step-00000001.checkpoint", dir);
    cr_assert(checkpoint_save(path, &saved) == STATUS_OK);
    snprintf(path, sizeof path, "%s/cnn.step-1x.checkpoint", dir);
    cr_assert(checkpoint_save(path, &saved) == STATUS_OK);
    snprintf(path, sizeof path, "%s/cnn.step-00000007.checkpoint.tmp", dir); /* half written */
    cr_assert(checkpoint_save(path, &saved) == STATUS_OK);
    snprintf(pipe, sizeof pipe, "%s/cnn.step-00000008.checkpoint.tmp", dir); /* not psring's */
    cr_assert_eq(mkfifo(pipe, 0600), 0);
    cr_assert_eq(count_of(dir, "cnn"), 1);
    for (uint64_t step = 9; step <= 12; step++) {
        save_step(dir, step, 2);
        expect_newest(dir, step);
        cr_assert_eq(count_of(dir, "cnn"), 2);
    }
    cr_assert(access(path, F_OK) != 0);
    cr_assert_eq(unlink(pipe), 0);
    save_step(dir, 100000000, 3); /* more digits than the others */
    expect_newest(dir, 100000000);
    cr_assert_eq(count_of(dir, "cnn"), 3);
    /* The run starts again from an earlier step: later checkpoints do not belong to it. */
    save_step(dir, 11, 3);
    expect_newest(dir, 11);
    cr_assert_eq(count_of(dir, "cnn"), 1);
    cr_assert_eq(count_of(dir, "cnn2"), 1);
    folder_free(dir);
}

Test(checkpoint, a_damaged_one_is_passed_over)
{
    char dir[64], path[128];
    struct checkpoint *loaded;
    char *name;
    struct capture capture;
    folder_new(dir);
    save_step(dir, 3, 3);
    save_step(dir, 5, 3);
    snprintf(path, sizeof path, "%s/cnn.step-00000005.checkpoint", dir);
    cr_assert(truncate(path, 300) == 0);
    capture_start(&capture);
    expect_newest(dir, 3);
    cr_assert_eq(capture_stop(&capture), 2);
    cr_assert(strstr(capture.text, "it is truncated") != NULL);
    cr_assert(strstr(capture.text, "loading the one before it, cnn.step-00000003") != NULL);
    cr_assert(unlink(path) == 0);
    snprintf(path, sizeof path, "%s/cnn.step-00000003.checkpoint", dir);
    cr_assert(truncate(path, 300) == 0);
    assert_refused(checkpoint_load_newest(&loaded, &name, dir, "cnn"), STATUS_INPUT,
                   "it is truncated");
    cr_assert(!loaded && !name);
    folder_free(dir);
}

/* A file of another version may be whole. If an older one were loaded instead, the next save would
 * remove the file. */
Test(checkpoint, another_versions_is_not_passed_over)
{
    char dir[64], path[128];
    unsigned char bytes[FILE_BYTES_MAX];
    struct checkpoint *loaded;
    char *name;
    folder_new(dir);
    save_step(dir, 3, 3);
    save_step(dir, 5, 3);
    snprintf(path, sizeof path, "%s/cnn.step-00000005.checkpoint", dir);
    size_t count = read_file(path, bytes);
    bytes[8] = 9;
    write_with_sum(path, bytes, count);
    assert_refused(checkpoint_load_newest(&loaded, &name, dir, "cnn"), STATUS_UNSUPPORTED,
                   "format version 0x9");
    cr_assert(!loaded && !name);
    folder_free(dir);
}

/* A folder that cannot be searched is not an empty folder. */
Test(checkpoint, a_folder_that_cannot_be_searched_is_an_error)
{
    char dir[64], path[96];
    struct checkpoint *loaded;
    char *name;
    size_t count;
    folder_new(dir);
    in_folder(path, dir);
    FILE *file = fopen(path, "w"); /* a file instead of a folder */
    cr_assert(file != NULL);
    fclose(file);
    assert_refused(checkpoint_load_newest(&loaded, &name, path, "cnn"), STATUS_IO,
                   "cannot be searched");
    cr_assert_eq(checkpoint_count(path, "cnn", &count), STATUS_IO);
    folder_free(dir);
}

Test(checkpoint, refuses_every_truncation)
{
    char dir[64], path[96];
    unsigned char bytes[FILE_BYTES_MAX];
    struct checkpoint saved = make_checkpoint(), *loaded;
    folder_new(dir);
    cr_assert(checkpoint_save(in_folder(path, dir), &saved) == STATUS_OK);
    size_t count = read_file(path, bytes);
    for (size_t kept = 0; kept < count; kept++) {
        write_file(path, bytes, kept);
        assert_refused(checkpoint_load(&loaded, path), STATUS_INPUT, "it is truncated");
        cr_assert(loaded == NULL);
    }
    bytes[count] = 0;
    write_file(path, bytes, count + 1);
    assert_refused(checkpoint_load(&loaded, path), STATUS_INPUT, "longer than it was written");
    folder_free(dir);
}

Test(checkpoint, refuses_every_flipped_bit)
{
    char dir[64], path[96];
    unsigned char bytes[FILE_BYTES_MAX];
    struct checkpoint saved = make_checkpoint(), *loaded;
    folder_new(dir);
    cr_assert(checkpoint_save(in_folder(path, dir), &saved) == STATUS_OK);
    size_t count = read_file(path, bytes);
    for (size_t bit = 0; bit < 8 * count; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        write_file(path, bytes, count);
        assert_refused(checkpoint_load(&loaded, path), STATUS_INPUT, "or remove it");
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    folder_free(dir);
}

/* Wrong header fields with a matching sum: each must be found. */
Test(checkpoint, refuses_headers_that_lie)
{
    static const struct {
        size_t offset;
        unsigned char value;
        const char *words;
    } cases[] = {
        {0, 'p', "does not begin with PSRINGCK"},
        {8, 9, "format version 0x9, expected 0x4"},
        {12, 1, "byte order mark"},
        {16, WEIGHTS + 1, "it is truncated"},
        {16, WEIGHTS - 1, "longer than it was written"},
        {23, 0xff, "cannot be true"},      /* weights: near 2^64 */
        {31, 0x40, "cannot be true"},      /* state: 2^62 floats */
        {22, 0x01, "it is truncated"},     /* weights: 2^48 more, a petabyte */
        {67, 0x01, "cannot be true"},      /* strings: 16 MiB more */
        {69, 0x02, "cannot be true"},      /* 512 options more */
        {68, 3, "names and options"},      /* one more than there are */
        {68, 1, "names and options"},      /* one fewer */
        {88, '\033', "names and options"}, /* an escape sequence in the model's name */
        {88 + 9, 'x', "names and options"},
    };
    char dir[64], path[96];
    unsigned char bytes[FILE_BYTES_MAX], damaged[FILE_BYTES_MAX];
    struct checkpoint saved = make_checkpoint(), *loaded;
    folder_new(dir);
    cr_assert(checkpoint_save(in_folder(path, dir), &saved) == STATUS_OK);
    size_t count = read_file(path, bytes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memcpy(damaged, bytes, count);
        damaged[cases[i].offset] = cases[i].value;
        write_with_sum(path, damaged, count);
        bool another = cases[i].offset == 8 || cases[i].offset == 12;
        assert_refused(checkpoint_load(&loaded, path), another ? STATUS_UNSUPPORTED : STATUS_INPUT,
                       cases[i].words);
    }
    folder_free(dir);
}

Test(checkpoint, refuses_an_option_given_twice)
{
    static const struct checkpoint_option twice[] = {{"batch", "64", NULL, false, NULL},
                                                     {"batch", "32", NULL, false, NULL}};
    char dir[64], path[96];
    struct checkpoint saved = make_checkpoint(), *loaded;
    folder_new(dir);
    saved.options = twice;
    cr_assert(checkpoint_save(in_folder(path, dir), &saved) == STATUS_OK);
    assert_refused(checkpoint_load(&loaded, path), STATUS_INPUT, "names and options");
    folder_free(dir);
}

/* Weights, state and residuals follow one another, before the sum. */
Test(checkpoint, refuses_numbers_that_are_not_finite)
{
    static const size_t from_end[] = {CARRIED + STATE + 1, CARRIED + 1, 1};
    char dir[64], path[96];
    unsigned char bytes[FILE_BYTES_MAX];
    const float nan_value = NAN;
    struct checkpoint saved = make_checkpoint(), *loaded;
    folder_new(dir);
    cr_assert(checkpoint_save(in_folder(path, dir), &saved) == STATUS_OK);
    size_t count = read_file(path, bytes);
    for (size_t i = 0; i < sizeof from_end / sizeof *from_end; i++) {
        unsigned char *at = bytes + count - SUM_BYTES - from_end[i] * sizeof(float), before[4];
        memcpy(before, at, sizeof before);
        memcpy(at, &nan_value, sizeof nan_value);
        write_with_sum(path, bytes, count);
        assert_refused(checkpoint_load(&loaded, path), STATUS_INPUT, "not a finite number");
        memcpy(at, before, sizeof before);
    }
    write_with_sum(path, bytes, count);
    weights[WEIGHTS - 1] = INFINITY;
    assert_refused(checkpoint_save(path, &saved), STATUS_DIVERGED, "not a finite number");
    saved = make_checkpoint();
    state[0] = NAN;
    assert_refused(checkpoint_save(path, &saved), STATUS_DIVERGED, "not a finite number");
    saved = make_checkpoint();
    cr_assert(checkpoint_load(&loaded, path) == STATUS_OK);
    expect_equal(loaded, &saved);
    checkpoint_free(&loaded);
    folder_free(dir);
}

Test(checkpoint, a_failed_save_leaves_the_old_one)
{
    char dir[64], path[96], temporary[128];
    struct checkpoint saved = make_checkpoint(), *loaded;
    folder_new(dir);
    cr_assert(checkpoint_save(in_folder(path, dir), &saved) == STATUS_OK);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    cr_assert(symlink("/dev/full", temporary) == 0);
    saved.epoch = 99;
    assert_refused(checkpoint_save(path, &saved), STATUS_IO, "No space left on device; free space");
    saved.epoch = 3;
    cr_assert(checkpoint_load(&loaded, path) == STATUS_OK);
    expect_equal(loaded, &saved);
    checkpoint_free(&loaded);
    folder_free(dir);
    assert_refused(checkpoint_save(path, &saved), STATUS_IO, "No such file");
    assert_refused(checkpoint_load(&loaded, path), STATUS_IO, "No such file");
    assert_refused(checkpoint_load(&loaded, "/tmp"), STATUS_INPUT, "found a directory");
}

/* Signals like those of a timer, or of a process that was stopped and continued. */
Test(checkpoint, signals_do_not_end_a_save)
{
    char dir[64], path[96];
    struct checkpoint saved = make_checkpoint(), *loaded;
    folder_new(dir);
    for (int count = 1; count <= 6; count++) {
        interruptions = count;
        cr_assert_eq(checkpoint_save(in_folder(path, dir), &saved), STATUS_OK);
        cr_assert_eq(interruptions, 0);
    }
    cr_assert(checkpoint_load(&loaded, path) == STATUS_OK);
    expect_equal(loaded, &saved);
    checkpoint_free(&loaded);
    folder_free(dir);
}

Test(checkpoint, older_ones_stay_where_the_folder_cannot_be_flushed)
{
    char dir[64];
    struct checkpoint saved = make_checkpoint();
    folder_new(dir);
    save_step(dir, 1, 1);
    folders_fail = true;
    assert_refused(checkpoint_save_step(dir, "cnn", 2, 1, &saved), STATUS_IO, "Input/output error");
    folders_fail = false;
    cr_assert_eq(count_of(dir, "cnn"), 2);
    folder_free(dir);
}

Test(checkpoint, a_new_folder_is_flushed_into_its_parent)
{
    char dir[64], inner[96];
    folder_new(dir);
    snprintf(inner, sizeof inner, "%s/inner", dir);
    cr_assert_eq(checkpoint_prepare(inner), STATUS_OK);
    cr_assert_eq(checkpoint_prepare(inner), STATUS_OK); /* the folder exists: nothing to flush */
    cr_assert_eq(flushed_count, 1);
    cr_assert_str_eq(flushed[0], dir);
    folder_free(dir);
}

Test(checkpoint, prepares_its_folder)
{
    char dir[64], inner[96];
    folder_new(dir);
    snprintf(inner, sizeof inner, "%s/inner", dir);
    cr_assert(checkpoint_prepare(inner) == STATUS_OK);
    cr_assert(checkpoint_prepare(inner) == STATUS_OK);
    cr_assert(rmdir(inner) == 0);
    FILE *file = fopen(inner, "wb");
    cr_assert(file && fclose(file) == 0);
    assert_refused(checkpoint_prepare(inner), STATUS_IO, "Not a directory");
    assert_refused(checkpoint_prepare("/nowhere/inner"), STATUS_IO, "No such file");
    folder_free(dir);
}

Test(checkpoint, says_what_differs_from_this_run)
{
    struct checkpoint saved = make_checkpoint(), run = make_checkpoint();
    struct checkpoint_option options[] = {{"workers", "4", NULL, false, NULL},
                                          {"batch", "64", NULL, false, NULL}};
    run.options = options; /* the order does not matter */
    cr_assert(checkpoint_check(&saved, &run, "x") == STATUS_OK);
    options[1].value = "32";
    assert_refused(checkpoint_check(&saved, &run, "x"), STATUS_USAGE,
                   "x: batch is 64 there and 32 here, expected the same; give --batch 64, or");
    struct capture capture;
    options[1].may_differ = true;
    capture_start(&capture);
    cr_assert(checkpoint_check(&saved, &run, "x") == STATUS_OK);
    cr_assert_eq(capture_stop(&capture), 1);
    cr_assert(strstr(capture.text, "batch is 64 there and 32 here: the run continues, but not"));
    options[1].may_differ = false;
    options[1].advice = "do that";
    assert_refused(checkpoint_check(&saved, &run, "x"), STATUS_USAGE,
                   "and 32 here, expected the same; do that, or start again");
    options[1].expected = "at least 40";
    assert_refused(checkpoint_check(&saved, &run, "x"), STATUS_USAGE,
                   "batch is 64 there and 32 here, expected at least 40; do that, or");
    options[1].expected = NULL;
    run.option_count = 1;
    assert_refused(checkpoint_check(&saved, &run, "x"), STATUS_USAGE, "batch is 64 there");
    options[1].value = "64";
    run.option_count = 2;
    saved.option_count = 1;
    assert_refused(checkpoint_check(&saved, &run, "x"), STATUS_USAGE,
                   "workers is not recorded there and 4 here");
    saved.option_count = 2;
    run.model = "mlp";
    run.weight_count = 1; /* follows from the model, so no second line */
    assert_refused(checkpoint_check(&saved, &run, "x"), STATUS_USAGE, "give --model keras-cnn");
    run.model = saved.model;
    assert_refused(checkpoint_check(&saved, &run, "x"), STATUS_USAGE,
                   "37 parameters there and 1 here");
    run.weight_count = WEIGHTS;
    run.seed = 1;
    assert_refused(checkpoint_check(&saved, &run, "x"), STATUS_USAGE,
                   "give --seed 18364758544493064720");
}
