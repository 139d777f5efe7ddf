#include "ring/vendor/library.h"

const char *const library_algorithm_names[] = {
    [LIBRARY_DEFAULT] = "default",     [LIBRARY_RING] = "ring",
    [LIBRARY_SEGMENTED] = "segmented", [LIBRARY_RABENSEIFNER] = "rabenseifner",
    [LIBRARY_RABENSEIFNER + 1] = NULL,
};
