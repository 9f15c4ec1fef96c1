/** @file
 * Ids of rows in a table.
 */
#pragma once

enum { NO_ID = -1 }; /**< looks up nothing: its row is zeros, and it gets no gradient */
