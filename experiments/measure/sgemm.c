#include "experiments/measure/sgemm.h"

#include <cblas.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/device/cpu/team.h"

struct sgemm {
    struct team *team;
    float *a, *b, *c; /* (SGEMM_EDGE, SGEMM_EDGE) */
    int parts;        /* of the product in progress */
};

enum status sgemm_new(struct sgemm **out_sgemm, int threads)
{
    enum status status = STATUS_OK;
    const size_t count = (size_t)SGEMM_EDGE * SGEMM_EDGE;
    struct sgemm *sgemm = calloc(1, sizeof *sgemm);
    if (sgemm) {
        sgemm->a = memory_array(count * sizeof *sgemm->a);
        sgemm->b = memory_array(count * sizeof *sgemm->b);
        sgemm->c = memory_array(count * sizeof *sgemm->c);
    }
    if (!sgemm || !sgemm->a || !sgemm->b || !sgemm->c) {
        log_error("sgemm: no memory for three matrices of %zu bytes", count * sizeof(float));
        status = STATUS_NO_MEMORY;
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        sgemm->a[i] = (float)(i % 7) - 3;
        sgemm->b[i] = (float)(i % 5) - 2;
    }
    TRY(team_new(&sgemm->team, threads));
out:
    if (status != STATUS_OK)
        sgemm_free(&sgemm);
    *out_sgemm = sgemm;
    return status;
}

void sgemm_free(struct sgemm **sgemm)
{
    struct sgemm *s = *sgemm;
    *sgemm = NULL;
    if (!s)
        return;
    team_free(&s->team);
    free(s->a);
    free(s->b);
    free(s->c);
    free(s);
}

/* Rows [from, to) of the product. */
static void multiply_part(void *context, size_t part, int thread)
{
    struct sgemm *s = context;
    int from = (int)part * SGEMM_EDGE / s->parts, to = ((int)part + 1) * SGEMM_EDGE / s->parts;
    (void)thread;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, to - from, SGEMM_EDGE, SGEMM_EDGE, 1.0f,
                s->a + (size_t)from * SGEMM_EDGE, SGEMM_EDGE, s->b, SGEMM_EDGE, 0.0f,
                s->c + (size_t)from * SGEMM_EDGE, SGEMM_EDGE);
}

double sgemm_rate(struct sgemm *sgemm, int threads)
{
    const double flops = 2.0 * SGEMM_EDGE * SGEMM_EDGE * SGEMM_EDGE;
    CHECK(threads == 1 || threads == team_threads(sgemm->team));
    sgemm->parts = threads;
    int64_t start_ns = clock_now_ns();
    team_run(sgemm->team, (size_t)threads, multiply_part, sgemm);
    return flops / ((double)(clock_now_ns() - start_ns) * 1e-9);
}
