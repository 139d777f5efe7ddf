#include "common/library/forks.h"

#include <pthread.h>
#include <stddef.h>

#include "common/library/engine.h"

static struct {
    pthread_mutex_t lock; /* held from before to after a fork */
    pthread_once_t once;
    const struct engine *engine;
} forks = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

void forks_hold(void)
{
    pthread_mutex_lock(&forks.lock);
}

void forks_release(void)
{
    pthread_mutex_unlock(&forks.lock);
}

static void in_child(void)
{
    if (forks.engine)
        engine_close_in_child(forks.engine);
    forks.engine = NULL;
    forks_release();
}

/* Without memory for it, a child keeps the connections: an error comes late then, and none is lost.
 */
static void prepare(void)
{
    (void)pthread_atfork(forks_hold, forks_release, in_child);
}

void forks_watch(const struct engine *engine)
{
    pthread_once(&forks.once, prepare);
    forks_hold();
    forks.engine = engine;
    forks_release();
}
