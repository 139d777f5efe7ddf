/* A child of fork() inherits the connections. While it has them open, no rank sees the end of this
 * process, so the child closes them. */
#ifndef PSRING_COMMON_LIBRARY_FORKS_H
#define PSRING_COMMON_LIBRARY_FORKS_H

struct engine;

/* From now on children close the connections of `engine`; NULL: there is none any more. */
void forks_watch(const struct engine *engine);

/* Between the two no fork() happens: a child must not see a descriptor that is half closed. */
void forks_hold(void);
void forks_release(void);

#endif
