#include "common/net/secure.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/base/util.h"
#include "common/net/control.h"

enum {
    DESCRIPTORS_MOST = 1 << 20,
    RECORD_BYTES = SSL3_RT_MAX_PLAIN_LENGTH,
    RECORDS_PER_KEY = 1 << 20, /* RFC 8446, 5.5: AES-GCM allows 2^24.5 */
    LINGER_MS = 5000,
    EVENTS_AT_ONCE = 16,
    PATH_BYTES = 4096,
    LATE_BYTES = 64,
};

#define TLS_FILE "tls.pem"     /* the private key, then the certificate */
#define CURVE_FILE "curve.txt" /* the public key, then the secret one, a line each */

struct session {
    SSL *ssl;
    int socket;
    _Atomic bool joining;   /* connecting: the lock guards all fields but `has_input` */
    _Atomic bool has_input; /* decrypted, or an error, and not read */
    bool holds_output;
    int error;        /* secure_error */
    int io_error;     /* of the last send(2) or recv(2) */
    bool met;         /* the other end has the keys */
    bool ended;       /* the end of the stream has arrived */
    bool heard;       /* bytes have arrived */
    uint64_t records; /* sent with this key */
    unsigned char *queue;
    size_t queued;
    bool ends_output;               /* joining: nothing follows the queue */
    unsigned char late[LATE_BYTES]; /* to be sent before the next record */
    size_t late_bytes;
    int64_t until_ns;     /* closing: the thread closes the socket then */
    struct session *next; /* of those that are closing */
};

bool secure_is_on;

static struct secure_state {
    SSL_CTX *context;
    X509 *certificate;
    BIO_METHOD *method;
    struct secure_curve curve;
    _Atomic(struct session *) *sessions; /* (count) by descriptor */
    int count;
    struct monitor lock; /* of what follows, and of joining sessions */
    struct thread thread;
    int epoll, wake; /* of joining sessions; an eventfd */
    bool ends;
    struct session *closing;
} secure = {.epoll = -1, .wake = -1};

/* -------- files ------------------------------------------------------------------------------- */

static enum status tls_failed(const char *what)
{
    char text[160];
    ERR_error_string_n(ERR_get_error(), text, sizeof text);
    return FAIL(STATUS_IO, "--secure: OpenSSL: %s: %s", what, text);
}

static enum status path_of(const char *folder, const char *file, char path[PATH_BYTES])
{
    if (snprintf(path, PATH_BYTES, "%s/%s", folder, file) < PATH_BYTES)
        return STATUS_OK;
    return FAIL(STATUS_USAGE, "'%.60s...': the path is too long; give the folder a shorter one",
                folder);
}

/* Secrets must belong to this user alone. */
static enum status check_private(const char *path, int fd, const char *mode)
{
    struct stat found;
    if (fstat(fd, &found) != 0)
        return FAIL(STATUS_IO, "%s: %s", path, strerror(errno));
    if ((found.st_mode & 077) != 0)
        return FAIL(STATUS_USAGE,
                    "%s: other users can use it (mode %o), expected mode %s; if no one has copied "
                    "the keys, run chmod %s %s",
                    path, (unsigned)found.st_mode & 0777, mode, mode, path);
    if (found.st_uid == geteuid() || found.st_uid == 0)
        return STATUS_OK;
    return FAIL(STATUS_USAGE,
                "%s: it belongs to user %u, expected user %u, who runs psring; copy the keys as "
                "this user",
                path, (unsigned)found.st_uid, (unsigned)geteuid());
}

