/* The summary of consistency.csv: which mode was first, and how many runs ended. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "experiments/report/run.h"
#include "tests/lib/capture.h"

static char dir[64];

static void make_folder(void)
{
    folder_new(dir);
}

static void remove_folder(void)
{
    folder_free(dir);
}

TestSuite(consistency, .init = make_folder, .fini = remove_folder);

/* Rows "MODE,STRAGGLER,SEED,ON_TARGET,SECONDS,ACCURACY"; NULL ends them. */
static void read_rows(struct consistency_run *consistency, const char *const *rows)
{
    char path[128];
    snprintf(path, sizeof path, "%s/consistency.csv", dir);
    FILE *file = fopen(path, "w");
    cr_assert(file);
    fprintf(file,
            "mode,straggler,seed,target_reached,seconds,test_accuracy,workers,model,batch,compute,"
            "network,target_accuracy,step,images,staleness_mean,staleness_max,"
            "steps_skipped,steps_dropped,images_per_s,compute_ms\n");
    for (; *rows; rows++)
        fprintf(file, "%s,4,lenet,32,real:40,loopback,0.985,100,12800,,,,,320,41\n", *rows);
    cr_assert(fclose(file) == 0);
    cr_assert(consistency_read(consistency, path) == STATUS_OK);
}

static const char *said(const char *const *rows, const char *provenance)
{
    static char text[8192];
    struct consistency_run consistency;
    cJSON *facts = provenance ? cJSON_Parse(provenance) : NULL;
    read_rows(&consistency, rows);
    FILE *out = fmemopen(text, sizeof text, "w");
    consistency_print(&consistency, facts, out);
    fclose(out);
    cJSON_Delete(facts);
    consistency_free(&consistency);
    return text;
}

#define says(text, words) cr_expect(strstr(text, words), "no '%s' in:\n%s", words, text)

static const char *const alike[] = {"bsp,none,1,1,40,0.985",
                                    "bsp,none,2,1,44,0.985",
                                    "bsp,none,3,1,42,0.986",
                                    "async,none,1,1,20,0.985",
                                    "async,none,2,1,24,0.985",
                                    "async,none,3,0,90,0.984",
                                    "ring,none,1,1,21,0.985",
                                    "ring,none,2,1,22,0.985",
                                    "ring,none,3,1,23,0.985",
                                    "ssp:1,none,1,0,90,0.97",
                                    "ssp:1,none,2,0,90,0.981",
                                    "ssp:1,none,3,1,30,0.985",
                                    NULL};

Test(consistency, medians_ranges_and_who_was_first)
{
    const char *text = said(alike, NULL);
    says(text, "bsp           320   1.00  42.0 (40.0-44.0)       3/3 ");
    says(text, "24.0 (20.0-never)      2/3 ");
    says(text, "never (30.0-never)     1/3 ");
    says(text,
         "All workers equally fast: ring was first to 98.5%, after 22.0 s; async took 24.0 s, 1.09 "
         "times as long, bsp took 42.0 s, 1.91 times as long.");
    says(text, "The order of ring and async is within the difference between seeds. async did not "
               "reach it "
               "in 1 of 3 runs (98.40% at best).");
    says(text, "ssp:1 did not reach it in 2 of 3 runs");
    says(text, "Medians of 3 runs each, ranges in brackets.");
}

/* Three seeds were requested; one run of bsp ended. */
Test(consistency, runs_that_ended_are_counted)
{
    static const char *const rows[] = {"bsp,none,1,1,5,0.985", "ring,none,1,1,4,0.985",
                                       "ring,none,2,1,4,0.985", "ring,none,3,1,4,0.985", NULL};
    const char *text = said(rows, "{\"failed\": [\"bsp, straggler none, seed 2\"], \"quick\": 0}");
    says(text, "Medians of 1 to 3 runs that ended, ranges in brackets.");
    says(text, "ring was first to 98.5%, after 4.00 s; bsp took 5.00 s, 1.25 times as long. The "
               "order of ring and bsp is based on one run.");
    says(text, "FAILED, not in the tables: bsp, straggler none, seed 2");
    cr_expect(!strstr(text, "--quick"));
}

/* If the modes are equal, the ranges of three runs each are separate in 1 of 10 cases, of four in 1
 * of 35. */
Test(consistency, few_runs_that_lie_apart_are_no_proof)
{
    static const char *const rows[] = {
        "bsp,none,1,1,42,0.985",  "bsp,none,2,1,43,0.985",  "bsp,none,3,1,44,0.985",
        "ring,none,1,1,21,0.985", "ring,none,2,1,22,0.985", "ring,none,3,1,23,0.985",
        "bsp,none,4,1,45,0.985",  "ring,none,4,1,24,0.985", NULL};
    const char *three[7] = {NULL};
    memcpy(three, rows, 6 * sizeof *three);
    says(said(three, NULL), "The order of ring and bsp is based on 3 and 3 runs, whose ranges are "
                            "separate by chance in 1 of 10 cases.");
    cr_expect(!strstr(said(rows, NULL), "The order of ring"));
}

Test(consistency, nobody_reached_the_target)
{
    static const char *const rows[] = {"bsp,3:4,1,0,90,0.97", "ring,3:4,1,0,90,0.96", NULL};
    const char *text = said(rows, "{\"quick\": 1}");
    says(text, "One slow: worker 3 computes 4 times as long:");
    says(text, "One slow worker: none reached 98.5% with more than half of its runs.");
    says(text, "One run of each.");
    says(text, "--quick: few steps");
}

Test(consistency, page_and_figure_have_the_medians)
{
    struct consistency_run consistency;
    read_rows(&consistency, alike);
    cJSON *modes = consistency_json(&consistency);
    cJSON *ssp = cJSON_GetArrayItem(modes, 3);
    cr_expect(cJSON_GetArraySize(modes) == 4);
    cr_expect(cJSON_IsNull(cJSON_GetObjectItem(ssp, "seconds")));
    cr_expect(cJSON_GetObjectItem(ssp, "reached")->valueint == 1);
    cr_expect(cJSON_GetArraySize(cJSON_GetObjectItem(ssp, "dots")) == 1);
    cJSON_Delete(modes);
    cr_assert(consistency_write_figure(&consistency, dir) == STATUS_OK);
    char path[128], line[128];
    snprintf(path, sizeof path, "%s/modes.txt", dir);
    FILE *file = fopen(path, "r");
    cr_assert(file && fgets(line, sizeof line, file) && fgets(line, sizeof line, file));
    cr_expect_str_eq(line, "async 320 24 20 -1 NaN NaN NaN NaN\n");
    fclose(file);
    consistency_free(&consistency);
}
