/* `psring report DIR`: one page of what a run has left in a folder. */
#ifndef PSRING_EXPERIMENTS_REPORT_COMMAND_H
#define PSRING_EXPERIMENTS_REPORT_COMMAND_H

#include "common/base/status.h"

/* argv[0] is the command's name. Errors: logged; STATUS_USAGE among them. */
enum status report_command(int argc, char **argv);

#endif
