// Like minimal.c, but in C++. Each half of the gradient is reduced while the other half is
// computed.
#include <cstdio>
#include <stdexcept>
#include <vector>

#include <psring.h>

static void must(psring_status status)
{
    if (status != PSRING_OK)
        throw std::runtime_error(psring_error());
}

static void train(psring *world)
{
    const std::size_t count = 1000, half = count / 2;
    const int rank = psring_rank(world), size = psring_size(world);
    std::vector<double> w(count, rank), gradient(count);
    must(psring_broadcast(world, w.data(), count, PSRING_FLOAT64, 0));
    for (int step = 0; step < 100; step++) {
        psring_handle *handles[2] = {};
        for (std::size_t i = 0; i < count; i++) {
            gradient[i] = w[i] - static_cast<double>(i) - rank;
            if (i + 1 == half || i + 1 == count)
                must(psring_allreduce_start(world, &gradient[i + 1 - half], half, PSRING_FLOAT64,
                                            PSRING_AVERAGE, &handles[i / half]));
        }
        for (psring_handle *&handle : handles)
            must(psring_wait(&handle));
        for (std::size_t i = 0; i < count; i++)
            w[i] -= 0.3 * gradient[i];
    }
    if (rank == 0)
        std::printf("%d ranks: w[7] = %.3f, expected %.3f\n", size, w[7], 7 + (size - 1) / 2.0);
}

int main()
try {
    psring *world = nullptr;
    must(psring_init(&world, nullptr));
    train(world);
    must(psring_finalize(&world));
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "minimal: %s\n", error.what());
    return 1;
}
