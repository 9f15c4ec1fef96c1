/** @file
 * The gradient of an embedding table, of which a step touches few rows: those that any replica has touched are brought to the
 * front, so that they alone are summed over the replicas. The sum is the same: all others are zeros everywhere.
 */
#pragma once

#include "comm/comm.h"
#include "tensor/tensor.h"

/** A table whose gradient is packed and unpacked, and which rows of it are in use. */
typedef struct TableRows TableRows;

/** Is the gradient of this parameter one of which it pays to send some rows only? Tables have rows looked up, and many of them. */
bool has_table_rows(const Tensor *parameter);

/** For a parameter that has_table_rows(), which must outlive it; the caller's, to be freed with
 *  table_rows_free(). */
TableRows *table_rows_new(Tensor *parameter);
/** Frees it; the parameter stays. NULL is allowed. */
void table_rows_free(TableRows *t);

/** Brings together the rows of the parameter's gradient that are not zeros on some rank of the group. Collective.
 *  @return how many numbers the gradient has in front now; all that it has, where most rows are in use: nothing moved then */
int64_t table_rows_pack(TableRows *t, Group *group);

/** Puts the rows where they were; what lies between them is zeros again. */
void table_rows_unpack(TableRows *t);
