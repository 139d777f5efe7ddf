#include "common/device/cpu/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/base/status.h"
#include "common/base/thread.h"

struct team_member {
    struct team *team;
    int index;
    struct thread thread;
};

struct team {
    int threads;
    struct team_member *members; /* (threads - 1) */

    /* The current run. team_run writes it under `lock` before it increments `generation`. */
    team_work *work;
    void *context;
    size_t count;
    atomic_size_t next; /* first item that no thread has taken */

    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    unsigned long generation; /* counts runs */
    int busy;                 /* members that have not finished this generation */
    bool stop;
};

static void take_items(struct team *team, int thread)
{
    for (;;) {
        size_t item = atomic_fetch_add_explicit(&team->next, 1, memory_order_relaxed);
        if (item >= team->count)
            return;
        team->work(team->context, item, thread);
    }
}

static void *member_main(void *argument)
{
    struct team_member *member = argument;
    struct team *team = member->team;
    unsigned long seen = 0;
    pthread_mutex_lock(&team->lock);
    for (;;) {
        while (team->generation == seen && !team->stop)
            pthread_cond_wait(&team->begin, &team->lock);
        if (team->stop)
            break;
        seen = team->generation;
        pthread_mutex_unlock(&team->lock);
        take_items(team, member->index);
        pthread_mutex_lock(&team->lock);
        if (--team->busy == 0)
            pthread_cond_signal(&team->end);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

enum status team_new(struct team **out_team, int threads)
{
    enum status status = STATUS_OK;
    CHECK(threads >= 1);
    struct team *team = calloc(1, sizeof *team);
    struct team_member *members = calloc((size_t)threads, sizeof *members);
    if (!team || !members) {
        log_error("a team of %d threads: out of memory", threads);
        free(team);
        free(members);
        return STATUS_NO_MEMORY;
    }
    team->threads = threads;
    team->members = members;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->begin, NULL);
    pthread_cond_init(&team->end, NULL);
    for (int i = 0; i < threads - 1; i++) {
        members[i] = (struct team_member){.team = team, .index = i + 1};
        TRY(thread_start(&members[i].thread, "psring-compute", member_main, &members[i]));
    }
out:
    if (status != STATUS_OK)
        team_free(&team);
    *out_team = team;
    return status;
}

void team_free(struct team **team)
{
    struct team *t = *team;
    *team = NULL;
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_broadcast(&t->begin);
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->threads - 1; i++)
        thread_join(&t->members[i].thread);
    pthread_cond_destroy(&t->begin);
    pthread_cond_destroy(&t->end);
    pthread_mutex_destroy(&t->lock);
    free(t->members);
    free(t);
}

int team_threads(const struct team *team)
{
    return team->threads;
}

void team_run(struct team *team, size_t count, team_work *work, void *context)
{
    if (team->threads == 1 || count < 2) {
        for (size_t item = 0; item < count; item++)
            work(context, item, 0);
        return;
    }
    pthread_mutex_lock(&team->lock);
    team->work = work;
    team->context = context;
    team->count = count;
    atomic_store_explicit(&team->next, 0, memory_order_relaxed);
    team->busy = team->threads - 1;
    team->generation++;
    pthread_cond_broadcast(&team->begin);
    pthread_mutex_unlock(&team->lock);

    take_items(team, 0);

    pthread_mutex_lock(&team->lock);
    while (team->busy > 0)
        pthread_cond_wait(&team->end, &team->lock);
    pthread_mutex_unlock(&team->lock);
}
