/** @file
 * Ids of rows in a table.
 */
#ifndef BALISE_BASE_IDS_H
#define BALISE_BASE_IDS_H

enum { NO_ID = -1 }; /**< an id that is looked up nowhere: its row is zeros, and it gives no gradient */

#endif
