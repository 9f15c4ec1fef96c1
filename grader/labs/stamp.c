/* A checksum of everything that the judge and the runners must have been built from. */
#include "grader/protocol.h"

#include "protocol_checksum.h"

const char protocol_stamp[] = PROTOCOL_STAMP_HEAD PROTOCOL_CHECKSUM;
