#include "experiments/interrupt/interrupt.h"

#include <signal.h>
#include <unistd.h>

/* Ctrl-C (mpirun passes it on as another signal, and prints nothing any more): says what is left,
 * then ends as without a handler. */
static void say_and_end(int number, const char *text, size_t length)
{
    ssize_t written = write(STDERR_FILENO, text, length);
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

void interrupt_train(int number)
{
    static const char text[] =
        "\npsring: interrupted; rows written so far are whole, and a run that was started with "
        "--checkpoint DIR goes on with --resume\n";
    say_and_end(number, text, sizeof text - 1);
}

void interrupt_bench(int number)
{
    static const char text[] = "\npsring: interrupted; rows written so far are whole\n";
    say_and_end(number, text, sizeof text - 1);
}

void interrupt_serve(int number)
{
    static const char text[] =
        "\npsring: told to end: a job that this server has ends with it, and its workers say so\n";
    say_and_end(number, text, sizeof text - 1);
}
