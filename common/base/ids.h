/** @file
 * Ids of rows in a table.
 */
#pragma once

enum { NO_ID = -1 }; /**< is looked up nowhere: its row is zeros, and it gives no gradient */