static enum status open_private(const char *path, int flags, const char *mode, int *fd)
{
    *fd = open(path, flags | O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return FAIL(STATUS_USAGE,
                    "%s: %s; make the keys with psring keys DIR, and copy that folder to all hosts",
                    path, strerror(errno));
    enum status status = check_private(path, *fd, mode);
    if (status == STATUS_OK)
        return status;
    close(*fd);
    *fd = -1;
    return status;
}

/* Opens a key's file for reading, after its checks. */
static enum status open_key(const char *folder, const char *name, FILE **file)
{
    enum status status;
    char path[PATH_BYTES];
    int fd = -1;
    *file = NULL;
    TRY(path_of(folder, name, path));
    TRY(open_private(path, 0, "600", &fd));
    *file = fdopen(fd, "r");
    if (!*file) {
        status = FAIL(STATUS_NO_MEMORY, "%s: %s", path, strerror(errno));
        close(fd);
    }
out:
    return status;
}

static enum status create_key(const char *path, FILE **file)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return FAIL(STATUS_USAGE,
                    "%s: the folder has keys already, which are never overwritten; name a new "
                    "folder, or remove this one",
                    path);
    *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (*file)
        return STATUS_OK;
    return FAIL(STATUS_IO, "%s: %s; name a folder that can be written", path, strerror(errno));
}

/* -------- making keys ------------------------------------------------------------------------- */

/* A certificate that its own key has signed. Members compare it byte by byte, so its names and
 * dates have no effect. */
static X509 *certify(EVP_PKEY *key)
{
    X509 *made = X509_new();
    X509_NAME *name = made ? X509_get_subject_name(made) : NULL;
    if (name && X509_set_version(made, 2) == 1 &&
        ASN1_INTEGER_set(X509_get_serialNumber(made), 1) == 1 &&
        ASN1_TIME_set_string(X509_getm_notBefore(made), "19700101000000Z") == 1 &&
        ASN1_TIME_set_string(X509_getm_notAfter(made), "99991231235959Z") == 1 &&
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"psring", -1,
                                   -1, 0) == 1 &&
        X509_set_issuer_name(made, name) == 1 && X509_set_pubkey(made, key) == 1 &&
        X509_sign(made, key, NULL) > 0)
        return made;
    X509_free(made);
    return NULL;
}

static enum status write_tls(FILE *file)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, NULL);
    bool good = maker && EVP_PKEY_keygen_init(maker) == 1 && EVP_PKEY_keygen(maker, &key) == 1;
    X509 *certificate = good ? certify(key) : NULL;
    good = certificate && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1 &&
           PEM_write_X509(file, certificate) == 1;
    X509_free(certificate);
    EVP_PKEY_free(key);
    EVP_PKEY_CTX_free(maker);
    return good ? STATUS_OK : tls_failed("writing the key and its certificate");
}

static enum status write_curve(FILE *file)
{
    struct secure_curve made;
    if (zmq_curve_keypair(made.public_text, made.secret_text) != 0)
        return FAIL(STATUS_UNSUPPORTED,
                    "psring keys: this libzmq cannot make CURVE keys (%s); build it with libsodium",
                    zmq_strerror(zmq_errno()));
    fprintf(file, "%s\n%s\n", made.public_text, made.secret_text);
    return STATUS_OK;
}

/* Writes one file, or leaves none. */
static enum status write_file(const char *folder, const char *name, enum status (*write)(FILE *))
{
    enum status status;
    char path[PATH_BYTES];
    FILE *file;
    TRY(path_of(folder, name, path));
    TRY(create_key(path, &file));
    status = write(file);
    bool written = !ferror(file);
    if ((fclose(file) != 0 || !written) && status == STATUS_OK)
        status = FAIL(STATUS_IO, "%s: %s; is the disk full?", path, strerror(errno));
    if (status != STATUS_OK)
        unlink(path);
out:
    return status;
}

enum status secure_write_keys(const char *folder)
{
    enum status status;
    int fd = -1;
    char path[PATH_BYTES];
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return FAIL(STATUS_IO, "%s: %s; name a folder that can be made", folder, strerror(errno));
    TRY(open_private(folder, O_DIRECTORY, "700", &fd));
    TRY(write_file(folder, CURVE_FILE, write_curve));
    status = write_file(folder, TLS_FILE, write_tls);
    if (status != STATUS_OK && path_of(folder, CURVE_FILE, path) == STATUS_OK)
        unlink(path); /* one without the other is of no use */
out:
    if (fd >= 0)
        close(fd);
    return status;
}

