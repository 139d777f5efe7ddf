#include "common/data/dataset.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/text.h"
#include "common/data/idx.h"

enum { TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS };

static const char *const file_names[DATASET_FILES] = {
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
};

static const struct idx_shape images_shape = {3, {0, DATASET_ROWS, DATASET_COLUMNS}, UINT8_MAX};
static const struct idx_shape labels_shape = {1, {0}, DATASET_CLASSES - 1};

/* SHA-256 of the decompressed files, in the order of file_names. */
static const struct known {
    const char *name;
    const char *sha256[DATASET_FILES];
} known_sets[] = {
    {"mnist",
     {"ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
      "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
      "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
      "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}},
    {"fashion-mnist",
     {"c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
      "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
      "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
      "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"}},
};

static const char *name_of(struct idx *const files[DATASET_FILES])
{
    for (size_t k = 0; k < sizeof known_sets / sizeof known_sets[0]; k++) {
        bool same = true;
        for (int f = 0; f < DATASET_FILES; f++)
            same = same && strcmp(files[f]->sha256, known_sets[k].sha256[f]) == 0;
        if (same)
            return known_sets[k].name;
    }
    return "other";
}

static enum status no_memory(void)
{
    return FAIL(STATUS_NO_MEMORY, "data set: no memory for the names of its files");
}

/* Sets *path to dir/inside/name or dir/inside/name.gz if one exists, else to NULL. Some copies have
 * a dot: train-images.idx3-ubyte. Caller frees. */
static enum status find_file(const char *dir, const char *inside, const char *name, char **path)
{
    static const char *const endings[] = {"", ".gz"};
    const size_t before = (size_t)(strstr(name, "-idx") - name);
    for (size_t i = 0; i < 2 * sizeof endings / sizeof endings[0]; i++) {
        if (asprintf(path, "%s/%s%.*s%s%s%s", dir, inside, (int)before, name, i / 2 ? "." : "-",
                     name + before + 1, endings[i % 2]) < 0) {
            *path = NULL;
            return no_memory();
        }
        /* idx_read reports all errors but "not there" */
        struct stat info;
        if (lstat(*path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR))
            return STATUS_OK;
        free(*path);
        *path = NULL;
    }
    return STATUS_OK;
}

/* Writes the names of the first files of `dir` to `text`: "a, b, ..." or "nothing". */
static void list_folder(const char *dir, char *text, size_t size)
{
    enum { NAMES_MAX = 6 };
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, NULL, alphasort), named = 0;
    struct line line = line_in(text, size);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (name[0] != '.' && named <= NAMES_MAX) {
            line_add(&line, "%s%.60s", named ? ", " : "", named < NAMES_MAX ? name : "...");
            named++;
        }
        free(entries[i]);
    }
    free(entries);
    if (named == 0)
        line_add(&line, "nothing");
}

/* Folders below --data that may hold the files, such as torchvision's. */
static const char *const inside_folders[] = {"",       "raw/",  "MNIST/raw/", "FashionMNIST/raw/",
                                             "MNIST/", "mnist/"};

/* Finds all four files in the first folder that has one of them. It reads none before all are
 * found, so that one message names all missing files. */
static enum status find_files(const char *dir, char *paths[DATASET_FILES])
{
    enum status status = STATUS_OK;
    struct stat info;
    char missing[256], found[512];
    struct line line = line_in(missing, sizeof missing);
    int error = stat(dir, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? 0 : ENOTDIR, count = 0;
    if (error)
        return FAIL(STATUS_IO,
                    "%s: %s, expected a folder with the four files of MNIST; run "
                    "experiments/get_mnist.sh, which prints one, and give it with --data",
                    dir, strerror(error));
    for (size_t i = 0; i < sizeof inside_folders / sizeof *inside_folders && count == 0; i++) {
        for (int f = 0; f < DATASET_FILES; f++) {
            TRY(find_file(dir, inside_folders[i], file_names[f], &paths[f]));
            count += paths[f] != NULL;
        }
    }
    for (int f = 0; f < DATASET_FILES; f++) {
        if (!paths[f])
            line_add(&line, "%s%s", line.used ? ", " : "", file_names[f]);
    }
    if (line.used > 0) {
        list_folder(dir, found, sizeof found);
        log_error(
            "%s: missing: %s (also looked for with .gz, and in MNIST/raw); the folder has %s; "
            "run experiments/get_mnist.sh, which prints a folder that has them, and give it "
            "with --data",
            dir, missing, found);
        status = STATUS_IO;
    }
out:
    return status;
}

static enum status pair(struct dataset_split *split, const struct idx *images,
                        const struct idx *labels, const char *images_path, const char *labels_path)
{
    if (images->items != labels->items)
        return FAIL(
            STATUS_INPUT,
            "%s: %zu labels, expected %zu, one for each image of %s; the files do not belong "
            "together, fetch them again: run experiments/get_mnist.sh",
            labels_path, labels->items, images->items, images_path);
    *split = (struct dataset_split){images->values, labels->values, images->items};
    return STATUS_OK;
}

enum status dataset_open(struct dataset **out_dataset, const char *dir)
{
    enum status status = STATUS_OK;
    char *paths[DATASET_FILES] = {NULL};
    struct dataset *dataset = calloc(1, sizeof *dataset);
    *out_dataset = NULL;
    if (!dataset)
        return no_memory();
    TRY(find_files(dir, paths));
    for (int f = 0; f < DATASET_FILES; f++) {
        bool is_images = f == TRAIN_IMAGES || f == TEST_IMAGES;
        TRY(idx_read(&dataset->files[f], paths[f], is_images ? &images_shape : &labels_shape));
    }
    TRY(pair(&dataset->train, dataset->files[TRAIN_IMAGES], dataset->files[TRAIN_LABELS],
             paths[TRAIN_IMAGES], paths[TRAIN_LABELS]));
    TRY(pair(&dataset->test, dataset->files[TEST_IMAGES], dataset->files[TEST_LABELS],
             paths[TEST_IMAGES], paths[TEST_LABELS]));
    dataset->name = name_of(dataset->files);
    *out_dataset = dataset;
    dataset = NULL;
out:
    for (int f = 0; f < DATASET_FILES; f++)
        free(paths[f]);
    dataset_free(&dataset);
    return status;
}

enum status dataset_sum(const struct dataset *dataset, char sha256[SHA256_HEX_SIZE])
{
    char all[DATASET_FILES][SHA256_HEX_SIZE];
    sha256[0] = '\0';
    if (!dataset)
        return STATUS_OK;
    for (int f = 0; f < DATASET_FILES; f++)
        memcpy(all[f], dataset->files[f]->sha256, sizeof all[f]);
    return sha256_hex(all, sizeof all, sha256);
}

void dataset_free(struct dataset **dataset)
{
    if (!*dataset)
        return;
    for (int f = 0; f < DATASET_FILES; f++)
        idx_free(&(*dataset)->files[f]);
    free(*dataset);
    *dataset = NULL;
}
