/* An MPI library that claims to read and write GPU memory (linked with --wrap). */
int __wrap_MPIX_Query_cuda_support(void);
int __wrap_MPIX_Query_cuda_support(void)
{
    return 1;
}
