/* compare_weights A B: prints the distance of the weights of two checkpoints, as
 * "relative 1.2e-07": the Euclidean norm of the difference, divided by that of A. Ends with 1 if
 * they cannot be compared. */
#include <math.h>
#include <stdio.h>

#include "common/checkpoint/checkpoint.h"

int main(int argc, char **argv)
{
    struct checkpoint *a = NULL, *b = NULL;
    double difference = 0, norm = 0;
    if (argc != 3 || checkpoint_load(&a, argv[1]) != STATUS_OK ||
        checkpoint_load(&b, argv[2]) != STATUS_OK || a->weight_count != b->weight_count) {
        fprintf(stderr, "compare_weights: needs two checkpoints of the same model\n");
        checkpoint_free(&a);
        checkpoint_free(&b);
        return 1;
    }
    for (size_t i = 0; i < a->weight_count; i++) {
        double x = (double)a->weights[i], y = (double)b->weights[i];
        difference += (x - y) * (x - y);
        norm += x * x;
    }
    checkpoint_free(&a);
    checkpoint_free(&b);
    if (!isfinite(difference) || !isfinite(norm)) {
        fprintf(stderr, "compare_weights: weights are not finite\n");
        return 1;
    }
    printf("relative %.3g\n", norm > 0 ? sqrt(difference / norm) : difference);
    return 0;
}
