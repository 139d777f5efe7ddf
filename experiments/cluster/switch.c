/*
 * psring_switch: the switch of a virtual cluster with distance (vcluster.sh up --latency). It
 * forwards Ethernet frames between TAP devices. It holds each frame for the time on its way, and
 * drops some of them at random.
 *
 *     host0 -- tap0 --+
 *     host1 -- tap1 --+-- psring_switch -- tapcore -- the namespace of the switch
 *     ...             |
 *
 * All hosts are equally far from the switch: a frame takes a quarter of the round trip on a host's
 * cable. From host to host it takes half of the round trip, and from a host to the switch a
 * quarter. Token buckets limit the rates, in the kernel before and behind this program (hosts.sh).
 * The bucket before it lets a burst pass at once if the cable was idle. A real cable does not:
 * therefore this program takes the time that a frame needs at the rate of its cable, and begins
 * when the frame before it has passed (--rates).
 *
 * A frame is copied once into this process and once out of it. In between it lies in the store, a
 * ring of STORE_BYTES that holds frames of all ports in the order of their arrival. Each port has a
 * sorted list of its frames for each of the two distances. One timer is set to the earliest head.
 * TCP's trains of packets pass whole (at most 64 KB), as through a network card that cuts them.
 * With losses, the kernel cuts them first: each packet is lost or not.
 *
 * A full store drops what arrives, and switch.log reports it. The store needs space for what all
 * hosts together send in half of a round trip: 64 MB are 1 Gbit/s for 0.5 s. The random numbers of
 * a port depend on the seed and on the number of its frame, not on other ports.
 *
 * The caller continues when all devices exist: its child forwards, and the caller prints the
 * child's number. The devices end with the child. The child ends on SIGTERM, or if a device is
 * removed, and within a second after the folder of the cluster has gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <math.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/options.h"
#include "common/base/rng.h"

enum {
    HOSTS_MOST = 200, /* vcluster.sh has it as MAX_HOSTS */
    PORTS_MOST = HOSTS_MOST + 1,
    STORE_BYTES = 64 << 20,
    FRAME_MOST = sizeof(struct virtio_net_hdr) + 18 + 65536, /* with a VLAN's tag */
    ADDRESS_BYTES = 6,
    ADDRESSES = 1024,    /* slots for known addresses; a power of two */
    BATCH = 64,          /* frames that a port may send before the next port's turn */
    LOOK_MS = 1000,      /* time between two looks at the folder */
    PACKET_HEADERS = 66, /* of each packet of a train: Ethernet, IP, TCP with time stamps */
    AHEAD_BYTES = 65536, /* that a port may be ahead of its cable's rate; a bucket is smaller, */
    AHEAD_NS = 500000,   /* or, at high rates, shorter */
};

/* Between a host and the switch, and between hosts. */
enum distance { NEAR, FAR, DISTANCES };

enum { ALL_PORTS = -1 };

struct frame {
    int64_t passed_ns;             /* when it has passed its cable, without the distance */
    struct frame *next[DISTANCES]; /* in the list of each distance */
    uint32_t record_bytes;         /* in the store, with this struct */
    uint32_t bytes;                /* after this struct, with the kernel's virtio_net_hdr */
    int from, to;                  /* ports; `to` may be ALL_PORTS */
    int lists;                     /* that hold it; 0: its record is free */
};

enum { RECORD_ALIGNMENT = 64, RECORD_MOST = (sizeof(struct frame) + FRAME_MOST + 63) / 64 * 64 };

/* Records lie between tail and head, or from tail to the end and from 0 to head. */
struct frame_store {
    unsigned char *bytes;
    size_t head, tail, records;
};

struct frame_list {
    struct frame *first, *last;
};

/* The cable of a port. */
struct cable {
    double ns_per_byte;                 /* 0: no limit */
    int64_t free_ns;                    /* when its last frame has passed */
    struct frame_list lists[DISTANCES]; /* frames on their way from it */
    struct rng_key key;
    uint64_t arrived; /* frames */
};