/* -------- reading keys ------------------------------------------------------------------------ */

static enum status read_curve(const char *folder)
{
    enum status status;
    FILE *file = NULL;
    struct secure_curve *curve = &secure.curve;
    unsigned char secret[SECURE_CURVE_BYTES];
    if (!zmq_has("curve"))
        return FAIL(STATUS_UNSUPPORTED,
                    "--secure %s: this libzmq has no CURVE; build it with libsodium", folder);
    TRY(open_key(folder, CURVE_FILE, &file));
    bool good = fscanf(file, "%40s %40s", curve->public_text, curve->secret_text) == 2 &&
                strlen(curve->public_text) == SECURE_CURVE_TEXT_BYTES - 1 &&
                strlen(curve->secret_text) == SECURE_CURVE_TEXT_BYTES - 1 &&
                zmq_z85_decode(curve->public_key, curve->public_text) &&
                zmq_z85_decode(secret, curve->secret_text);
    fclose(file);
    OPENSSL_cleanse(secret, sizeof secret);
    if (!good)
        return FAIL(STATUS_USAGE,
                    "%s/" CURVE_FILE ": found no two keys, expected those of psring keys; copy the "
                    "folder again",
                    folder);
out:
    return status;
}

/* The other end has the same certificate, and has proved that it has the key. */
static int is_ours(X509_STORE_CTX *store, void *own)
{
    const X509 *found = X509_STORE_CTX_get0_cert(store);
    bool same = found && X509_cmp(found, own) == 0;
    X509_STORE_CTX_set_error(store, same ? X509_V_OK : X509_V_ERR_CERT_UNTRUSTED);
    return same;
}

static enum status read_tls(const char *folder)
{
    enum status status;
    FILE *file = NULL;
    EVP_PKEY *key = NULL;
    char no_password[] = "";
    TRY(open_key(folder, TLS_FILE, &file));
    key = PEM_read_PrivateKey(file, NULL, NULL, no_password);
    secure.certificate = key ? PEM_read_X509(file, NULL, NULL, no_password) : NULL;
    fclose(file);
    SSL_CTX *context = secure.context = SSL_CTX_new(TLS_method());
    if (!context || !secure.certificate ||
        SSL_CTX_use_certificate(context, secure.certificate) != 1 ||
        SSL_CTX_use_PrivateKey(context, key) != 1)
        status =
            FAIL(STATUS_USAGE,
                 "%s/" TLS_FILE ": found no key with its certificate, expected those of psring "
                 "keys; copy the folder again",
                 folder);
    else if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
             SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
             SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") != 1 ||
             SSL_CTX_set1_groups_list(context, "X25519") != 1 ||
             SSL_CTX_set1_sigalgs_list(context, "ed25519") != 1 ||
             SSL_CTX_set_num_tickets(context, 0) != 1)
        status = tls_failed("TLS 1.3 with X25519, Ed25519 and AES-128-GCM");
    TRY(status);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(context, is_ours, secure.certificate);
out:
    EVP_PKEY_free(key);
    return status;
}

/* -------- bytes of TLS ------------------------------------------------------------------------ */

