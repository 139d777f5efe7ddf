/* In which order the contributions to an element are added: floating point is not associative. */
#ifndef PSRING_COMMON_COMM_REDUCE_ORDER_H
#define PSRING_COMMON_COMM_REDUCE_ORDER_H

enum reduce_order {
    REDUCE_ORDER_ANY,  /* whatever is fastest for the backend */
    REDUCE_ORDER_RING, /* chunk c starts at rank c, then c+1, ...: as the ring adds */
};

#endif
