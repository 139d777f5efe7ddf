/* What a command says at a signal that ends it. Handlers: they write a line, and then do what the
 * signal does without a handler. */
#ifndef PSRING_EXPERIMENTS_INTERRUPT_H
#define PSRING_EXPERIMENTS_INTERRUPT_H

void interrupt_train(int number);
void interrupt_bench(int number);
void interrupt_serve(int number);

#endif