static bool is_busy(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* OpenSSL announces new keys in a record, and reads nothing before that has left. Two ends with
 * full links would wait for each other. The announcement therefore leaves with the next record. */
static int bio_write(BIO *bio, const char *bytes, int count)
{
    struct session *session = BIO_get_data(bio);
    struct iovec pieces[] = {{session->late, session->late_bytes},
                             {without_const(bytes), (size_t)count}};
    bool announces = session->met && SSL_in_init(session->ssl);
    BIO_clear_retry_flags(bio);
    if (announces && (size_t)count <= LATE_BYTES - session->late_bytes) {
        memcpy(session->late + session->late_bytes, bytes, (size_t)count);
        session->late_bytes += (size_t)count;
        return count;
    }
    ssize_t sent = clear_send(session->socket, pieces, 2);
    size_t of_late = sent > 0 ? size_smaller((size_t)sent, session->late_bytes) : 0;
    session->late_bytes -= of_late;
    memmove(session->late, session->late + of_late, session->late_bytes);
    if (sent > (ssize_t)of_late)
        return (int)(sent - (ssize_t)of_late);
    if (sent >= 0 || is_busy(errno))
        BIO_set_retry_write(bio);
    else
        session->io_error = errno;
    return -1;
}

static int bio_read(BIO *bio, char *bytes, int count)
{
    struct session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t got = recv(session->socket, bytes, (size_t)count, MSG_DONTWAIT);
    session->heard = session->heard || got > 0;
    session->ended = session->ended || got == 0;
    if (got < 0 && is_busy(errno))
        BIO_set_retry_read(bio);
    else if (got < 0)
        session->io_error = errno;
    return (int)got;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

/* Whether OpenSSL's error is that one end does not accept the keys of the other one. */
static bool keys_differ(void)
{
    int reason = ERR_GET_REASON(ERR_peek_error());
    return reason == SSL_R_CERTIFICATE_VERIFY_FAILED ||
           reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE ||
           reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA || reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE ||
           reason == SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN ||
           reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED;
}

/* Converts `done`, the result of OpenSSL's last call: 0 after success, EAGAIN if the call must be
 * repeated, else the error. The end of the stream is ECONNRESET, too. */
static int error_of(struct session *session, int done)
{
    session->met = session->met || done == 1;
    int found = done == 1 ? SSL_ERROR_NONE : SSL_get_error(session->ssl, done);
    if (found == SSL_ERROR_NONE)
        return 0;
    if (found == SSL_ERROR_WANT_READ || found == SSL_ERROR_WANT_WRITE)
        return EAGAIN;
    if (found == SSL_ERROR_SSL && !session->ended)
        return session->error = session->met ? EBADMSG : keys_differ() ? EKEYREJECTED : EPROTO;
    return session->ended || session->io_error == 0 ? ECONNRESET : session->io_error;
}

/* -------- sessions ---------------------------------------------------------------------------- */

static struct session *session_of(int socket)
{
    return secure_is_on && socket >= 0 && socket < secure.count
               ? atomic_load_explicit(&secure.sessions[socket], memory_order_acquire)
               : NULL;
}

/* With the lock. The handshake is over. A child of fork() may have the socket open, so a close does
 * not take it out of the epoll. */
static void leave_thread(struct session *session)
{
    epoll_ctl(secure.epoll, EPOLL_CTL_DEL, session->socket, NULL);
    free(session->queue);
    session->queue = NULL;
    if (session->ends_output)
        shutdown(session->socket, SHUT_WR);
    atomic_store_explicit(&session->joining, false, memory_order_release);
}

/* With the lock. */
static void session_free(struct session *session)
{
    if (atomic_load(&session->joining))
        leave_thread(session);
    atomic_store(&secure.sessions[session->socket], NULL);
    SSL_free(session->ssl);
    free(session);
}

static struct session *session_new(int socket, bool accepted)
{
    struct session *session = calloc(1, sizeof *session);
    BIO *bio = session ? BIO_new(secure.method) : NULL;
    SSL *ssl = bio ? SSL_new(secure.context) : NULL;
    unsigned char *queue = ssl && !accepted ? malloc(SECURE_QUEUE_BYTES) : NULL;
    if (!ssl || (!accepted && !queue)) {
        BIO_free(bio);
        SSL_free(ssl);
        free(session);
        return NULL;
    }
    *session = (struct session){.ssl = ssl, .socket = socket, .joining = !accepted, .queue = queue};
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    if (accepted)
        SSL_set_accept_state(ssl);
    else
        SSL_set_connect_state(ssl);
    return session;
}

/* -------- the connecting end's handshake ------------------------------------------------------ */

/* With the lock. Continues a handshake, then sends what is queued. */
static void step(struct session *session)
{
    size_t sent;
    ERR_clear_error();
    int done = SSL_do_handshake(session->ssl);
    if (done == 1 && session->queued > 0)
        done = SSL_write_ex(session->ssl, session->queue, session->queued, &sent);
    int error = error_of(session, done);
    if (error == EAGAIN) {
        struct epoll_event event = {.events = SSL_want_write(session->ssl) ? EPOLLOUT : EPOLLIN,
                                    .data.fd = session->socket};
        epoll_ctl(secure.epoll, EPOLL_CTL_MOD, session->socket, &event);
        return;
    }
    if (error != 0) {
        session->error = error;
        shutdown(session->socket, SHUT_RDWR); /* wakes its reader */
    }
    leave_thread(session);
}

/* With the lock. Closes the closing sessions that are done, or late. */
static void close_done(int64_t now_ns)
{
    for (struct session **link = &secure.closing, *session; (session = *link);) {
        if (atomic_load(&session->joining) && !secure.ends && now_ns < session->until_ns) {
            link = &session->next;
            continue;
        }
        int socket = session->socket;
        *link = session->next;
        session_free(session);
        stream_close(&socket);
    }
}

static void *join_all(void *unused)
{
    enum { LOOK_MS = 1000 };
    (void)unused;
    for (bool ends = false; !ends;) {
        struct epoll_event events[EVENTS_AT_ONCE];
        int count = epoll_wait(secure.epoll, events, EVENTS_AT_ONCE, LOOK_MS);
        monitor_enter(&secure.lock);
        for (int i = 0; i < count; i++) {
            int socket = events[i].data.fd;
            struct session *session = socket == secure.wake ? NULL : session_of(socket);
            if (session && atomic_load(&session->joining))
                step(session);
        }
        close_done(clock_now_ns());
        ends = secure.ends;
        monitor_leave(&secure.lock);
    }
    return NULL;
}

int secure_begin(int socket, bool accepted)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = socket};
    if (!secure_is_on)
        return 0;
    if (socket >= secure.count)
        return EMFILE;
    struct session *session = session_new(socket, accepted);
    if (!session)
        return ENOMEM;
    int error = 0;
    ERR_clear_error();
    (void)error_of(session, SSL_do_handshake(session->ssl)); /* now: the lock may take long */
    monitor_enter(&secure.lock);
    CHECK(!session_of(socket));
    atomic_store_explicit(&secure.sessions[socket], session, memory_order_release);
    if (!accepted && epoll_ctl(secure.epoll, EPOLL_CTL_ADD, socket, &event) != 0) {
        error = errno;
        session_free(session);
    } else if (!accepted) {
        step(session);
    }
    monitor_leave(&secure.lock);
    return error;
}

