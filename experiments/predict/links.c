/*
 * psring-links FILE: reads a model.json and prints one line, separated by tabs, for each fitted
 * model of psring's own messages that has a link rate. simulate.sh reads the lines:
 *
 *     NETWORK/TRANSPORT   payload bytes/s of a link each way   seconds a message
 */
#include <stdio.h>

#include "common/net/transport/transport.h"
#include "experiments/bench/info.h"
#include "experiments/predict/model.h"

static int print_links(const struct predict_models *models)
{
    int links = 0;
    for (size_t m = 0; m < models->count; m++) {
        const struct predict_model *model = &models->models[m];
        double s_per_byte = model->fit.constants.of[TERM_LINK];
        /* Skip models of MPI_Allreduce ("mpi-ring"): they do not describe psring's messages. */
        if (s_per_byte <= 0 || transport_kind_find(model->transport) == TRANSPORT_KINDS)
            continue;
        printf("%s/%s\t%.17g\t%.17g\n", model->network, model->transport, 1 / s_per_byte,
               model->fit.constants.of[TERM_LATENCY]);
        links++;
    }
    return links;
}

int main(int argc, char **argv)
{
    struct predict_models models = {0};
    if (argc != 2) {
        fprintf(stderr, "usage: psring-links FILE\n");
        return 2;
    }
    enum status status = predict_models_read(&models, argv[1]);
    if (status == STATUS_OK && print_links(&models) == 0) {
        log_error("%s: no psring transport with a link rate; fit rows of ring, rhd, tree or ps "
                  "that a link has limited",
                  argv[1]);
        status = STATUS_INPUT;
    }
    predict_models_free(&models);
    if (status == STATUS_OK)
        status = result_flush_stdout();
    return status == STATUS_OK ? 0 : 2;
}
