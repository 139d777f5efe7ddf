#include <stdbool.h>
#include <sys/stat.h>
#include <zlib.h>

#include "common/data/dataset.h"
#include "common/data/idx.h"
#include "tests/lib/capture.h"

enum { HEADER_BYTES = 16, ITEMS = 5, ITEM_BYTES = 28 * 28, FILE_BYTES_MAX = 64 * 1024 };

static const struct idx_shape images_shape = {3, {0, 28, 28}, 255};
static const struct idx_shape labels_shape = {1, {0}, 9};

struct bytes {
    unsigned char at[FILE_BYTES_MAX];
    size_t count;
};

static void put_word(struct bytes *bytes, uint32_t word)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        bytes->at[bytes->count++] = (unsigned char)(word >> shift);
}

/* A pixel that depends on the image and the place. */
static uint8_t pixel(size_t image, size_t place)
{
    return (uint8_t)(image * 31 + place * 7 + place / 28);
}

static void make_images(struct bytes *bytes, uint32_t items)
{
    bytes->count = 0;
    put_word(bytes, 0x803);
    put_word(bytes, items);
    put_word(bytes, 28);
    put_word(bytes, 28);
    for (size_t i = 0; i < items; i++) {
        for (size_t p = 0; p < ITEM_BYTES; p++)
            bytes->at[bytes->count++] = pixel(i, p);
    }
}

static void make_labels(struct bytes *bytes, uint32_t items)
{
    bytes->count = 0;
    put_word(bytes, 0x801);
    put_word(bytes, items);
    for (size_t i = 0; i < items; i++)
        bytes->at[bytes->count++] = (unsigned char)((i * 3 + 1) % 10);
}

static void write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file != NULL);
    cr_assert(fwrite(bytes, 1, count, file) == count);
    cr_assert(fclose(file) == 0);
}

