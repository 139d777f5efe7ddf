/*
 * Protected connections (--secure). Keys are written once and refused if others can read them. A
 * connection without the keys is refused, and delays no other. Messages of any length arrive, also
 * those that are sent before the other end has accepted.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "common/net/control.h"
#include "common/net/secure.h"
#include "common/net/transport/zmq_impl.h"
#include "tests/lib/capture.h"

enum { LONG_MS = 60000, LONG_BYTES = 8 << 20, RECORD_BYTES = 1000 };

static char parent[64], folder[128], others[128];
static struct listener listener;

static void make_folders(void)
{
    folder_new(parent);
    snprintf(folder, sizeof folder, "%s/keys", parent);
    snprintf(others, sizeof others, "%s/others", parent);
    cr_assert_eq(secure_write_keys(folder), STATUS_OK);
    cr_assert_eq(secure_write_keys(others), STATUS_OK);
}

static void open_listener(void)
{
    union address any = address_loopback();
    cr_assert_eq(listener_open(&listener, &any, 1), 0);
}

static void begin(void)
{
    make_folders();
    cr_assert_eq(secure_open(folder), STATUS_OK);
    open_listener();
}

static void end(void)
{
    listener_close(&listener);
    secure_close();
    folder_free(parent);
}

static int64_t deadline_ms(int64_t ms)
{
    return clock_now_ns() + ms * NS_PER_MS;
}

static int await_hello(int rank)
{
    struct hello found;
    int socket;
    size_t which;
    cr_assert_eq(listener_wait(&listener, deadline_ms(LONG_MS), NULL, 0, &found, &socket, &which),
                 LISTENER_HELLO);
    cr_assert_eq(found.head.value, rank);
    return socket;
}

/* -------- keys -------------------------------------------------------------------------------- */

static void path_to(const char *name, char path[256])
{
    snprintf(path, 256, "%s/%s", folder, name);
}

Test(secure, keys_are_never_overwritten)
{
    char path[256], before[4096] = "", after[4096] = "";
    make_folders();
    path_to("tls.pem", path);
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(path, "r");
        cr_assert(file && fread(i ? after : before, 1, sizeof before - 1, file) > 0);
        fclose(file);
        assert_refused(secure_write_keys(folder), STATUS_USAGE, "never overwritten");
    }
    cr_expect_str_eq(before, after);
    path_to("curve.txt", path);
    cr_assert_eq(remove(path), 0);
    assert_refused(secure_write_keys(folder), STATUS_USAGE, "tls.pem");
    cr_expect_neq(access(path, F_OK), 0, "half of the keys");
    folder_free(parent);
}

Test(secure, keys_that_others_can_read_are_refused)
{
    static const char *const names[] = {".", "tls.pem", "curve.txt"};
    char path[256];
    struct stat found;
    make_folders();
    for (size_t i = 0; i < 3; i++) {
        path_to(names[i], path);
        mode_t mode = i == 0 ? 0700 : 0600;
        cr_assert(stat(path, &found) == 0 && (found.st_mode & 0777) == mode);
        for (mode_t bit = 040; bit > 0; bit = bit == 040 ? 04 : 0) {
            cr_assert_eq(chmod(path, mode | bit), 0);
            assert_refused(secure_open(folder), STATUS_USAGE, "other users can use it");
            cr_expect(!secure_is_on && !secure_curve());
        }
        cr_assert_eq(chmod(path, mode), 0);
    }
    cr_assert_eq(secure_open(folder), STATUS_OK);
    secure_close();
    folder_free(parent);
}

Test(secure, keys_that_are_no_keys_are_refused)
{
    static const char *const names[] = {"tls.pem", "curve.txt"};
    char path[256], other[256];
    make_folders();
    for (int i = 0; i < 2; i++) {
        path_to(names[i], path);
        snprintf(other, sizeof other, "%s/%s", others, names[i]);
        cr_assert_eq(truncate(path, 70), 0);
        assert_refused(secure_open(folder), STATUS_USAGE, "expected");
        cr_assert_eq(remove(path), 0);
        assert_refused(secure_open(folder), STATUS_USAGE, "psring keys DIR");
        cr_assert_eq(rename(other, path), 0);
        cr_assert_eq(secure_open(folder), STATUS_OK, "copied");
        secure_close();
    }
    folder_free(parent);
}

