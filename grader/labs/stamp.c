/* A checksum of the sources that the judge and the runners share. */
#include "grader/protocol.h"

#include "protocol_checksum.h"

const char protocol_stamp[] = PROTOCOL_STAMP_HEAD PROTOCOL_CHECKSUM;