/* Compresses in place. */
static void compress_bytes(struct bytes *bytes)
{
    static struct bytes packed;
    z_stream stream = {0};
    cr_assert(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    stream.next_in = bytes->at;
    stream.avail_in = (unsigned)bytes->count;
    stream.next_out = packed.at;
    stream.avail_out = FILE_BYTES_MAX;
    cr_assert(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    packed.count = stream.total_out;
    deflateEnd(&stream);
    *bytes = packed;
}

static const char *join(char *path, const char *dir, const char *name)
{
    snprintf(path, 160, "%s/%s", dir, name);
    return path;
}

/* Checks that the reader refuses these bytes as a file of images, with these words. */
static void expect_refused(const struct bytes *bytes, const char *words)
{
    char dir[64], path[160], named[200];
    struct idx *idx;
    folder_new(dir);
    write_file(join(path, dir, "images"), bytes->at, bytes->count);
    assert_refused(idx_read(&idx, path, &images_shape), STATUS_INPUT, words);
    cr_assert(idx == NULL);
    snprintf(named, sizeof named, "%s: ", path);
    assert_refused(idx_read(&idx, path, &images_shape), STATUS_INPUT, named);
    folder_free(dir);
}

static void expect_images(const char *path)
{
    struct idx *idx;
    cr_assert(idx_read(&idx, path, &images_shape) == STATUS_OK);
    cr_assert(idx->items == ITEMS && idx->item_bytes == ITEM_BYTES);
    for (size_t i = 0; i < ITEMS; i++) {
        for (size_t p = 0; p < ITEM_BYTES; p++)
            cr_assert(idx->values[i * ITEM_BYTES + p] == pixel(i, p));
    }
    idx_free(&idx);
    cr_assert(idx == NULL);
}

Test(idx, reads_plain_and_gzip_alike)
{
    char dir[64], path[160], sum[SHA256_HEX_SIZE];
    struct bytes bytes;
    struct idx *idx;
    folder_new(dir);
    make_images(&bytes, ITEMS);
    cr_assert(sha256_hex(bytes.at, bytes.count, sum) == STATUS_OK);
    write_file(join(path, dir, "plain"), bytes.at, bytes.count);
    expect_images(path);
    compress_bytes(&bytes);
    write_file(join(path, dir, "packed"), bytes.at, bytes.count);
    expect_images(path);
    cr_assert(idx_read(&idx, path, &images_shape) == STATUS_OK);
    cr_assert_str_eq(idx->sha256, sum);
    idx_free(&idx);
    folder_free(dir);
}

Test(idx, refuses_every_truncation)
{
    struct bytes whole, part;
    char dir[64], path[160];
    struct idx *idx;
    folder_new(dir);
    join(path, dir, "images");
    for (int packed = 0; packed < 2; packed++) {
        make_images(&whole, 1);
        if (packed)
            compress_bytes(&whole);
        for (size_t count = 0; count < whole.count; count++) {
            part = whole;
            part.count = count;
            write_file(path, part.at, part.count);
            assert_refused(idx_read(&idx, path, &images_shape), STATUS_INPUT, "get_mnist.sh");
        }
    }
    folder_free(dir);
}

/* gzip's checksum finds a flipped bit, unless the bit does not matter (a time stamp). */
Test(idx, a_flipped_bit_in_gzip_never_changes_what_is_read)
{
    struct bytes whole, damaged;
    char dir[64], path[160];
    struct idx *idx;
    size_t refused = 0;
    folder_new(dir);
    join(path, dir, "images");
    make_images(&whole, ITEMS);
    compress_bytes(&whole);
    log_set_level(LOG_SILENT);
    for (size_t bit = 0; bit < 8 * whole.count; bit++) {
        damaged = whole;
        damaged.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
        write_file(path, damaged.at, damaged.count);
        enum status status = idx_read(&idx, path, &images_shape);
        refused += status != STATUS_OK;
        for (size_t k = 0; status == STATUS_OK && k < (size_t)ITEMS * ITEM_BYTES; k++)
            cr_assert(idx->values[k] == pixel(k / ITEM_BYTES, k % ITEM_BYTES));
        idx_free(&idx);
    }
    cr_assert(refused > 8 * whole.count / 2);
    folder_free(dir);
}

Test(idx, refuses_wrong_headers)
{
    struct bytes bytes;
    make_images(&bytes, ITEMS);
    compress_bytes(&bytes);
    bytes.at[bytes.count - 8] ^= 1; /* the checksum; zlib names a descriptor, psring does not */
    expect_refused(&bytes, "found damaged gzip data (incorrect data check)");

    make_images(&bytes, ITEMS);
    bytes.count = 0;
    expect_refused(&bytes, "the file is empty");

    make_labels(&bytes, ITEMS);
    expect_refused(&bytes, "magic number is 0x00000801, expected 0x00000803");

    make_images(&bytes, ITEMS);
    bytes.at[2] = 0x0d; /* float values */
    expect_refused(&bytes, "magic number is 0x00000d03, expected 0x00000803");

    make_images(&bytes, ITEMS);
    bytes.at[11] = 27;
    expect_refused(&bytes, "dimensions are (5, 27, 28), expected (items, 28, 28)");

    make_images(&bytes, ITEMS);
    memset(bytes.at + 8, 0xff, 8);
    expect_refused(&bytes, "dimensions are (5, 4294967295, 4294967295)");
}

Test(idx, bounds_sizes_before_allocating)
{
    struct bytes bytes;
    make_images(&bytes, ITEMS);
    memset(bytes.at + 4, 0, 4);
    expect_refused(&bytes, "counts 0 items, expected 1 to 1000000");

    make_images(&bytes, ITEMS);
    memset(bytes.at + 4, 0xff, 4);
    expect_refused(&bytes, "counts 4294967295 items");

    make_images(&bytes, 0);
    memcpy(bytes.at + 4, (unsigned char[]){0x00, 0x0f, 0x42, 0x40}, 4); /* 1,000,000 */
    expect_refused(&bytes, "the header promises 784000000 bytes, the file can hold at most");
}

Test(idx, refuses_wrong_lengths)
{
    struct bytes bytes;
    for (int packed = 0; packed < 2; packed++) {
        make_images(&bytes, ITEMS);
        bytes.count--;
        if (packed)
            compress_bytes(&bytes);
        expect_refused(&bytes, "3919 bytes after the header, expected 3920; the file is truncated");

        make_images(&bytes, ITEMS);
        bytes.at[bytes.count++] = 1;
        if (packed)
            compress_bytes(&bytes);
        expect_refused(&bytes, "more than 3920 bytes after the header");
    }
}

Test(idx, refuses_what_is_no_file)
{
    char dir[64], path[160];
    struct idx *idx;
    folder_new(dir);
    assert_refused(idx_read(&idx, dir, &images_shape), STATUS_INPUT, "found a directory");
    join(path, dir, "fifo");
    cr_assert(mkfifo(path, 0600) == 0);
    assert_refused(idx_read(&idx, path, &images_shape), STATUS_INPUT, "not a file");
    join(path, dir, "absent");
    assert_refused(idx_read(&idx, path, &images_shape), STATUS_IO, "No such file");
    join(path, dir, "secret");
    write_file(path, "x", 1);
    cr_assert(chmod(path, 0) == 0 && chmod(dir, 0755) == 0);
    uid_t user = geteuid();
    if (user == 0) /* root can read every file */
        cr_assert(seteuid(65534) == 0);
    assert_refused(idx_read(&idx, path, &images_shape), STATUS_IO, "Permission denied");
    cr_assert(seteuid(user) == 0);
    folder_free(dir);
}

Test(idx, refuses_values_out_of_range)
{
    char dir[64], path[160];
    struct bytes bytes;
    struct idx *idx;
    folder_new(dir);
    make_labels(&bytes, ITEMS);
    bytes.at[8 + 3] = 10;
    write_file(join(path, dir, "labels"), bytes.at, bytes.count);
    assert_refused(idx_read(&idx, path, &labels_shape), STATUS_INPUT,
                   "value 10 at position 3, expected 0 to 9: psring has 10 classes");
    folder_free(dir);
}

/* The four files: train of ITEMS (gzip), test of 2 (plain). */
static void write_dataset(const char *dir)
{
    char path[160];
    struct bytes bytes;
    make_images(&bytes, ITEMS);
    compress_bytes(&bytes);
    write_file(join(path, dir, "train-images-idx3-ubyte.gz"), bytes.at, bytes.count);
    make_labels(&bytes, ITEMS);
    compress_bytes(&bytes);
    write_file(join(path, dir, "train-labels-idx1-ubyte.gz"), bytes.at, bytes.count);
    make_images(&bytes, 2);
    write_file(join(path, dir, "t10k-images-idx3-ubyte"), bytes.at, bytes.count);
    make_labels(&bytes, 2);
    write_file(join(path, dir, "t10k-labels-idx1-ubyte"), bytes.at, bytes.count);
}

Test(dataset, opens_plain_and_gzip_files)
{
    char dir[64];
    struct dataset *dataset;
    folder_new(dir);
    write_dataset(dir);
    cr_assert(dataset_open(&dataset, dir) == STATUS_OK);
    cr_assert(dataset->train.count == ITEMS && dataset->test.count == 2);
    cr_assert_str_eq(dataset->name, "other");
    for (size_t i = 0; i < ITEMS; i++) {
        cr_assert(dataset->train.labels[i] == (i * 3 + 1) % 10);
        cr_assert(dataset->train.images[i * ITEM_BYTES + 5] == pixel(i, 5));
    }
    dataset_free(&dataset);
    cr_assert(dataset == NULL);
    folder_free(dir);
}

/* File names as in some copies of the data, and torchvision's folder. */
Test(dataset, opens_files_with_a_dot_and_below_the_folder)
{
    static const char *const dotted[][2] = {
        {"train-images-idx3-ubyte.gz", "train-images.idx3-ubyte.gz"},
        {"train-labels-idx1-ubyte.gz", "train-labels.idx1-ubyte.gz"},
        {"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"},
        {"t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"},
    };
    char dir[64], inside[160], from[192], to[192];
    struct dataset *dataset;
    folder_new(dir);
    cr_assert(mkdir(join(inside, dir, "MNIST"), 0700) == 0);
    strcat(inside, "/raw");
    cr_assert(mkdir(inside, 0700) == 0);
    write_dataset(inside);
    cr_assert(dataset_open(&dataset, dir) == STATUS_OK);
    dataset_free(&dataset);
    for (size_t i = 0; i < sizeof dotted / sizeof *dotted; i++) {
        snprintf(from, sizeof from, "%s/%s", inside, dotted[i][0]);
        snprintf(to, sizeof to, "%s/%s", inside, dotted[i][1]);
        cr_assert(rename(from, to) == 0);
    }
    cr_assert(dataset_open(&dataset, dir) == STATUS_OK);
    cr_assert(dataset->train.count == ITEMS && dataset->test.count == 2);
    dataset_free(&dataset);
    for (size_t i = 0; i < sizeof dotted / sizeof *dotted; i++) {
        snprintf(to, sizeof to, "%s/%s", inside, dotted[i][1]);
        cr_assert(remove(to) == 0);
    }
    cr_assert(rmdir(inside) == 0 && rmdir(join(inside, dir, "MNIST")) == 0);
    folder_free(dir);
}

Test(dataset, names_all_that_is_missing)
{
    char dir[64], path[160];
    struct dataset *dataset;
    folder_new(dir);
    write_dataset(dir);
    cr_assert(remove(join(path, dir, "train-labels-idx1-ubyte.gz")) == 0);
    cr_assert(remove(join(path, dir, "t10k-images-idx3-ubyte")) == 0);
    assert_refused(dataset_open(&dataset, dir), STATUS_IO,
                   "missing: train-labels-idx1-ubyte, t10k-images-idx3-ubyte (also looked for with "
                   ".gz, and in MNIST/raw); the folder has t10k-labels-idx1-ubyte, "
                   "train-images-idx3-ubyte.gz; run experiments/get_mnist.sh");
    cr_assert(dataset == NULL);
    folder_free(dir);
    assert_refused(dataset_open(&dataset, dir), STATUS_IO, "No such file or directory");
    assert_refused(dataset_open(&dataset, "/dev/null"), STATUS_IO, "Not a directory");
}

Test(dataset, refuses_counts_that_differ_and_bad_labels)
{
    char dir[64], path[160];
    struct bytes bytes;
    struct dataset *dataset;
    folder_new(dir);
    write_dataset(dir);
    make_labels(&bytes, 3);
    write_file(join(path, dir, "t10k-labels-idx1-ubyte"), bytes.at, bytes.count);
    assert_refused(dataset_open(&dataset, dir), STATUS_INPUT,
                   "t10k-labels-idx1-ubyte: 3 labels, expected 2, one for each image of");
    make_labels(&bytes, 2);
    bytes.at[9] = 200;
    write_file(path, bytes.at, bytes.count);
    assert_refused(dataset_open(&dataset, dir), STATUS_INPUT, "value 200 at position 1");
    cr_assert(remove(path) == 0 && mkdir(path, 0700) == 0);
    assert_refused(dataset_open(&dataset, dir), STATUS_INPUT, "found a directory");
    folder_free(dir);
}

Test(dataset, knows_mnist_by_its_sums)
{
    const char *dir = getenv("PSRING_DATA");
    struct dataset *dataset;
    if (!dir)
        cr_skip_test("PSRING_DATA does not name a folder with MNIST");
    cr_assert(dataset_open(&dataset, dir) == STATUS_OK);
    if (strcmp(dataset->name, "other") != 0) {
        cr_assert(dataset->train.count == 60000 && dataset->test.count == 10000);
        size_t counts[DATASET_CLASSES] = {0};
        for (size_t i = 0; i < dataset->test.count; i++)
            counts[dataset->test.labels[i]]++;
        /* Fashion-MNIST has 1,000 of each class; MNIST has 980 zeros and 1,135 ones. */
        bool is_mnist = strcmp(dataset->name, "mnist") == 0;
        cr_assert(counts[0] == (is_mnist ? 980 : 1000) && counts[1] == (is_mnist ? 1135 : 1000));
    }
    dataset_free(&dataset);
}