bool secure_end(int socket)
{
    bool keeps = false;
    struct session *session = session_of(socket);
    if (!session)
        return false;
    monitor_enter(&secure.lock);
    if (atomic_load(&session->joining) && session->queued > 0) {
        session->until_ns = clock_now_ns() + LINGER_MS * NS_PER_MS;
        session->next = secure.closing;
        secure.closing = session;
        keeps = true;
    } else {
        session_free(session);
    }
    monitor_leave(&secure.lock);
    return keeps;
}

void secure_end_output(int socket)
{
    struct session *session = session_of(socket);
    bool later = false;
    if (session) {
        monitor_enter(&secure.lock);
        later = session->ends_output = atomic_load(&session->joining);
        monitor_leave(&secure.lock);
    }
    if (!later)
        shutdown(socket, SHUT_WR);
}

int secure_settle(int socket, int64_t deadline_ns)
{
    const struct session *session = session_of(socket);
    while (session && atomic_load(&session->joining)) {
        if (deadline_ns > 0 && clock_now_ns() >= deadline_ns)
            return ETIMEDOUT;
        clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
    }
    return session ? session->error : 0;
}

/* -------- sending ----------------------------------------------------------------------------- */

static size_t gather(const struct iovec *pieces, int count, size_t from, unsigned char *into,
                     size_t most)
{
    size_t have = 0;
    for (int i = 0; i < count && have < most; i++) {
        if (from >= pieces[i].iov_len) {
            from -= pieces[i].iov_len;
            continue;
        }
        size_t bytes = size_smaller(pieces[i].iov_len - from, most - have);
        memcpy(into + have, (const unsigned char *)pieces[i].iov_base + from, bytes);
        have += bytes;
        from = 0;
    }
    return have;
}

