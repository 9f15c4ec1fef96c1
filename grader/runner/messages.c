/* Messages between two ranks, recorded and charged with what they send, and the requests of whatever was
 * started. */
#include "grader/runner/record.h"

#define POINT(name, count, type, peer, share, call)                                                          \
    comm = substituted(comm);                                                                                \
    enter(name, comm, false, count, type, peer);                                                             \
    charge(false, (peer) == MPI_PROC_NULL ? 0 : (share), type);                                              \
    return leave(call)

int MPI_Send(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    POINT("send", count, type, to, count,
          PMPI_Ssend(x, count, type, to, tag, comm)); /* as large messages would */
}

int MPI_Ssend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    POINT("send", count, type, to, count, PMPI_Ssend(x, count, type, to, tag, comm));
}

int MPI_Issend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    request_started();
    POINT("start of a send", count, type, to, count, PMPI_Issend(x, count, type, to, tag, comm, request));
}

int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    POINT("probe", 0, MPI_DATATYPE_NULL, from, 0, PMPI_Probe(from, tag, comm, status));
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    return PMPI_Iprobe(from, tag, substituted(comm), flag, status);
}

int MPI_Recv(void *x, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    POINT("receive", count, type, from, 0, PMPI_Recv(x, count, type, from, tag, comm, status));
}

int MPI_Sendrecv(const void *x, int count, MPI_Datatype type, int to, int tag, void *y, int y_count,
                 MPI_Datatype y_type, int from, int y_tag, MPI_Comm comm, MPI_Status *status)
{
    POINT("send and receive", count, type, to, count,
          PMPI_Sendrecv(x, count, type, to, tag, y, y_count, y_type, from, y_tag, comm, status));
}

int MPI_Sendrecv_replace(void *x, int count, MPI_Datatype type, int to, int tag, int from, int y_tag,
                         MPI_Comm comm, MPI_Status *status)
{
    POINT("send and receive", count, type, to, count,
          PMPI_Sendrecv_replace(x, count, type, to, tag, from, y_tag, comm, status));
}

int MPI_Isend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    request_started();
    POINT("start of a send", count, type, to, count, PMPI_Isend(x, count, type, to, tag, comm, request));
}

int MPI_Irecv(void *x, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    request_started();
    POINT("start of a receive", count, type, from, 0, PMPI_Irecv(x, count, type, from, tag, comm, request));
}

/* ---- requests: those that are over are MPI_REQUEST_NULL afterwards */

static int64_t open_ones(int count, const MPI_Request requests[])
{
    int64_t open = 0;
    for (int i = 0; i < count; i++)
        open += requests[i] != MPI_REQUEST_NULL;
    return open;
}

#define WAIT(count, requests, call)                                                                          \
    int64_t before = open_ones(count, requests);                                                             \
    enter("wait", MPI_COMM_NULL, false, count, MPI_DATATYPE_NULL, -1);                                       \
    int result = leave(call);                                                                                \
    requests_ended(before - open_ones(count, requests));                                                     \
    return result

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    WAIT(1, request, PMPI_Wait(request, status));
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    WAIT(count, requests, PMPI_Waitall(count, requests, statuses));
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    WAIT(count, requests, PMPI_Waitany(count, requests, index, status));
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    WAIT(count, requests, PMPI_Waitsome(count, requests, done, indices, statuses));
}

#define TEST(count, requests, call)                                                                          \
    int64_t before = open_ones(count, requests);                                                             \
    int result = call;                                                                                       \
    requests_ended(before - open_ones(count, requests));                                                     \
    return result

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    TEST(1, request, PMPI_Test(request, flag, status));
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    TEST(count, requests, PMPI_Testall(count, requests, flag, statuses));
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    TEST(count, requests, PMPI_Testany(count, requests, index, flag, status));
}

int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    TEST(count, requests, PMPI_Testsome(count, requests, done, indices, statuses));
}
