/* SGD of a user program, made distributed with libpsring. Numbers mark the five changes. It
 * minimises the mean over all ranks of |w - t|^2 / 2. Each rank has another t, as it would have
 * other data. Build: cc minimal.c $(pkg-config --cflags --libs psring) */
#include <psring.h> /* 1 */
#include <stdio.h>
#include <stdlib.h>

enum { PARAMETERS = 1000, STEPS = 100 };

static void must(enum psring_status status)
{
    if (status == PSRING_OK)
        return;
    fprintf(stderr, "minimal: %s\n", psring_error());
    exit(1);
}

int main(void)
{
    static float w[PARAMETERS], gradient[PARAMETERS];
    struct psring *world;
    must(psring_init(&world, NULL)); /* 2: started by mpirun, by torchrun, or alone */
    int rank = psring_rank(world), size = psring_size(world);
    for (int i = 0; i < PARAMETERS; i++)
        w[i] = (float)(rank * i);
    must(psring_broadcast(world, w, PARAMETERS, PSRING_FLOAT32,
                          0)); /* 3: all ranks begin with the same weights */
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < PARAMETERS; i++)
            gradient[i] = w[i] - (float)(i + rank);
        must(psring_allreduce(world, gradient, PARAMETERS, PSRING_FLOAT32, PSRING_AVERAGE)); /* 4 */
        for (int i = 0; i < PARAMETERS; i++)
            w[i] -= 0.3f * gradient[i];
    }
    if (rank == 0)
        printf("%d ranks: w[7] = %.3f, expected %.3f\n", size, (double)w[7], 7 + (size - 1) / 2.0);
    must(psring_finalize(&world)); /* 5 */
    return 0;
}
