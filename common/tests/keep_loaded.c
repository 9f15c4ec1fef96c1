/* For LeakSanitizer only: keeps Open MPI's plugins loaded, because the suppressions of leaks.supp
 * match their names. */
int dlclose(void *handle);

int dlclose(void *handle)
{
    return 0;
}
