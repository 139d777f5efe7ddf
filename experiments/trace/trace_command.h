/* `psring trace FILE`: where the time of a run went, by rank, and the critical path of a step. */
#ifndef PSRING_EXPERIMENTS_TRACE_COMMAND_H
#define PSRING_EXPERIMENTS_TRACE_COMMAND_H

#include "common/base/status.h"

/* argv[0] is the command's name. Errors: logged; STATUS_USAGE among them. */
enum status trace_command(int argc, char **argv);

#endif