/* -------- strangers --------------------------------------------------------------------------- */

static const char *groups = "X25519"; /* of a stranger's key exchange */

/* A program with OpenSSL at the listener, with the key of this folder; NULL: none. */
static void *be_stranger(void *keys)
{
    char path[256];
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    snprintf(path, sizeof path, "%s/tls.pem", keys ? (const char *)keys : "");
    bool ready = !keys || (SSL_CTX_use_certificate_file(context, path, SSL_FILETYPE_PEM) == 1 &&
                           SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) == 1);
    ready = ready && SSL_CTX_set1_groups_list(context, groups) == 1;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    SSL *ssl = SSL_new(context);
    struct hello hello = hello_from(1, 2, 0);
    char byte;
    ready = ready && connect(fd, &listener.address.any, sizeof listener.address.v4) == 0 &&
            SSL_set_fd(ssl, fd) == 1;
    /* TLS 1.3: this end learns of the refusal only when it reads. */
    if (ready && SSL_connect(ssl) == 1)
        (void)SSL_write(ssl, &hello, sizeof hello);
    bool dropped = ready && SSL_read(ssl, &byte, 1) <= 0;
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(fd);
    return dropped ? keys ? keys : parent : NULL;
}

static void refuses(const char *keys, const char *words)
{
    pthread_t stranger;
    struct capture capture;
    void *dropped;
    listener.warned = false;
    capture_start(&capture);
    int silent = socket(AF_INET, SOCK_STREAM, 0), ours;
    cr_assert_eq(connect(silent, &listener.address.any, sizeof listener.address.v4), 0);
    cr_assert_eq(pthread_create(&stranger, NULL, be_stranger, without_const(keys)), 0);
    struct hello found;
    int64_t until_ns = deadline_ms(LONG_MS);
    while (!listener.warned && clock_now_ns() < until_ns)
        cr_assert_eq(listener_wait(&listener, deadline_ms(10), NULL, 0, &found, &ours, NULL),
                     LISTENER_TIMEOUT);
    pthread_join(stranger, &dropped);
    /* A member comes in while the silent connection stays. */
    cr_assert_eq(listener_join(&listener.address, 0, 5, LONG_MS, &ours), 0);
    int theirs = await_hello(5);
    cr_expect_eq(listener.pending_count, 1);
    stream_close(&ours);
    stream_close(&theirs);
    stream_close(&listener.pending[0].socket);
    listener.pending_count = 0;
    capture_stop(&capture);
    close(silent);
    cr_expect(dropped && strstr(capture.text, words), "%s", capture.text);
}

Test(secure, tls_without_the_keys_is_refused)
{
    begin();
    refuses(NULL, "has other keys");
    refuses(others, "has other keys");
    end();
}

/* The same program with the job's keys: the refusals above are due to the keys. */
Test(secure, tls_with_the_keys_is_let_in)
{
    pthread_t member;
    begin();
    cr_assert_eq(pthread_create(&member, NULL, be_stranger, folder), 0);
    int socket = await_hello(1);
    stream_close(&socket);
    pthread_join(member, NULL);
    end();
}

/* Others cost this process up to a thousand times as much, before it knows the keys. */
Test(secure, a_key_exchange_without_x25519_is_refused)
{
    static const char *const others_groups[] = {"ffdhe8192", "P-521:P-256", "X448"};
    begin();
    for (size_t i = 0; i < sizeof others_groups / sizeof *others_groups; i++) {
        groups = others_groups[i];
        refuses(folder, "does not use TLS 1.3");
    }
    end();
}

