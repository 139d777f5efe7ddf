/* Internal to the rendezvous: what rank 0 and the others have in common. */
#ifndef PSRING_COMMON_NET_RENDEZVOUS_RENDEZVOUS_IMPL_H
#define PSRING_COMMON_NET_RENDEZVOUS_RENDEZVOUS_IMPL_H

#include "common/net/listener.h"
#include "common/net/rendezvous/rendezvous.h"

/* What rank 0 says to each of the others, as it travels: begin (STATUS_OK), or why not. */
struct answer {
    uint64_t magic; /* HELLO_MAGIC */
    int32_t status;
    uint32_t unused;
    char text[RENDEZVOUS_TEXT_BYTES];
};

enum { RENDEZVOUS_LOOK_MS = 200 }; /* between two questions whether to give up */

bool rendezvous_given_up(const struct rendezvous *rendezvous);

struct hello rendezvous_hello(const struct rendezvous *rendezvous);

/* Connects to whoever listens, says hello and waits for the answer: 0 (then *socket and *answer are
 * there) or an errno value; EPROTO: what listens is not psring; ENOMSG: it does not answer. */
int rendezvous_ask(const struct rendezvous *rendezvous, const union address *address,
                   int64_t connect_ms, int64_t answer_ms, int *socket, struct answer *answer);

/* Rank 0's part. */
enum status rendezvous_gather(const struct rendezvous *rendezvous, int *sockets);

/*
 * What is wrong with a rank that introduces itself, as text; false: nothing. `hosts`: by rank, the
 * names of those that are there already, "" for those that are not.
 */
bool rendezvous_objection(const struct rendezvous *rendezvous, const struct hello *hello,
                          char (*hosts)[RENDEZVOUS_NAME_BYTES], char *text, size_t size);

/* "ranks 2, 3 and 7" of those whose host is "". */
void rendezvous_missing(char (*hosts)[RENDEZVOUS_NAME_BYTES], int world_size, char *text,
                        size_t size);

#endif
