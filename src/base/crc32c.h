/* crc32c.h - the checksum of every stored row (Castagnoli polynomial). */
#ifndef UAR_BASE_CRC32C_H
#define UAR_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues from `crc` (0 to begin); uses the processor's instruction where there is one. */
uint32_t uar_crc32c(uint32_t crc, const void *p, size_t n);

#endif