Test(secure, bytes_in_the_clear_are_refused)
{
    struct hello hello = hello_from(1, 2, 0), found;
    struct capture capture;
    int ours;
    begin();
    int plain = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(connect(plain, &listener.address.any, sizeof listener.address.v4), 0);
    cr_assert_eq(send(plain, &hello, sizeof hello, 0), (ssize_t)sizeof hello);
    capture_start(&capture);
    for (int64_t until_ns = deadline_ms(LONG_MS); !listener.warned && clock_now_ns() < until_ns;)
        cr_expect_eq(listener_wait(&listener, deadline_ms(10), NULL, 0, &found, &ours, NULL),
                     LISTENER_TIMEOUT);
    capture_stop(&capture);
    cr_expect(strstr(capture.text, "does not use TLS"), "%s", capture.text);
    close(plain);
    end();
}

/* This listener has no keys. The bytes of the member that connects do not contain its hello. */
Test(secure, a_member_sends_nothing_in_the_clear)
{
    unsigned char bytes[4096];
    int ours;
    begin();
    cr_assert_eq(listener_join(&listener.address, 0, 5, LONG_MS, &ours), 0);
    cr_assert_eq(stream_wait(listener.socket, POLLIN, deadline_ms(LONG_MS), NULL, NULL), 0);
    int plain = accept(listener.socket, NULL, NULL);
    ssize_t got = recv(plain, bytes, sizeof bytes, 0);
    cr_assert(got > 2 && bytes[0] == 22 && bytes[1] == 3);
    cr_expect_null(memmem(bytes, (size_t)got, "PSRHello", 8));
    close(plain);
    char byte;
    cr_expect_eq(stream_receive(ours, &byte, 1, LONG_MS), ECONNRESET);
    stream_close(&ours);
    end();
}

/* It has waited to be accepted, and has the whole time for its hello, because it is not silent. */
Test(secure, a_member_that_has_waited_is_not_silent)
{
    enum { AGE_MS = 200 };
    struct hello found;
    int ours, other;
    begin();
    cr_assert_eq(listener_join(&listener.address, 0, 5, LONG_MS, &ours), 0);
    clock_sleep_until_ns(deadline_ms(AGE_MS));
    int64_t before_ns = clock_now_ns();
    cr_assert_eq(listener_wait(&listener, 1, NULL, 0, &found, &other, NULL), LISTENER_TIMEOUT);
    cr_assert_eq(listener.pending_count, 1);
    cr_expect_geq(listener.pending[0].until_ns, before_ns + HELLO_SHAKE_MS * NS_PER_MS);
    int theirs = await_hello(5);
    stream_close(&ours);
    stream_close(&theirs);
    end();
}

/* Looks once. No hello is there. */
static void look(void)
{
    struct hello found;
    int other;
    cr_assert_eq(listener_wait(&listener, 1, NULL, 0, &found, &other, NULL), LISTENER_TIMEOUT);
}

/* As if the connections had been made so much earlier. */
static void age_all(int64_t ms)
{
    for (int i = 0; i < listener.pending_count; i++)
        listener.pending[i].until_ns -= ms * NS_PER_MS;
}

static int connect_plainly(const void *bytes, size_t count)
{
    int plain = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(connect(plain, &listener.address.any, sizeof listener.address.v4), 0);
    cr_assert_eq(send(plain, bytes, count, 0), (ssize_t)count);
    return plain;
}

/* Connects one that has begun a handshake, or is silent, and waits until it is accepted. */
static int connect_slowly(bool begins)
{
    int slow = connect_plainly("\x16", begins), before = listener.pending_count;
    for (int64_t until_ns = deadline_ms(LONG_MS);
         listener.pending_count == before && clock_now_ns() < until_ns;)
        look();
    cr_assert_eq(listener.pending_count, before + 1);
    return slow;
}

/* A rank on a busy host. A stranger that sends one byte after the other is dropped in the end. */
Test(secure, a_slow_handshake_has_its_time)
{
    struct capture capture;
    begin();
    capture_start(&capture);
    int silent = connect_slowly(false), slow = connect_slowly(true);
    age_all(HELLO_WAIT_MS);
    look();
    cr_expect_eq(listener.pending_count, 1);
    cr_assert_eq(send(slow, "\x03", 1, 0), 1);
    look();
    cr_expect_eq(listener.pending_count, 1);
    age_all(HELLO_SHAKE_MS - HELLO_WAIT_MS);
    look();
    cr_expect_eq(listener.pending_count, 0);
    capture_stop(&capture);
    close(silent);
    close(slow);
    end();
}

