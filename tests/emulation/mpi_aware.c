/* An MPI library that says that it reads and writes GPUs' memory (linked with --wrap). */
int __wrap_MPIX_Query_cuda_support(void);
int __wrap_MPIX_Query_cuda_support(void)
{
    return 1;
}
