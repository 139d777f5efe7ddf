#include "common/base/monitor.h"

void monitor_init(struct monitor *monitor)
{
    *monitor = (struct monitor){0};
    pthread_mutex_init(&monitor->lock, NULL);
    pthread_cond_init(&monitor->changed, NULL);
}

void monitor_fini(struct monitor *monitor)
{
    pthread_cond_destroy(&monitor->changed);
    pthread_mutex_destroy(&monitor->lock);
}

void monitor_enter(struct monitor *monitor)
{
    pthread_mutex_lock(&monitor->lock);
}

void monitor_leave(struct monitor *monitor)
{
    pthread_mutex_unlock(&monitor->lock);
}

void monitor_wait(struct monitor *monitor)
{
    pthread_cond_wait(&monitor->changed, &monitor->lock);
}

void monitor_wake(struct monitor *monitor)
{
    pthread_cond_broadcast(&monitor->changed);
}
