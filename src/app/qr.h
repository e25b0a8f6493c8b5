/* qr.h - text as a QR code (ISO/IEC 18004): bytes, error correction L, versions 1 to 10. */
#ifndef UAR_APP_QR_H
#define UAR_APP_QR_H

#include "base/buf.h"

enum { UAR_QR_MOST = 57, UAR_QR_TEXT = 271 }; /* modules of a side; bytes */

struct uar_qr {
	unsigned char dark[UAR_QR_MOST][UAR_QR_MOST]; /* [row][column]: 1 dark, 0 light */
	int side;
};
/* UAR_ETOOBIG: longer than UAR_QR_TEXT. */
UAR_MUST_CHECK uar_err uar_qr_make(struct uar_qr *out, uar_str text);
/* Two rows a line, in half blocks, with the light border that readers need. With `colour` dark
 * on white whatever the terminal has; else blocks are light, as on a dark terminal. */
void uar_qr_draw(const struct uar_qr *qr, bool colour, struct uar_buf *out);

#endif
