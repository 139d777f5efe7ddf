/* `psring compare BEFORE AFTER`: two runs side by side, as a table and as a page. */
#ifndef PSRING_EXPERIMENTS_REPORT_COMPARE_COMMAND_H
#define PSRING_EXPERIMENTS_REPORT_COMPARE_COMMAND_H

#include "common/base/status.h"

/* argv[0] is the command's name. Errors: logged; STATUS_USAGE among them. */
enum status compare_command(int argc, char **argv);

#endif