/* A silent one is dropped for the next one; the handshakes have longer. */
Test(secure, the_next_ones_do_not_displace_a_slow_handshake)
{
    struct capture capture;
    int theirs[HELLO_PENDING], shaking = 0;
    begin();
    capture_start(&capture);
    for (int i = 0; i < HELLO_PENDING; i++)
        theirs[i] = connect_slowly(i != 1);
    age_all(HELLO_YOUNG_MS);
    int next = connect_plainly("\x16", 1), last = connect_plainly("\x16", 1);
    for (int i = 0; i < 4; i++)
        look();
    for (int i = 0; i < listener.pending_count; i++)
        shaking += listener.pending[i].shakes;
    capture_stop(&capture);
    cr_expect(strstr(capture.text, "sent no hello while"), "%s", capture.text);
    cr_expect_eq(shaking, HELLO_PENDING);
    for (int i = 0; i < HELLO_PENDING; i++) {
        char byte;
        errno = 0;
        ssize_t got = recv(theirs[i], &byte, 1, MSG_DONTWAIT);
        cr_expect_eq(got < 0 && errno == EAGAIN, i != 1, "connection %d", i);
        close(theirs[i]);
    }
    close(next);
    close(last);
    end();
}

/* -------- messages ---------------------------------------------------------------------------- */

/* A member connects, says hello and sends one message. It cannot know whether the listener has
 * accepted. */
static int join_and_send(void)
{
    struct control_head one = {.type = CONTROL_ANSWER, .value = 7};
    int ours;
    cr_assert_eq(listener_join(&listener.address, 0, 5, LONG_MS, &ours), 0);
    cr_assert_eq(control_send(ours, &one, sizeof one, NULL, 0, -1), 0);
    return ours;
}

/* Both leave in one record after the handshake, so poll(2) does not report the message. */
Test(secure, a_message_behind_the_hello_is_seen)
{
    struct control_head got;
    struct hello found;
    struct control_input input = {0};
    size_t which;
    int other;
    begin();
    int ours = join_and_send(), theirs = await_hello(5);
    cr_assert_eq(listener_wait(&listener, deadline_ms(LONG_MS), &theirs, 1, &found, &other, &which),
                 LISTENER_WATCHED);
    cr_assert_eq(control_read(theirs, &got, sizeof got, sizeof got, &input), CONTROL_MESSAGE);
    cr_expect_eq(got.value, 7);
    cr_assert_eq(listener_wait(&listener, deadline_ms(10), &theirs, 1, &found, &other, &which),
                 LISTENER_TIMEOUT);
    stream_close(&ours);
    stream_close(&theirs);
    end();
}

Test(secure, what_is_sent_before_a_close_arrives)
{
    struct control_head got;
    struct control_input input = {0};
    begin();
    int ours = join_and_send();
    stream_close(&ours);
    cr_expect_eq(ours, -1);
    int theirs = await_hello(5);
    cr_expect_eq(control_receive(theirs, &got, sizeof got, &input, LONG_MS, NULL, NULL), 0);
    cr_expect_eq(got.value, 7);
    cr_expect_eq(control_receive(theirs, &got, sizeof got, &input, LONG_MS, NULL, NULL),
                 ECONNRESET);
    stream_close(&theirs);
    end();
}

/* -------- new keys ---------------------------------------------------------------------------- */

int __real_SSL_key_update(SSL *ssl, int type);
int __wrap_SSL_key_update(SSL *ssl, int type);
int __real_SSL_write_ex(SSL *ssl, const void *bytes, size_t count, size_t *written);
int __wrap_SSL_write_ex(SSL *ssl, const void *bytes, size_t count, size_t *written);
ssize_t __real_sendmsg(int socket, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int socket, const struct msghdr *message, int flags);

static _Atomic bool changes_keys, is_full;
static _Atomic int changes;

int __wrap_SSL_key_update(SSL *ssl, int type)
{
    int done = __real_SSL_key_update(ssl, type);
    changes += done == 1;
    return done;
}

