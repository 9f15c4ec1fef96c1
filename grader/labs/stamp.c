/* A checksum of what judge and runner must both have been built of. */
#include "grader/protocol.h"

#include "protocol_checksum.h"

const char protocol_stamp[] = PROTOCOL_STAMP_HEAD PROTOCOL_CHECKSUM;
