#include "tests/emulation/streams.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "tests/emulation/faults.h"

/* Guards everything below except `running`. */
static std::mutex lock;
static std::condition_variable moved; /* a stream has made progress */
static std::mutex running;            /* one thread at a time: the run-time is not thread-safe */
static auto &streams = *new std::map<cudaStream_t, std::shared_ptr<stream>>;

int streams_late(void)
{
    static const char *const text = getenv("EMULATED_LATE");
    return text ? atoi(text) : 0;
}

std::shared_ptr<stream> streams_new(cudaStream_t *handle)
{
    auto made = std::make_shared<stream>();
    std::lock_guard<std::mutex> guard(lock);
    *handle = (cudaStream_t)made.get();
    streams[*handle] = made;
    return made;
}

static std::shared_ptr<stream> find(cudaStream_t handle)
{
    auto found = streams.find(handle);
    if (found == streams.end())
        abort(); /* not a stream, or a destroyed one */
    return found->second;
}

std::shared_ptr<stream> streams_find(cudaStream_t handle)
{
    std::lock_guard<std::mutex> guard(lock);
    return find(handle);
}

void streams_free(cudaStream_t handle)
{
    if (streams_late() > 0)
        streams_reach(streams_here(handle));
    std::lock_guard<std::mutex> guard(lock);
    streams.erase(handle);
}

/* -------- items ------------------------------------------------------------------------------- */

void streams_run(const std::function<void()> &work)
{
    std::lock_guard<std::mutex> guard(running);
    work();
}

static void wait_given(const std::shared_ptr<stream> &of, uint64_t given)
{
    std::unique_lock<std::mutex> guard(lock);
    moved.wait(guard, [&] { return of->done >= given; });
}

/* Does the stream's items, and the work before them, until `items` of them are finished. */
static void finish(const std::shared_ptr<stream> &of, uint64_t items)
{
    std::unique_lock<std::mutex> guard(lock);
    while (of->finished < items) {
        if (of->busy) {
            moved.wait(guard);
            continue;
        }
        struct item item = of->items.front();
        of->items.pop_front();
        of->busy = true;
        guard.unlock();
        wait_given(of, item.given);
        streams_reach(item.behind);
        if (item.work)
            streams_run(item.work);
        guard.lock();
        of->busy = false;
        of->finished++;
        moved.notify_all();
    }
}

static void put_off(cudaStream_t handle, std::function<void()> work, const struct place &behind)
{
    std::lock_guard<std::mutex> guard(lock);
    auto of = find(handle);
    of->items.push_back({work, behind, of->given});
    of->asked++;
}

void streams_ask(cudaStream_t handle, std::function<void()> work)
{
    if (streams_late() > 0)
        put_off(handle, work, {});
    else
        streams_run(work);
}

void streams_follow(cudaStream_t handle, const struct place &place)
{
    if (streams_late() > 0)
        put_off(handle, nullptr, place);
    else
        streams_reach(place); /* items are done within the call, so the caller waits */
}

/* -------- places ------------------------------------------------------------------------------ */

struct place streams_here(cudaStream_t handle)
{
    std::lock_guard<std::mutex> guard(lock);
    auto of = find(handle);
    return {of, of->asked, of->given};
}

/* The number of items before the place, including those before the other thread's work. */
static uint64_t items_of(const struct place &place)
{
    std::lock_guard<std::mutex> guard(lock);
    return std::max(place.items, place.given > 0 ? place.of->items_before[place.given - 1] : 0);
}

void streams_reach(const struct place &place)
{
    if (!place.of)
        return;
    finish(place.of, items_of(place));
    wait_given(place.of, place.given);
}

/* An item waits for the other thread's work before it. Other items can be done here. */
bool streams_try(const struct place &place)
{
    if (!place.of)
        return true;
    {
        std::lock_guard<std::mutex> guard(lock);
        if (place.of->done < place.given && place.of->finished < place.items)
            return false;
    }
    if (streams_late() > 0)
        finish(place.of, items_of(place));
    std::lock_guard<std::mutex> guard(lock);
    return place.of->done >= place.given;
}

void streams_reach_all(void)
{
    std::vector<struct place> all;
    {
        std::lock_guard<std::mutex> guard(lock);
        for (const auto &each : streams)
            all.push_back({each.second, each.second->asked, each.second->given});
    }
    for (const struct place &each : all)
        streams_reach(each);
}

/* -------- work of another thread -------------------------------------------------------------- */

extern "C" {

uint64_t emulation_stream_give(cudaStream_t handle)
{
    std::lock_guard<std::mutex> guard(lock);
    auto of = find(handle);
    of->items_before.push_back(of->asked);
    return ++of->given;
}

void emulation_stream_begin(cudaStream_t handle, uint64_t work)
{
    std::shared_ptr<stream> of;
    uint64_t items = 0;
    {
        std::lock_guard<std::mutex> guard(lock);
        auto found = streams.find(handle);
        if (found == streams.end()) /* after an abort */
            return;
        of = found->second;
        items = of->items_before[work - 1];
    }
    finish(of, items);
}

void emulation_stream_done(cudaStream_t handle, uint64_t work)
{
    std::lock_guard<std::mutex> guard(lock);
    auto found = streams.find(handle);
    if (found != streams.end() && found->second->done < work)
        found->second->done = work;
    moved.notify_all();
}

} /* extern "C" */
