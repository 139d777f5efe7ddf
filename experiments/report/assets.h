/* The files of plots/report, as the build has put them into the program (common/cmake/embed.cmake).
 */
#ifndef PSRING_EXPERIMENTS_REPORT_ASSETS_H
#define PSRING_EXPERIMENTS_REPORT_ASSETS_H

struct report_asset {
    const char *name;          /* "charts.js"; NULL ends them */
    const unsigned char *text; /* ended by a 0 */
};

extern const struct report_asset report_assets[];

#endif