/* Before each record come new keys. OpenSSL refuses while a part of a record is sent. */
int __wrap_SSL_write_ex(SSL *ssl, const void *bytes, size_t count, size_t *written)
{
    if (changes_keys)
        SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
    ERR_clear_error();
    return __real_SSL_write_ex(ssl, bytes, count, written);
}

ssize_t __wrap_sendmsg(int socket, const struct msghdr *message, int flags)
{
    errno = EAGAIN;
    return is_full ? -1 : __real_sendmsg(socket, message, flags);
}

static unsigned char sent[LONG_BYTES], received[LONG_BYTES];

static void *send_long(void *socket)
{
    struct control_head head = {.type = CONTROL_ANSWER};
    for (int i = 0; i < 2; i++)
        cr_assert_eq(control_send(*(int *)socket, &head, sizeof head, sent, sizeof sent, LONG_MS),
                     0);
    return NULL;
}

/* Longer than the buffers of the sockets: sends stop in the middle of a record, and continue. One
 * direction has new keys before each record. */
Test(secure, long_messages_arrive_in_both_directions)
{
    pthread_t threads[2];
    int ours;
    begin();
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (unsigned char)(i * 7 + i / 251);
    cr_assert_eq(listener_join(&listener.address, 0, 5, LONG_MS, &ours), 0);
    int sockets[] = {ours, await_hello(5)};
    for (int way = 0; way < 2; way++) {
        changes_keys = way == 1;
        cr_assert_eq(pthread_create(&threads[way], NULL, send_long, &sockets[way]), 0);
        struct control_head head;
        for (int i = 0; i < 2; i++) {
            cr_assert_eq(stream_receive(sockets[!way], &head, sizeof head, LONG_MS), 0);
            cr_assert_eq(head.bytes, sizeof sent);
            /* In odd pieces, so that a record is read in parts. */
            for (size_t at = 0, piece; at < sizeof received; at += piece) {
                piece = size_smaller(5003, sizeof received - at);
                cr_assert_eq(stream_receive(sockets[!way], received + at, piece, LONG_MS), 0);
            }
            cr_assert_eq(memcmp(sent, received, sizeof sent), 0);
        }
        pthread_join(threads[way], NULL);
    }
    cr_expect_geq(changes, 2 * LONG_BYTES / SSL3_RT_MAX_PLAIN_LENGTH);
    stream_close(&sockets[0]);
    stream_close(&sockets[1]);
    end();
}

/* Connects both ends, and waits until the handshake is over. */
static void meet(int *ours, int *theirs)
{
    begin();
    memset(sent, 7, RECORD_BYTES);
    cr_assert_eq(listener_join(&listener.address, 0, 5, LONG_MS, ours), 0);
    *theirs = await_hello(5);
    cr_assert_eq(secure_settle(*ours, deadline_ms(LONG_MS)), 0);
}

static void arrives(int theirs)
{
    memset(received, 0, RECORD_BYTES);
    cr_expect_eq(stream_receive(theirs, received, RECORD_BYTES, LONG_MS), 0);
    cr_expect_eq(memcmp(sent, received, RECORD_BYTES), 0);
}

/* The kernel takes neither the announcement of the new keys nor the record after it. */
Test(secure, an_end_that_cannot_announce_new_keys_reads)
{
    char got = 0, said = 7;
    struct iovec piece = {&got, 1};
    int ours, theirs;
    meet(&ours, &theirs);
    cr_assert_eq(stream_send(theirs, &said, 1, LONG_MS), 0);
    cr_assert_eq(stream_wait(ours, POLLIN, deadline_ms(LONG_MS), NULL, NULL), 0);
    changes_keys = is_full = true;
    cr_expect_eq(stream_send(ours, sent, RECORD_BYTES, -1), ETIMEDOUT);
    cr_expect_eq(secure_receive(ours, &piece, 1), 1);
    cr_expect_eq(got, said);
    is_full = false;
    cr_expect_eq(stream_send(ours, sent, RECORD_BYTES, LONG_MS), 0);
    cr_expect_eq(changes, 1);
    arrives(theirs);
    stream_close(&ours);
    stream_close(&theirs);
    end();
}

