/* Under LeakSanitizer only: Open MPI's parts stay loaded, so that the suppressions of leaks.supp find their
 * names. */
int dlclose(void *handle);

int dlclose(void *handle)
{
    return 0;
}