struct known_address {
    uint64_t address; /* 0: free */
    int port;
};

struct cable_options {
    int64_t hosts, seed;
    double latency_ms, loss_percent;
    const char *rates, *folder;
};

struct network_switch {
    int ports, core; /* the core is the last port */
    int taps[PORTS_MOST];
    int poll, timer;
    int64_t timer_ns; /* 0: not set */
    struct frame_store store;
    int64_t delay_ns[DISTANCES];
    struct cable cables[PORTS_MOST];
    struct known_address known[ADDRESSES];
    int known_count;
    float loss;
    uint64_t overflowed;
};

/* -------- the store --------------------------------------------------------------------------- */

static enum status store_init(struct frame_store *store)
{
    void *bytes = mmap(NULL, STORE_BYTES, PROT_READ | PROT_WRITE,
                       /* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return FAIL(STATUS_NO_MEMORY, "no memory for %d bytes of frames", STORE_BYTES);
    *store = (struct frame_store){.bytes = bytes};
    return STATUS_OK;
}

/* The place of the next record, with space for the longest frame. NULL: the store is full. */
static struct frame *store_reserve(struct frame_store *store)
{
    if (store->records > 0 && store->head <= store->tail)
        return store->tail - store->head >= RECORD_MOST ? (void *)(store->bytes + store->head)
                                                        : NULL;
    if (STORE_BYTES - store->head >= RECORD_MOST)
        return (void *)(store->bytes + store->head);
    if (store->tail < RECORD_MOST)
        return NULL;
    if (store->head < STORE_BYTES) { /* an empty record fills the end */
        struct frame *end = (void *)(store->bytes + store->head);
        *end = (struct frame){.record_bytes = (uint32_t)(STORE_BYTES - store->head)};
        store->records++;
    }
    store->head = 0;
    return (void *)store->bytes;
}

/* Keeps the reserved record. */
static void store_keep(struct frame_store *store, struct frame *frame)
{
    size_t bytes = sizeof *frame + frame->bytes;
    frame->record_bytes =
        (uint32_t)((bytes + RECORD_ALIGNMENT - 1) / RECORD_ALIGNMENT * RECORD_ALIGNMENT);
    store->head += frame->record_bytes;
    store->records++;
}

/* Frees the oldest records, as far as no list holds them. */
static void store_free(struct frame_store *store)
{
    while (store->records > 0) {
        const struct frame *frame = (void *)(store->bytes + store->tail);
        if (frame->lists > 0)
            return;
        store->tail += frame->record_bytes;
        if (store->tail == STORE_BYTES)
            store->tail = 0;
        store->records--;
    }
    store->head = store->tail = 0; /* reuses memory that is in the caches */
}

/* -------- addresses --------------------------------------------------------------------------- */

static uint64_t address_at(const unsigned char *bytes)
{
    uint64_t address = 0;
    for (int i = 0; i < ADDRESS_BYTES; i++)
        address = address << 8 | bytes[i];
    return address;
}

/* The slot of the address, or the free slot where it belongs. */
static struct known_address *slot_of(struct network_switch *sw, uint64_t address)
{
    uint64_t slot = rng_mix64(address) % ADDRESSES;
    while (sw->known[slot].address != 0 && sw->known[slot].address != address)
        slot = (slot + 1) % ADDRESSES;
    return &sw->known[slot];
}

static void learn(struct network_switch *sw, uint64_t address, int port)
{
    struct known_address *slot = slot_of(sw, address);
    if (slot->address == 0 && sw->known_count >= ADDRESSES / 2) {
        memset(sw->known, 0, sizeof sw->known);
        sw->known_count = 0;
        slot = slot_of(sw, address);
    }
    sw->known_count += slot->address == 0;
    *slot = (struct known_address){address, port};
}

/* The port of the address; ALL_PORTS if it is unknown, or an address of a group. */
static int port_of(struct network_switch *sw, uint64_t address)
{
    if (address >> 40 & 1)
        return ALL_PORTS;
    const struct known_address *slot = slot_of(sw, address);
    return slot->address != 0 ? slot->port : ALL_PORTS;
}

/* -------- forwarding -------------------------------------------------------------------------- */

static void list_add(struct network_switch *sw, enum distance distance, struct frame *frame)
{
    struct frame_list *list = &sw->cables[frame->from].lists[distance];
    frame->next[distance] = NULL;
    frame->lists++;
    if (list->first)
        list->last->next[distance] = frame;
    else
        list->first = frame;
    list->last = frame;
}

/* Puts a frame on the lists of the distances to its destinations. */
static void hold(struct network_switch *sw, struct frame *frame)
{
    bool hosts_only = frame->from != sw->core && frame->to >= 0 && frame->to != sw->core;
    if (!hosts_only)
        list_add(sw, NEAR, frame);
    if (hosts_only || (frame->to == ALL_PORTS && frame->from != sw->core))
        list_add(sw, FAR, frame);
}

/* A full queue in the kernel drops the frame, as a switch does. */
static void send_to(const struct network_switch *sw, const struct frame *frame, int port)
{
    ssize_t ignored = write(sw->taps[port], frame + 1, frame->bytes);
    (void)ignored;
}

static void deliver(const struct network_switch *sw, const struct frame *frame,
                    enum distance distance)
{
    if (frame->to != ALL_PORTS) {
        send_to(sw, frame, frame->to);
    } else if (distance == NEAR && frame->from != sw->core) {
        send_to(sw, frame, sw->core);
    } else {
        for (int port = 0; port < sw->core; port++) {
            if (port != frame->from)
                send_to(sw, frame, port);
        }
    }
}

/* Delivers every frame of a list whose time has come. */
static void deliver_list(struct network_switch *sw, struct frame_list *list, enum distance distance,
                         int64_t now_ns)
{
    while (list->first && list->first->passed_ns + sw->delay_ns[distance] <= now_ns) {
        struct frame *frame = list->first;
        list->first = frame->next[distance];
        deliver(sw, frame, distance);
        frame->lists--;
    }
}

static void deliver_due(struct network_switch *sw)
{
    int64_t now_ns = clock_now_ns();
    for (int port = 0; port < sw->ports; port++) {
        for (enum distance distance = NEAR; distance < DISTANCES; distance++)
            deliver_list(sw, &sw->cables[port].lists[distance], distance, now_ns);
    }
    store_free(&sw->store);
}

/* Sets the timer to the earliest frame. */
static enum status set_timer(struct network_switch *sw)
{
    int64_t next_ns = 0;
    for (int port = 0; port < sw->ports; port++) {
        for (enum distance distance = NEAR; distance < DISTANCES; distance++) {
            const struct frame *first = sw->cables[port].lists[distance].first;
            int64_t due_ns = first ? first->passed_ns + sw->delay_ns[distance] : 0;
            if (due_ns > 0 && (next_ns == 0 || due_ns < next_ns))
                next_ns = due_ns;
        }
    }
    if (next_ns == sw->timer_ns)
        return STATUS_OK;
    struct itimerspec when = {.it_value = {next_ns / NS_PER_S, next_ns % NS_PER_S}};
    if (timerfd_settime(sw->timer, TFD_TIMER_ABSTIME, &when, NULL) != 0)
        return FAIL(status_from_errno(errno), "cannot set a timer: %s", strerror(errno));
    sw->timer_ns = next_ns;
    return STATUS_OK;
}

/* -------- arrivals ---------------------------------------------------------------------------- */

static bool is_lost(struct network_switch *sw, struct cable *cable)
{
    uint64_t number = cable->arrived++;
    return sw->loss > 0 && rng_uniform(rng_block(cable->key, number, 0).word[0]) < sw->loss;
}

/* Bytes of a frame on its cable, with the headers of each packet of a train. */
static double cable_bytes(const struct virtio_net_hdr *train, size_t bytes)
{
    size_t packets = 1;
    if (train->gso_type != VIRTIO_NET_HDR_GSO_NONE && train->gso_size > 0 && bytes > PACKET_HEADERS)
        packets = (bytes - PACKET_HEADERS + train->gso_size - 1) / train->gso_size;
    return (double)(bytes + (packets - 1) * PACKET_HEADERS);
}

/* When these bytes, which arrive now, have passed the cable. They wait for the bytes before them,
 * but no longer than a bucket can be ahead: otherwise a difference of the two rates would add up.
 */
static int64_t pass(struct cable *cable, double bytes)
{
    int64_t now_ns = clock_now_ns();
    int64_t ahead_ns = (int64_t)(AHEAD_BYTES * cable->ns_per_byte);
    int64_t latest_ns = now_ns + (ahead_ns > AHEAD_NS ? ahead_ns : AHEAD_NS);
    int64_t begin_ns = cable->free_ns > now_ns ? cable->free_ns : now_ns;
    int64_t end_ns = begin_ns + (int64_t)(bytes * cable->ns_per_byte);
    int64_t sorted_ns = cable->free_ns > latest_ns ? cable->free_ns : latest_ns;
    cable->free_ns = end_ns < sorted_ns ? end_ns : sorted_ns;
    return cable->free_ns;
}

static void report_overflow(struct network_switch *sw)
{
    sw->overflowed++;
    if ((sw->overflowed & (sw->overflowed - 1)) == 0) /* 1, 2, 4, 8, ... */
        log_warn("dropped %llu of the frames: found %d MB on their way, expected less; lower the "
                 "rate or the latency",
                 (unsigned long long)sw->overflowed, STORE_BYTES >> 20);
}

/* Reads one frame. Sets *more to false if the port has none. */
static enum status receive(struct network_switch *sw, int port, bool *more)
{
    struct frame *frame = store_reserve(&sw->store), dropped;
    unsigned char *bytes = frame ? (unsigned char *)(frame + 1) : (unsigned char *)&dropped;
    /* The kernel cuts a frame to the size of `dropped`. */
    ssize_t got = read(sw->taps[port], bytes, frame ? FRAME_MOST : sizeof dropped);
    *more = got > 0;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return STATUS_OK;
    if (got < 0)
        return FAIL(STATUS_IO, "the device of port %d is gone: %s", port, strerror(errno));
    bool lost = got > 0 && is_lost(sw, &sw->cables[port]); /* counts a frame without room, too */
    if (!frame) {
        report_overflow(sw);
        return STATUS_OK;
    }
    const unsigned char *ethernet = bytes + sizeof(struct virtio_net_hdr);
    if (lost || (size_t)got < sizeof(struct virtio_net_hdr) + 2 * (size_t)ADDRESS_BYTES)
        return STATUS_OK;
    learn(sw, address_at(ethernet + ADDRESS_BYTES), port);
    int to = port_of(sw, address_at(ethernet));
    if (to == port)
        return STATUS_OK;
    /* Read the clock after the frame has arrived, so that no frame is too early. */
    double passing = cable_bytes((const struct virtio_net_hdr *)bytes,
                                 (size_t)got - sizeof(struct virtio_net_hdr));
    *frame = (struct frame){.passed_ns = pass(&sw->cables[port], passing),
                            .bytes = (uint32_t)got,
                            .from = port,
                            .to = to};
    store_keep(&sw->store, frame);
    hold(sw, frame);
    return STATUS_OK;
}

static enum status receive_batch(struct network_switch *sw, int port)
{
    enum status status = STATUS_OK;
    bool more = true;
    for (int i = 0; i < BATCH && more; i++)
        TRY(receive(sw, port, &more));
out:
    return status;
}

/* Forwards until the folder or a device is gone. */
static enum status forward(struct network_switch *sw, const char *folder)
{
    enum status status = STATUS_OK;
    int64_t look_ns = clock_now_ns();
    struct epoll_event events[BATCH];
    for (;;) {
        int count = epoll_wait(sw->poll, events, BATCH, LOOK_MS);
        if (count < 0 && errno != EINTR)
            return FAIL(status_from_errno(errno), "cannot wait for frames: %s", strerror(errno));
        for (int i = 0; i < count; i++) {
            int port = (int)events[i].data.u32;
            if (port < sw->ports) /* else the timer, which set_timer sets again */
                TRY(receive_batch(sw, port));
            deliver_due(sw);
        }
        TRY(set_timer(sw));
        int64_t now_ns = clock_now_ns();
        if (now_ns - look_ns < LOOK_MS * NS_PER_MS)
            continue;
        if (access(folder, F_OK) != 0)
            return STATUS_OK;
        look_ns = now_ns;
    }
out:
    return status;
}

/* -------- set-up ------------------------------------------------------------------------------ */

static enum status watch(struct network_switch *sw, int descriptor, int port)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)port};
    if (epoll_ctl(sw->poll, EPOLL_CTL_ADD, descriptor, &event) != 0)
        return FAIL(status_from_errno(errno), "cannot watch port %d: %s", port, strerror(errno));
    return STATUS_OK;
}