/* Attempts count, too. */
Test(secure, a_million_records_bring_new_keys)
{
    int ours, theirs;
    meet(&ours, &theirs);
    is_full = true;
    for (int i = 0; i < 1 << 20; i++)
        cr_assert_eq(stream_send(ours, sent, RECORD_BYTES, -1), ETIMEDOUT);
    is_full = false;
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(changes, i > 1);
        cr_expect_eq(stream_send(ours, sent, RECORD_BYTES, LONG_MS), 0);
        arrives(theirs);
    }
    stream_close(&ours);
    stream_close(&theirs);
    end();
}

/* -------- ends of connections ----------------------------------------------------------------- */

/* A message that did not fit is not lost silently: no other may follow it. */
Test(secure, a_send_that_does_not_wait_reports_a_part)
{
    struct control_head head = {.type = CONTROL_ANSWER};
    int ours, error;
    begin();
    cr_assert_eq(listener_join(&listener.address, 0, 5, LONG_MS, &ours), 0);
    int theirs = await_hello(5);
    do
        error = control_send(ours, &head, sizeof head, sent, 1000, -1);
    while (error == 0);
    cr_expect_eq(error, ETIMEDOUT);
    stream_close(&ours);
    stream_close(&theirs);
    end();
}

/* Also from an end whose handshake is not over. It can still receive. */
Test(secure, what_is_sent_before_the_output_ends_arrives)
{
    struct control_head got;
    struct control_input input = {0};
    char byte = 7;
    begin();
    int ours = join_and_send();
    secure_end_output(ours);
    int theirs = await_hello(5);
    cr_expect_eq(control_receive(theirs, &got, sizeof got, &input, LONG_MS, NULL, NULL), 0);
    cr_expect_eq(got.value, 7);
    cr_expect_eq(control_receive(theirs, &got, sizeof got, &input, LONG_MS, NULL, NULL),
                 ECONNRESET);
    cr_expect_eq(stream_send(theirs, &byte, 1, LONG_MS), 0);
    byte = 0;
    cr_expect_eq(stream_receive(ours, &byte, 1, LONG_MS), 0);
    cr_expect_eq(byte, 7);
    stream_close(&ours);
    stream_close(&theirs);
    end();
}

/* Whether an epoll of this process has a socket of that number. */
static bool is_watched(int socket)
{
    char path[64], line[256];
    int target;
    bool found = false;
    for (int fd = 0; fd < 256 && !found; fd++) {
        snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
        FILE *file = fopen(path, "re");
        while (file && !found && fgets(line, sizeof line, file))
            found = sscanf(line, "tfd: %d", &target) == 1 && target == socket;
        if (file)
            fclose(file);
    }
    return found;
}

/* No process accepts, so the thread gives up. The copy of the descriptor stands for one in a child
 * of fork(). */
Test(secure, a_session_that_is_given_up_leaves_no_trace)
{
    begin();
    int ours = join_and_send(), number = ours, copy = dup(ours);
    cr_expect(is_watched(number));
    stream_close(&ours);
    for (int64_t until_ns = deadline_ms(LONG_MS); clock_now_ns() < until_ns;) {
        if (fcntl(number, F_GETFD) < 0)
            break;
        clock_sleep_until_ns(deadline_ms(10));
    }
    cr_expect_lt(fcntl(number, F_GETFD), 0);
    cr_expect(!is_watched(number));
    close(copy);
    end();
}

/* Changed bytes end the connection. One read finds good bytes and then changed ones, of which
 * poll(2) knows nothing any more. */
