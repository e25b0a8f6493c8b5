/* frame.c - frames between the helper and the server. */
#include "sandbox/helper.h"

void uar_frame_write(struct uar_buf *out, char what, uar_str bytes)
{
	unsigned char head[UAR_FRAME_HEAD] = { (unsigned char)what, (unsigned char)bytes.n,
					       (unsigned char)(bytes.n >> 8),
					       (unsigned char)(bytes.n >> 16),
					       (unsigned char)(bytes.n >> 24) };

	uar_buf_add(out, head, sizeof head);
	uar_buf_add_str(out, bytes);
}

size_t uar_frame_read(uar_str bytes, char *out_what, uar_str *out_bytes)
{
	const unsigned char *p = (const unsigned char *)bytes.p;
	size_t n;

	if (bytes.n < UAR_FRAME_HEAD)
		return 0;
	n = (size_t)p[1] | (size_t)p[2] << 8 | (size_t)p[3] << 16 | (size_t)p[4] << 24;
	if (n > UAR_LIMIT_SANDBOX_FRAME)
		return UAR_FRAME_BROKEN;
	if (bytes.n < UAR_FRAME_HEAD + n)
		return 0;
	*out_what = bytes.p[0];
	*out_bytes = uar_str_n(bytes.p + UAR_FRAME_HEAD, n);
	return UAR_FRAME_HEAD + n;
}