/* Creates the device of a port. It is removed when this process has ended. */
static enum status open_tap(struct network_switch *sw, int port)
{
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tap < 0)
        return FAIL(STATUS_UNSUPPORTED,
                    "/dev/net/tun: %s; a latency needs it. Load the module tun, and let this user "
                    "read and write the file (sudo chmod 666 /dev/net/tun)",
                    strerror(errno));
    sw->taps[port] = tap;
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    if (port == sw->core)
        snprintf(request.ifr_name, sizeof request.ifr_name, "tapcore");
    else
        snprintf(request.ifr_name, sizeof request.ifr_name, "tap%d", port);
    if (ioctl(tap, TUNSETIFF, &request) != 0)
        return FAIL(STATUS_IO, "cannot create the device %s: %s", request.ifr_name,
                    strerror(errno));
    unsigned long accepted = TUN_F_CSUM | (sw->loss > 0 ? 0 : TUN_F_TSO4);
    if (ioctl(tap, TUNSETOFFLOAD, accepted) != 0)
        return FAIL(STATUS_IO, "cannot set the offloads of the device %s: %s", request.ifr_name,
                    strerror(errno));
    return watch(sw, tap, port);
}

/* Reads "200000000,..." bits per second, one number for each host; the last counts for the rest. */
static enum status read_rates(struct network_switch *sw, const char *rates)
{
    double bits = 0;
    for (int host = 0; host < sw->core; host++) {
        char *end = NULL;
        if (rates && *rates) {
            bits = strtod(rates, &end);
            if (end == rates || (*end && *end != ',') || !(bits >= 0) || isinf(bits))
                return FAIL(STATUS_USAGE,
                            "--rates '%s': expected bits per second, separated by commas", rates);
            rates = *end ? end + 1 : end;
        }
        sw->cables[host].ns_per_byte = bits > 0 ? 8e9 / bits : 0;
    }
    return STATUS_OK;
}