Test(secure, changed_bytes_are_an_error)
{
    enum { GOOD_BYTES = 5 + 1 + 1 + 16 }; /* of a record with one byte */
    static const unsigned char record[] = {23, 3, 3, 0,  17, 1,  2,  3,  4,  5,  6,
                                           7,  8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    char bytes[8], good = 7;
    struct iovec piece = {bytes, sizeof bytes};
    int ours, theirs, here = 0;
    meet(&ours, &theirs);
    cr_assert_eq(stream_send(ours, &good, 1, LONG_MS), 0);
    cr_assert_eq(send(ours, record, sizeof record, 0), (ssize_t)sizeof record);
    while (here < GOOD_BYTES + (int)sizeof record) {
        clock_sleep_until_ns(deadline_ms(1));
        cr_assert_eq(ioctl(theirs, FIONREAD, &here), 0);
    }
    cr_expect_eq(secure_receive(theirs, &piece, 1), 1);
    cr_expect_eq(bytes[0], good);
    cr_expect(secure_has_input(theirs));
    cr_expect_eq(stream_receive(theirs, bytes, 1, LONG_MS), EBADMSG);
    cr_expect_eq(secure_error(theirs), EBADMSG);
    cr_expect(!secure_has_input(theirs));
    stream_close(&ours);
    stream_close(&theirs);
    end();
}

/* -------- ZeroMQ ------------------------------------------------------------------------------ */

static const char *plain_password; /* of the run */

/* How a handshake with the server's socket ends: one of ZeroMQ's events. */
static int shake_hands(const char *address, const char *server, const char *public,
                       const char *secret)
{
    enum {
        ENDS = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
               ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_DISCONNECTED
    };
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PUSH);
    void *monitor = zmq_socket(context, ZMQ_PAIR);
    int none = 0;
    uint16_t event = 0;
    zmq_msg_t frame;
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
    if (server) {
        zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server, SECURE_CURVE_TEXT_BYTES);
        zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, public, SECURE_CURVE_TEXT_BYTES);
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret, SECURE_CURVE_TEXT_BYTES);
    } else if (public) {
        zmq_setsockopt(socket, ZMQ_PLAIN_USERNAME, "psring", 6);
        zmq_setsockopt(socket, ZMQ_PLAIN_PASSWORD, plain_password, strlen(plain_password));
    }
    cr_assert_eq(zmq_socket_monitor(socket, "inproc://events", ENDS), 0);
    cr_assert_eq(zmq_connect(monitor, "inproc://events"), 0);
    cr_assert_eq(zmq_connect(socket, address), 0);
    zmq_msg_init(&frame);
    cr_assert_geq(zmq_msg_recv(&frame, monitor, 0), (int)sizeof event);
    memcpy(&event, zmq_msg_data(&frame), sizeof event);
    zmq_msg_close(&frame);
    zmq_close(monitor);
    zmq_close(socket);
    zmq_ctx_term(context);
    return event;
}

Test(secure, zmq_lets_in_the_keys_alone)
{
    struct world *world;
    struct transport *endpoint[2];
    char public[SECURE_CURVE_TEXT_BYTES], secret[SECURE_CURVE_TEXT_BYTES];
    const struct world_options alone = {.alone = true};
    const struct transport_options options = {.kind = TRANSPORT_ZMQ,
                                              .topology = {1, 1, PLACEMENT_COLOCATED},
                                              .payload_bytes_max = 4,
                                              .dtype = MESSAGE_FLOAT32,
                                              .timeout_ms = LONG_MS};
    begin();
    cr_assert_eq(world_open(&world, NULL, NULL, &alone), STATUS_OK);
    cr_assert_eq(transport_open(endpoint, world, &options), STATUS_OK);
    const struct zmq_shared *shared = endpoint_of(endpoint[NODE_SERVER])->shared;
    const char *address = shared->addresses[0][NODE_SERVER];
    const struct secure_curve *own = secure_curve();
    plain_password = shared->auth.password;
    cr_assert_eq(zmq_curve_keypair(public, secret), 0);
    cr_expect_neq(shake_hands(address, NULL, NULL, NULL), ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    cr_expect_neq(shake_hands(address, NULL, "", NULL), ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    cr_expect_neq(shake_hands(address, own->public_text, public, secret),
                  ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    cr_expect_neq(shake_hands(address, public, own->public_text, own->secret_text),
                  ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    cr_expect_eq(shake_hands(address, own->public_text, own->public_text, own->secret_text),
                 ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    transport_close(&endpoint[NODE_WORKER]);
    transport_close(&endpoint[NODE_SERVER]);
    world_close(&world);
    end();
}
