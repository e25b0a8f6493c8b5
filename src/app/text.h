/* text.h - text for terminals: nothing from outside may steer one. */
#ifndef UAR_APP_TEXT_H
#define UAR_APP_TEXT_H

#include "base/buf.h"
#include "json/json.h"

/* Appends s without control characters (C0, DEL, C1, ill-formed UTF-8 and marks that
 * turn the direction of text become '?'), so that no escape sequence survives. With `lines` tabs
 * and line ends stay, else each becomes one space. */
void uar_text_clean(struct uar_buf *out, uar_str s, bool lines);
/* A string as its text, cleaned, with its lines; anything else as JSON on one; NULL as
 * nothing. */
void uar_text_value(struct uar_buf *out, const struct uar_json *value);
/* The same on one line, cut to `max` bytes with "..." behind. */
void uar_text_brief(struct uar_buf *out, uar_str s, size_t max);
/* A word as a shell takes it: in single quotes where it has to be; with bytes that may not be
 * shown in the $'...' of bash, ksh and zsh, so that nothing steers a terminal. */
void uar_text_shell(struct uar_buf *out, uar_str word);
/* "0.3s", "12s", "5m", "3h", "9d"; a negative span counts as none. */
void uar_text_span(struct uar_buf *out, double seconds);

/* ANSI attributes; "" everywhere when colour is off. */
enum uar_text_style {
	UAR_STYLE_NONE,
	UAR_STYLE_DIM,
	UAR_STYLE_BOLD,
	UAR_STYLE_RED,
	UAR_STYLE_GREEN,
	UAR_STYLE_YELLOW,
	UAR_STYLE_CYAN
};
const char *uar_text_on(enum uar_text_style style, bool colour);
const char *uar_text_off(enum uar_text_style style, bool colour);
/* The style in which a run's status is shown. */
enum uar_text_style uar_text_status_style(uar_str status);

#endif