static enum status switch_init(struct network_switch *sw, const struct cable_options *options)
{
    enum status status = STATUS_OK;
    sw->core = (int)options->hosts;
    sw->ports = sw->core + 1;
    sw->delay_ns[NEAR] = (int64_t)(options->latency_ms * 1e6 / 4 + 0.5);
    sw->delay_ns[FAR] = 2 * sw->delay_ns[NEAR];
    sw->loss = (float)(options->loss_percent / 100);
    sw->poll = epoll_create1(EPOLL_CLOEXEC);
    sw->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (sw->poll < 0 || sw->timer < 0)
        return FAIL(status_from_errno(errno), "cannot create a timer: %s", strerror(errno));
    TRY(read_rates(sw, options->rates));
    TRY(store_init(&sw->store));
    TRY(watch(sw, sw->timer, sw->ports));
    for (int port = 0; port < sw->ports; port++) {
        sw->cables[port].key = rng_key((uint64_t)options->seed, RNG_LOSS, (uint64_t)port);
        TRY(open_tap(sw, port));
    }
out:
    return status;
}

/* In the child: lets go of what belongs to the caller. Messages go to FOLDER/switch.log. */
static enum status leave_caller(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/switch.log", folder);
    int log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (log < 0 || nothing < 0)
        return FAIL(STATUS_IO, "cannot write '%s': %s", path, strerror(errno));
    if (setsid() < 0 || chdir("/") != 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(nothing, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
        return FAIL(STATUS_IO, "cannot leave the caller's session: %s", strerror(errno));
    close(log);
    close(nothing);
    return STATUS_OK;
}

/* In the caller: prints the child's number, once the child has left it. */
static enum status report_child(pid_t child, int ready)
{
    char byte;
    ssize_t got;
    do
        got = read(ready, &byte, 1);
    while (got < 0 && errno == EINTR);
    if (got != 1)
        return STATUS_IO; /* the child has logged the reason */
    printf("%d\n", (int)child);
    return fflush(stdout) == 0 ? STATUS_OK : STATUS_IO;
}

static enum status run_in_child(struct network_switch *sw, const char *folder)
{
    enum status status = STATUS_OK;
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0)
        return FAIL(status_from_errno(errno), "cannot open a pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        return FAIL(status_from_errno(errno), "cannot start a process: %s", strerror(errno));
    if (child > 0) {
        close(ready[1]);
        return report_child(child, ready[0]);
    }
    TRY(leave_caller(folder));
    if (write(ready[1], "", 1) != 1)
        return STATUS_IO;
    close(ready[0]);
    close(ready[1]);
    TRY(forward(sw, folder));
out:
    return status;
}

static const struct option_spec specs[] = {
    {.name = "hosts",
     .type = OPTION_INT,
     .offset = offsetof(struct cable_options, hosts),
     .initial = "2",
     .min = 1,
     .max = HOSTS_MOST,
     .help = "Create this many devices for hosts: tap0, tap1, ..., and tapcore."},
    {.name = "latency",
     .type = OPTION_DOUBLE,
     .offset = offsetof(struct cable_options, latency_ms),
     .initial = "1",
     .min = 0.01,
     .max = 1000,
     .metavar = "MS",
     .help = "Round trip between two hosts in milliseconds."},
    {.name = "rates",
     .type = OPTION_STRING,
     .offset = offsetof(struct cable_options, rates),
     .metavar = "BITS,...",
     .help = "Bits per second of each host's cable; the last counts for the rest; 0: no limit."},
    {.name = "loss",
     .type = OPTION_DOUBLE,
     .offset = offsetof(struct cable_options, loss_percent),
     .initial = "0",
     .max = 10,
     .metavar = "PERCENT",
     .help = "Share of the frames to drop, at random."},
    {.name = "seed",
     .type = OPTION_INT,
     .offset = offsetof(struct cable_options, seed),
     .initial = "1",
     .max = 1e9,
     .help = "Seed of the random numbers."},
    {.name = "folder",
     .type = OPTION_STRING,
     .offset = offsetof(struct cable_options, folder),
     .metavar = "DIR",
     .help = "End when DIR is removed. Write DIR/switch.log."},
    {0}};

int main(int argc, char **argv)
{
    static struct network_switch sw;
    enum status status = STATUS_OK;
    struct cable_options options = {0};
    bool helped = false;
    const struct options command = {
        .command = "psring_switch",
        .summary = "Forwards frames between new TAP devices, and holds each for its distance.",
        .specs = specs};
    log_set_name("switch");
    /* Descriptors of the caller, such as a lock or a pipe, would stay open as long as the cluster.
     */
    for (int descriptor = 3; descriptor < 1024; descriptor++)
        close(descriptor);
    TRY(options_parse(&command, argc, argv, &options, &helped));
    if (helped)
        return 0;
    if (!options.folder) {
        status = FAIL(STATUS_USAGE, "--folder is missing; expected the folder of the cluster");
        goto out;
    }
    TRY(switch_init(&sw, &options));
    TRY(run_in_child(&sw, options.folder));
out:
    return status == STATUS_OK ? 0 : status == STATUS_USAGE ? 2 : 1;
}