/* The bytes that the queue takes. 0: it is full. Below 0: the handshake is over. */
static ssize_t enqueue(struct session *session, const struct iovec *pieces, int count)
{
    ssize_t taken = -1;
    monitor_enter(&secure.lock);
    if (atomic_load(&session->joining)) {
        taken = (ssize_t)gather(pieces, count, 0, session->queue + session->queued,
                                SECURE_QUEUE_BYTES - session->queued);
        session->queued += (size_t)taken;
    }
    monitor_leave(&secure.lock);
    return taken;
}

/* Sends one record of what the pieces have after their first `from` bytes. Long pieces are not
 * copied. Returns 0 or an errno value. */
static int send_record(struct session *session, const struct iovec *pieces, int count, size_t from,
                       size_t *sent)
{
    unsigned char copy[RECORD_BYTES];
    const unsigned char *bytes = copy;
    size_t length;
    while (count > 0 && from >= pieces->iov_len) {
        from -= pieces->iov_len;
        pieces++;
        count--;
    }
    if (count == 0)
        return ENODATA;
    if (count == 1 || pieces->iov_len - from >= RECORD_BYTES) {
        bytes = (const unsigned char *)pieces->iov_base + from;
        length = size_smaller(pieces->iov_len - from, RECORD_BYTES);
    } else {
        length = gather(pieces, count, from, copy, sizeof copy);
    }
    if (!session->holds_output && session->records >= RECORDS_PER_KEY &&
        SSL_key_update(session->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
        session->records = 0;
    ERR_clear_error();
    int error = error_of(session, SSL_write_ex(session->ssl, bytes, length, sent));
    session->holds_output = error == EAGAIN;
    session->records++;
    return error;
}

ssize_t secure_send_session(int socket, struct iovec *pieces, int count)
{
    struct session *session = session_of(socket);
    if (!session)
        return clear_send(socket, pieces, count);
    if (atomic_load_explicit(&session->joining, memory_order_acquire)) {
        ssize_t taken = enqueue(session, pieces, count);
        errno = EAGAIN;
        if (taken >= 0)
            return taken == 0 ? -1 : taken;
    }
    size_t all = 0, sent;
    int error = session->error;
    while (error == 0) {
        error = send_record(session, pieces, count, all, &sent);
        all += error == 0 ? sent : 0;
    }
    if (all > 0 || error == ENODATA)
        return (ssize_t)all;
    errno = error;
    return -1;
}

/* -------- receiving --------------------------------------------------------------------------- */

ssize_t secure_receive_session(int socket, struct iovec *pieces, int count)
{
    struct session *session = session_of(socket);
    if (!session)
        return clear_receive(socket, pieces, count);
    int error = EAGAIN;
    size_t all = 0, at = 0;
    if (!atomic_load_explicit(&session->joining, memory_order_acquire))
        error = session->error;
    while (error == 0 && count > 0) {
        if (at == pieces->iov_len) {
            at = 0;
            pieces++;
            count--;
            continue;
        }
        size_t got = 0;
        ERR_clear_error();
        error = error_of(session, SSL_read_ex(session->ssl, (unsigned char *)pieces->iov_base + at,
                                              pieces->iov_len - at, &got));
        at += got;
        all += got;
    }
    bool more = error == 0 ? SSL_pending(session->ssl) > 0 : all > 0 && error != EAGAIN;
    atomic_store_explicit(&session->has_input, more, memory_order_relaxed);
    if (all > 0 || error == 0 || (error == ECONNRESET && session->ended))
        return (ssize_t)all;
    errno = error;
    return -1;
}

bool secure_has_input(int socket)
{
    const struct session *session = session_of(socket);
    return session && atomic_load_explicit(&session->has_input, memory_order_relaxed);
}

bool secure_has_heard(int socket)
{
    const struct session *session = session_of(socket);
    return session && session->heard;
}

bool secure_holds_output(int socket)
{
    const struct session *session = session_of(socket);
    return session && session->holds_output;
}

int secure_error(int socket)
{
    const struct session *session = session_of(socket);
    return session && !atomic_load(&session->joining) ? session->error : 0;
}

/* -------- opening and closing ----------------------------------------------------------------- */

const struct secure_curve *secure_curve(void)
{
    return secure_is_on ? &secure.curve : NULL;
}

static enum status open_sessions(void)
{
    enum status status;
    struct rlimit limit;
    bool bounded = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < DESCRIPTORS_MOST;
    secure.count = bounded ? (int)limit.rlim_max : DESCRIPTORS_MOST;
    secure.sessions = calloc((size_t)secure.count, sizeof *secure.sessions);
    secure.method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "psring");
    if (!secure.sessions || !secure.method)
        return FAIL(STATUS_NO_MEMORY, "--secure: no memory for %d connections", secure.count);
    BIO_meth_set_write(secure.method, bio_write);
    BIO_meth_set_read(secure.method, bio_read);
    BIO_meth_set_ctrl(secure.method, bio_control);
    struct epoll_event event = {.events = EPOLLIN};
    secure.epoll = epoll_create1(EPOLL_CLOEXEC);
    event.data.fd = secure.wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (secure.epoll < 0 || secure.wake < 0 ||
        epoll_ctl(secure.epoll, EPOLL_CTL_ADD, secure.wake, &event) != 0)
        return FAIL(status_from_errno(errno), "--secure: %s", strerror(errno));
    monitor_init(&secure.lock);
    secure_is_on = true;
    TRY(thread_start(&secure.thread, "psring-secure", join_all, NULL));
out:
    return status;
}

enum status secure_open(const char *folder)
{
    enum status status;
    int fd = -1;
    CHECK(!secure_is_on);
    TRY(open_private(folder, O_DIRECTORY, "700", &fd));
    TRY(read_curve(folder));
    TRY(read_tls(folder));
    TRY(open_sessions());
out:
    if (fd >= 0)
        close(fd);
    if (status != STATUS_OK)
        secure_close();
    return status;
}

void secure_close(void)
{
    if (secure_is_on) {
        monitor_enter(&secure.lock);
        secure.ends = true;
        monitor_leave(&secure.lock);
        eventfd_write(secure.wake, 1);
        thread_join(&secure.thread);
        monitor_fini(&secure.lock);
    }
    secure_is_on = false;
    if (secure.epoll >= 0)
        close(secure.epoll);
    if (secure.wake >= 0)
        close(secure.wake);
    free(secure.sessions);
    BIO_meth_free(secure.method);
    SSL_CTX_free(secure.context);
    X509_free(secure.certificate);
    OPENSSL_cleanse(&secure.curve, sizeof secure.curve);
    secure = (struct secure_state){.epoll = -1, .wake = -1};
}
